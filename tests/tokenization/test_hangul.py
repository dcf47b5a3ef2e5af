"""Proves that Hangul comes through every path whole, in syllables or spelled out, with accents kept or dropped."""

import functools
import itertools
import unicodedata

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.tokenization import AlbertTokenizer, train_sentencepiece
from albert_tf.tokenization.hangul import compose_syllables
from albert_tf.tokenization.wordpiece.graph import compose_syllables as compose_in_graph
from albert_tf.tokenization.wordpiece.graph import decode
from albert_tf.tokenization.wordpiece.model import WordPieceModel
from albert_tf.tokenization.wordpiece.vocabulary import WordPieceOptions
from tests.parameters import diagonal, first_of
from tests.tokenization.golden import KOREAN, train_plainly
from tests.tokenization.wordpiece_golden import korean

SYLLABLES = "".join(map(chr, range(0xAC00, 0xD7A4)))
OPTIONS = list(itertools.product([False, True], repeat=2))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hangul")
    (folder / "korean.txt").write_text("\n".join(KOREAN * 20), encoding="utf-8")
    train_sentencepiece(
        folder / "korean.txt", folder / "ko", vocab_size=54, keep_accents=True, character_coverage=1.0, heldout_share=0
    )
    return folder


@pytest.mark.parametrize(
    ("form", "lower", "accents"), first_of(itertools.product(["NFC", "NFD"], *[[False, True]] * 2))
)
def test_every_syllable_comes_through_the_clean_up(lower, accents, form):
    tokenizer = AlbertTokenizer.english(do_lower_case=lower, keep_accents=accents)
    cleaned = "".join(tokenizer.tokenize(unicodedata.normalize(form, SYLLABLES)))  # unknown text shows as it is
    assert cleaned == "▁" + SYLLABLES


@pytest.mark.exhaustive
@pytest.mark.parametrize(("lower", "accents"), OPTIONS)
def test_switches_change_no_korean_id_in_python_or_in_the_graph(folder, lower, accents):
    tokenizer = AlbertTokenizer.from_pretrained(folder / "ko", do_lower_case=lower, keep_accents=accents)
    expected = AlbertTokenizer.from_pretrained(folder / "ko").encode_batch(KOREAN)
    layer = tokenizer.as_layer()
    for form in ("NFC", "NFD"):
        texts = [unicodedata.normalize(form, text) for text in KOREAN]
        inputs = tokenizer(texts, return_offsets=True)
        np.testing.assert_array_equal(layer(tf.constant(texts))["input_ids"], inputs["input_ids"])
        for text, row, spans, ids in zip(texts, inputs["input_ids"], inputs["offsets"], expected, strict=True):
            assert row[1 : len(ids) + 1].tolist() == ids.tolist()
            assert tokenizer.unk_token_id not in row
            assert "".join(text[start:end] for start, end in spans) == text


def test_a_vocabulary_that_cannot_put_syllables_together_is_warned_of(folder):
    settings = {"vocab_size": 47, "character_coverage": 1.0, "normalization_rule_name": "identity"}
    (folder / "identity.model").write_bytes(train_plainly(KOREAN * 20, **settings))
    with pytest.warns(UserWarning, match=r"`keep_accents` should be True .* Received: keep_accents=False for"):
        broken = AlbertTokenizer.from_pretrained(folder / "identity.model")
    assert broken.unk_token_id in broken.encode(KOREAN[0])
    whole = AlbertTokenizer.from_pretrained(folder / "identity.model", keep_accents=True)
    assert whole.unk_token_id not in whole.encode(KOREAN[0])


def _spell_endings(text):
    """Spells out the trailing letter of each syllable alone."""
    apart = (unicodedata.normalize("NFD", character) for character in text)
    return "".join(unicodedata.normalize("NFC", letters[:2]) + letters[2:] for letters in apart)


@functools.cache
def _vocabulary_file(scheme, lower, accents):
    marked = [syllable + "_" if scheme == "word_end" else "##" + syllable for syllable in SYLLABLES]
    pieces = ("[UNK]", "[CLS]", "[SEP]", "[MASK]", *SYLLABLES, *marked)
    return AlbertTokenizer(
        WordPieceModel(pieces, WordPieceOptions(scheme=scheme, do_lower_case=lower, keep_accents=accents))
    )


SPELLINGS = (_spell_endings, str, functools.partial(unicodedata.normalize, "NFD"))


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("spell", "scheme", "lower", "accents"),
    diagonal(SPELLINGS, ["word_end", "wordpiece"], [True, False], [True, False, False]),
)
def test_every_syllable_comes_through_a_vocabulary_file(scheme, lower, accents, spell):
    tokenizer = _vocabulary_file(scheme, lower, accents)
    words = [SYLLABLES[start : start + 2] for start in range(0, len(SYLLABLES), 2)]
    texts = [spell(word) for word in words]
    first_id = tokenizer.pieces.index(SYLLABLES[0])
    expected = [[index, index + 1 + len(SYLLABLES)] for index in range(first_id, first_id + len(SYLLABLES), 2)]
    assert [row.tolist() for row in tokenizer.encode_batch(texts)] == expected
    assert tokenizer.as_layer()(tf.constant(texts))["input_ids"][:, 1:-1].numpy().tolist() == expected
    inputs = tokenizer(texts, return_offsets=True)
    assert inputs["input_ids"][:, 1:-1].tolist() == expected
    for text, word, (first, second) in zip(texts, words, inputs["offsets"][:, 1:-1].tolist(), strict=True):
        assert [text[slice(*first)], text[slice(*second)]] == [spell(syllable) for syllable in word]


@pytest.mark.exhaustive
@settings(max_examples=100, derandomize=True, deadline=None)
@given(text=st.text("\u10ff\u1100\u1112\u1113\u1160\u1161\u1175\u1176\u11a7\u11a8\u11c2\u11c3가각갸힐힣 a"))
def test_syllables_are_put_together_as_unicode_does(text):
    composed = compose_syllables(text)
    assert len(composed) == len(text)
    assert composed.replace("\0", "") == unicodedata.normalize("NFC", text)
    (in_graph,) = compose_in_graph(decode(tf.constant([text.encode()]))).to_list()
    assert "".join(map(chr, in_graph)) == composed


def test_letters_of_two_texts_make_no_syllable():
    texts = ["\u1107", "\u1161", "\u11b8", "바", "\u11b8", ""]
    rows = compose_in_graph(decode(tf.constant([text.encode() for text in texts]))).to_list()
    assert ["".join(map(chr, row)) for row in rows] == texts
    many = [*texts, *["\u1107\u1161\u11b8"] * 1000]
    one, whole = ([korean().pieces.index(syllable)] for syllable in "바밥")
    assert [row.tolist() for row in korean().encode_batch(many)] == [[1], [1], [1], one, [1], []] + [whole] * 1000


def test_a_vocabulary_file_of_conjoining_letters_is_warned_of():
    pieces = ["[UNK]", "[CLS]", "[SEP]", "[MASK]", *(unicodedata.normalize("NFD", piece) for piece in ("밥", "##을"))]
    with pytest.warns(UserWarning, match=r"`reference_accents` should be True .* Received: reference_accents=False"):
        assert WordPieceModel(pieces).tokenize("밥을") == ["[UNK]"]
    whole = WordPieceModel(pieces, WordPieceOptions(reference_accents=True))
    assert [whole.tokenize(unicodedata.normalize(form, "밥을")) for form in ("NFC", "NFD")] == [pieces[4:]] * 2
