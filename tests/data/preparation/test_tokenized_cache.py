"""Tokenised documents keep every token; long segments are cut at words; the cache gives back what was put in."""

from functools import partial
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.data.documents import Document, read_documents
from albert_tf.data.preparation.tokenized_cache import (
    append_to_cache,
    cache_arrays,
    cut_segment,
    split_by_shard,
    tokenize_documents,
)
from albert_tf.data.shard_files import as_documents
from albert_tf.tokenization import AlbertTokenizer
from tests.data.small_corpus import CORPUS


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=80), st.integers(1, 30))
def test_parts_of_a_cut_segment_join_up_fit_and_begin_words(starts, room):
    starts = np.array(starts)
    ids = np.arange(len(starts), dtype=np.int32)
    parts = cut_segment(ids, starts, room)
    assert np.array_equal(np.concatenate(parts), ids)
    assert all(0 < len(part) <= room for part in parts)
    if len(ids) > room:
        largest = max(room // 4, 1)
        for before, part in pairwise(parts):
            # In mid-word only where the word fills the whole part before.
            assert starts[part[0]] or (len(before) == largest and not starts[before[1:]].any())


def test_documents_are_tokenised_as_their_lines(tmp_path):
    tokenizer = AlbertTokenizer.english()
    documents = [Document(("Hello world.", "\u0301", "Bye.")), Document(("\u0301",)), Document(("One, two",))]
    tokenized = tokenize_documents(documents, tokenizer)
    texts = ["Hello world.", "Bye.", "One, two"]  # what is only a combining mark has no tokens
    assert np.array_equal(tokenized.tokens, np.concatenate([tokenizer.encode(text) for text in texts]))
    assert np.array_equal(tokenized.document_offsets, [0, 2, 3])
    assert tokenized.document_keys.tolist() == [documents[0].key, documents[2].key]
    assert len(tokenize_documents(documents[1:2], tokenizer)) == 0


def test_long_lines_are_kept_in_parts():
    tokenizer = AlbertTokenizer.english()
    document = Document(("short", " ".join(["extraordinarily long"] * 100)))
    whole = tokenize_documents([document], tokenizer)
    cut = tokenize_documents([document], tokenizer, max_tokens=61)
    assert np.array_equal(whole.tokens, cut.tokens)
    assert np.diff(cut.segment_offsets)[1:].max() <= 15
    assert tokenizer.start_of_word[cut.tokens[cut.segment_offsets[:-1]]].all()


def test_the_cache_gives_back_what_was_put_in(tmp_path):
    documents = list(read_documents(CORPUS))
    documents = [Document(document.sentences[i : i + 40]) for document in documents for i in range(0, 400, 40)]
    tokenize = partial(tokenize_documents, tokenizer=AlbertTokenizer.english())
    for first in range(0, len(documents), 7):
        batch = tokenize(documents[first : first + 7])
        for shard, arrays in split_by_shard(batch, 3):
            append_to_cache(tmp_path / str(shard), arrays)
    in_shards = [[document for document in documents if document.key % 3 == shard] for shard in range(3)]
    assert all(in_shards)
    for shard in range(3):
        check_equal(as_documents(cache_arrays(tmp_path / str(shard), drop_repeated=False)), tokenize(in_shards[shard]))


def check_equal(loaded, expected):
    for name in ("tokens", "segment_offsets", "document_offsets", "document_keys"):
        assert np.array_equal(getattr(loaded, name), getattr(expected, name))
