"""Proves what `AlbertTokenizer` promises around its ids: batches, truncation, hashes, answers to any input in time."""

import pickle
import random
import time
from collections import deque

import numpy as np
import pandas
import pytest
import tensorflow as tf

from albert_tf.tokenization import AlbertTokenizer
from albert_tf.tokenization.batching import pair_lengths
from albert_tf.tokenization.sentencepiece.model import SentencePieceModel
from albert_tf.tokenization.sentencepiece.proto import replace_charsmap
from tests.parameters import first_of
from tests.tokenization.golden import AWKWARD_TEXTS, TINY_MODEL
from tests.tokenization.in_graph import assert_same

MAX_LENGTH = 2_000_000


@pytest.fixture(scope="module")
def tokenizer():
    return AlbertTokenizer.english()


def test_attributes(tokenizer):
    special = tuple(getattr(tokenizer, f"{name}_token_id") for name in ("pad", "unk", "cls", "sep", "mask"))
    assert special == (0, 1, 2, 3, 4)
    assert [tokenizer.pieces[i] for i in special] == ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]
    assert tokenizer.vocab_size == len(tokenizer.pieces) == 30_000
    assert tokenizer.start_of_word.dtype == bool
    assert tokenizer.start_of_word.shape == (30_000,)
    assert len(tokenizer) == 30_000
    assert "30,000 pieces" in repr(tokenizer)
    assert "30k-clean.model" in repr(tokenizer)
    assert "do_lower_case=True" in repr(tokenizer)


def test_a_batch_gives_what_single_texts_give(tokenizer):
    texts = [*AWKWARD_TEXTS, "The year 1999, the 3,000 men."] * 3
    for threads in (None, 1, 2):
        rows = tokenizer.encode_batch(iter(texts), num_threads=threads)
        assert [row.dtype for row in rows] == [np.int32] * len(texts)
        assert [row.tolist() for row in rows] == [tokenizer.encode(text) for text in texts]


def test_inputs_of_single_texts(tokenizer):
    inputs = tokenizer(["the man was", ""])
    ids = tokenizer.encode("the man was")
    assert inputs["input_ids"].tolist() == [[2, *ids, 3], [2, 3, 0, 0, 0]]
    assert inputs["attention_mask"].tolist() == [[1] * 5, [1, 1, 0, 0, 0]]
    assert not inputs["token_type_ids"].any()
    assert {name: array.dtype for name, array in inputs.items()} == dict.fromkeys(inputs, np.dtype(np.int32))


def test_inputs_of_pairs(tokenizer):
    inputs = tokenizer(["the man", "was"], ["and", "of one day"], padding="max_length", max_length=8)
    the, man, was, and_, of, one, day = tokenizer.encode("the man was and of one day")
    assert inputs["input_ids"].tolist() == [[2, the, man, 3, and_, 3, 0, 0], [2, was, 3, of, one, day, 3, 0]]
    assert inputs["attention_mask"].tolist() == [[1, 1, 1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1, 1, 0]]
    assert inputs["token_type_ids"].tolist() == [[0, 0, 0, 0, 1, 1, 0, 0], [0, 0, 0, 1, 1, 1, 1, 0]]


def test_batches_of_one_text_and_of_none(tokenizer):
    assert tokenizer("a", "b")["input_ids"].tolist() == tokenizer(["a"], ["b"])["input_ids"].tolist()
    assert tokenizer([])["input_ids"].shape == (0, 0)
    assert tokenizer([], padding="max_length", max_length=7)["input_ids"].shape == (0, 7)
    assert tokenizer.encode_batch([]) == []


def test_truncation_of_one_text(tokenizer):
    ids = tokenizer.encode("the man was of one day")
    assert tokenizer(["the man was of one day"], max_length=5)["input_ids"].tolist() == [[2, *ids[:3], 3]]
    assert tokenizer(["the man was"], max_length=5, truncation=False)["input_ids"].shape == (1, 5)


def test_truncation_of_pairs_pops_from_the_longer():
    draw = random.Random(0)
    for _ in range(300):
        first, second, room = draw.randrange(12), draw.randrange(12), draw.randrange(15)
        left, right = deque(range(first)), deque(range(second))
        while len(left) + len(right) > room:
            (left if len(left) > len(right) else right).pop()
        kept = pair_lengths(np.array([first]), np.array([second]), room)
        assert [lengths.tolist() for lengths in kept] == [[len(left)], [len(right)]]


def test_decode(tokenizer):
    assert tokenizer.decode(tokenizer.encode("Hello, WORLD!")) == "hello, world!"
    inputs = tokenizer(["Hello world", "Bye"], max_length=8, padding="max_length")["input_ids"]
    assert inputs.shape == (2, 8)
    assert tokenizer.batch_decode(inputs) == ["hello world", "bye"]
    assert tokenizer.decode(inputs[0]) == tokenizer.decode(index for index in inputs[0]) == "hello world"
    assert tokenizer.decode(tf.constant([53])) == tokenizer.decode(np.array([53])) == "one"


def test_pieces_and_ids(tokenizer):
    ids = tokenizer("Hello world")["input_ids"][0]
    tokens = ["[CLS]", "▁hello", "▁world", "[SEP]"]
    assert tokenizer.convert_ids_to_tokens(ids) == tokens
    assert tokenizer.convert_tokens_to_ids(tokens) == ids.tolist()
    assert tokenizer.convert_ids_to_tokens(4) == tokenizer.convert_ids_to_tokens(np.int32(4)) == "[MASK]"
    assert tokenizer.convert_tokens_to_ids("[MASK]") == 4
    assert tokenizer.convert_tokens_to_ids(["no piece", "▁hello"]) == [tokenizer.unk_token_id, ids[1]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"return_tensors": "tf"}, "has no argument `return_tensors`; leave it out: the arrays are NumPy's"),
        ({"stride": 2}, "has no argument `stride`; use doc_stride"),
        ({"lenght": 8}, "has no argument `lenght`\\."),
    ],
)
def test_arguments_of_other_tokenizers_have_a_hint(tokenizer, arguments, message):
    with pytest.raises(TypeError, match=message):
        tokenizer(["a"], **arguments)


def test_options_change_ids_and_the_hash(tokenizer):
    cased, accents = AlbertTokenizer.english(do_lower_case=False), AlbertTokenizer.english(keep_accents=True)
    assert tokenizer.tokenize("Hé")[0] == "▁he"
    assert cased.encode("Hello") != tokenizer.encode("Hello")
    assert accents.encode("café") == accents.encode("cafe\u0301") != tokenizer.encode("café")
    reference = AlbertTokenizer.english(reference_digit_comma=True)
    others = [cased, accents, reference, AlbertTokenizer.from_pretrained(TINY_MODEL)]
    assert len({tokenizer.vocab_hash, *(other.vocab_hash for other in others)}) == 5
    # Recorded in data manifests: a change here makes prepared data unusable.
    assert tokenizer.vocab_hash == "b32749b3f334cafd700e6cf6158bd0714da0c2115c724201b4d0eda92ccb4543"


def test_hash_tells_normalisation_rules_apart():
    proto = TINY_MODEL.read_bytes()
    with_rules, without_rules = (AlbertTokenizer(SentencePieceModel(p)) for p in (proto, replace_charsmap(proto, b"")))
    assert with_rules.encode("a\u200bb") != without_rules.encode("a\u200bb")
    assert with_rules.vocab_hash != without_rules.vocab_hash


def test_pickle_keeps_everything():
    tokenizer = AlbertTokenizer.from_pretrained(TINY_MODEL, do_lower_case=False, reference_digit_comma=True)
    copy = pickle.loads(pickle.dumps(tokenizer))
    assert copy.vocab_hash == tokenizer.vocab_hash
    assert copy.options == tokenizer.options


# === Any input ===

UNKNOWN, START = 1, 13
# Each with what it must at least give: ids that something unknown, or something known, is there.
CASES = {
    "bytes that are no UTF-8": (b"a\xff\xfe\xc0\x80b", [21, UNKNOWN, 220]),
    "a character that breaks off": (b"a\xe2\x82", [21, UNKNOWN]),
    "a lone surrogate": ("a\ud800".encode("utf-8", "surrogatepass"), [21, UNKNOWN]),
    "NUL": (b"a\0b", [21, UNKNOWN, 220]),
    "nothing": (b"", []),
    "white space alone": (" \t\r\n\u3000\u2028".encode(), []),
    "combining marks alone": ("\u0301\u0302 \u0323".encode(), []),
    "right to left": ("שלום عربي".encode(), [START, UNKNOWN] * 2),
    "emoji with joiners": ("👩\u200d👩\u200d👧 🇰🇷".encode(), [START, UNKNOWN] * 4),
}


@pytest.mark.parametrize("name", CASES)
def test_both_paths_give_what_is_there(tokenizer, name):
    text, ids = CASES[name]
    assert tokenizer.encode(text) == ids
    assert_same(tokenizer, [text], max_length=MAX_LENGTH, return_offsets=True)


def test_a_lone_surrogate_is_the_same_in_bytes(tokenizer):
    assert tokenizer.encode("a\ud800b") == tokenizer.encode(b"a\xed\xa0\x80b")


# Runs of a million bytes, but for characters that the vocabulary does not know: SentencePiece copies a run of them once
# for each of them.
@pytest.mark.parametrize(("unit", "size"), first_of([("x", 10**6), ("9,", 10**6), ("\u0301", 10**6), ("가", 10**5)]))
def test_long_runs_take_linear_time(tokenizer, unit, size):
    text = (unit * (size // len(unit.encode()))).encode()
    start = time.process_time()
    inputs = tokenizer([text], max_length=MAX_LENGTH, return_offsets=True)
    in_python = time.process_time() - start
    assert_same(tokenizer, [text], max_length=MAX_LENGTH, return_offsets=True)
    in_both = time.process_time() - start - in_python
    # Linear takes a second or two on a slow machine; anything quadratic takes many minutes.
    assert (in_python < 20, in_both < 40) == (True, True)
    assert tokenizer.encode(text) == inputs["input_ids"][0, 1:-1].tolist()
    assert inputs["offsets"][0, -2, 1] == (0 if unit == "\u0301" else len(text.rstrip()))  # the clean-up drops marks
    if unit == "x":
        assert "".join(tokenizer.tokenize(text)) == "▁" + text.decode()


def in_a_dataset(tokenizer):
    dataset = tf.data.Dataset.from_tensor_slices(["a", "b"]).batch(2)
    return dataset.map(lambda texts: tokenizer(texts)["input_ids"])


NOT_IDS = r"`ids` must be the ids of one text.* Received: "
TABLE = {"text": ["a"]}
COLUMN = "`texts` must be .* a {}; pass one of its columns"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda one: one.encode(3), r"Received: 3 \(int\)"),
        (lambda one: one.encode(["a", "b"]), r"must be a string\. Received: \['a', 'b'\] \(list\) at position 0"),
        (lambda one: one.tokenize(["a", "b"]), r"must be a string\. Received: \['a', 'b'\] \(list\) at position 0"),
        (lambda one: one.encode_batch("abc"), "use `encode` for it"),
        *(
            (lambda one, v=value: one(v), rf"a string or a list of strings\. Received: {value}\.")
            for value in (None, 5)
        ),
        (lambda one: one.encode_batch(float("nan")), r"a string or a list of strings\. Received: nan\."),
        (lambda one: one(TABLE), COLUMN.format("dict")),
        (lambda one: one.encode_batch(pandas.DataFrame(TABLE)), COLUMN.format("DataFrame")),
        (lambda one: one(["a", "b"], ["c"]), "2 texts and 1 pairs"),
        (lambda one: one(["the", "the man was one"], max_length=5, truncation=False), "row 1 with 6 ids for max_len"),
        (lambda one: one(["a"], padding=True), "Received: padding=True; write padding='longest'"),
        (in_a_dataset, r"`texts` must be strings.*SymbolicTensor.*as_layer"),
        (lambda one: one(["a"], tf.constant(["b"])), r"`texts` must be strings.*EagerTensor.*as_layer"),
        (lambda one: one.decode([30_000]), "between 0 and 29999. Received: 30000"),
        (lambda one: one.convert_ids_to_tokens(-1), "between 0 and 29999. Received: -1"),
        *((lambda one, v=value: one.decode(v), NOT_IDS) for value in ("53", [53.7])),
        (lambda one: one.decode([[53]]), "a list of integers; for several texts use `batch_decode`"),
        (lambda one: one.batch_decode([2, 3]), "a list of integers; for several texts use `batch_decode`"),
    ],
)
def test_mistakes_are_explained(tokenizer, call, message):
    with pytest.raises(ValueError, match=message):
        call(tokenizer)
