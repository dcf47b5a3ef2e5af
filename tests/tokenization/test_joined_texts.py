"""Texts that are encoded together have the ids that each has alone."""

import random

import numpy as np
import pytest

from albert_tf.tokenization import AlbertTokenizer, joined_texts
from albert_tf.tokenization.joined_texts import MANY, JoinedTexts
from albert_tf.tokenization.sentencepiece_model import SentencePieceModel

from .golden import AWKWARD_TEXTS, read_lines, train_plainly

# Runs that split in several ways with equal scores, white space, and characters of which the clean-up makes several.
PARTS = [
    "!!!!",
    "..",
    "-",
    "--!!",
    " a",
    "가",
    "☃",
    "😀",
    "\0",
    " ",
    "\u0301",
    "▁",
    "?",
    "*",
    "x",
    "the ",
    "½",
    "¨",
    "1999,",
]


def alone(tokenizer, texts):
    return [tokenizer.encode(text) for text in texts]


def together(tokenizer, texts):
    assert len(texts) >= MANY
    return [row.tolist() for row in tokenizer.encode_batch(texts)]


@pytest.fixture(scope="module")
def english():
    tokenizer = AlbertTokenizer.english()
    assert joined_of(tokenizer) is not None  # or the tests below would compare a path with itself
    return tokenizer


def joined_of(tokenizer):
    assert isinstance(tokenizer._model, SentencePieceModel)
    return tokenizer._model._joined


def drawn_texts(count):
    generator = random.Random(0)
    return ["".join(generator.choices(PARTS, k=generator.randrange(40))) for _ in range(count)]


@pytest.mark.parametrize(
    "texts",
    [
        [line["text"] for line in read_lines("T1_tokenize")],
        drawn_texts(2000),
        [f"{character} b!!!!" for character in map(chr, [*range(1, 0x3000), *range(0xF900, 0x10000)])],
        [f"!!!! a{character}" for character in map(chr, [*range(1, 0x3000), *range(0xF900, 0x10000)])],
        ["!" * 30_000, "x" * 20_000, *[""] * MANY, "!" * 30_000, " "],
    ],
    ids=["recorded lines", "drawn", "characters in front", "characters behind", "long, and empty"],
)
def test_ids_are_those_of_each_text_alone(english, texts):
    assert joined_of(english).encode(texts, 1) is not None
    assert together(english, texts) == alone(english, texts)


@pytest.mark.parametrize("options", [{"reference_digit_comma": True}, {"do_lower_case": False}, {"keep_accents": True}])
def test_under_every_option(options):
    tokenizer = AlbertTokenizer.english(**options)
    texts = drawn_texts(MANY)
    assert together(tokenizer, texts) == alone(tokenizer, texts)


@pytest.mark.parametrize(
    "odd", [b"bytes \xff", "\ud800", "a \U0010fff9 b", "x" * 1_000_000], ids=["bytes", "surrogate", "border", "long"]
)
def test_what_cannot_be_joined_is_encoded_all_the_same(english, odd):
    texts = [*drawn_texts(MANY), odd, "!!!!"]
    assert joined_of(english).encode(texts, 1) is None
    assert together(english, texts) == alone(english, texts)


def test_any_sequence_of_texts(english):
    for texts in (("!!!!", "a b"), ("a b",), tuple(drawn_texts(MANY))):
        rows = english._model.encode_batch(texts)
        assert [row.tolist() for row in rows] == alone(english, texts)


def test_awkward_texts(english):
    texts = [*AWKWARD_TEXTS] * (1 + MANY // len(AWKWARD_TEXTS))
    assert together(english, texts) == alone(english, texts)


def test_special_pieces_are_still_asked_for(english):
    english.encode_batch(["plain"] * MANY)
    rows = english.encode_batch(["a [MASK] b", "[MASK]"] * MANY, allow_special=True)
    assert [row.tolist() for row in rows[:2]] == [
        english.encode(text, allow_special=True) for text in ("a [MASK] b", "[MASK]")
    ]
    assert rows[1].tolist() == [english.mask_token_id]


@pytest.mark.parametrize("num_threads", [1, 2, 7, None])
def test_any_number_of_threads(english, num_threads):
    texts = drawn_texts(300)
    rows = english.encode_batch(texts, num_threads)
    assert [row.tolist() for row in rows] == alone(english, texts)


def test_a_library_that_goes_on_with_its_sums_is_found_out(english, monkeypatch):
    model = english._model
    monkeypatch.setattr(joined_texts, "_BORDER_SCORE", -5.0)
    assert not JoinedTexts(model._compiled_proto, model.pieces, model.processor).fits


def test_a_vocabulary_with_pieces_over_several_words_is_not_joined():
    texts = ["one two three one two"] * 50
    model = SentencePieceModel(train_plainly(texts, vocab_size=30, hard_vocab_limit=False, split_by_whitespace=False))
    assert any("▁" in piece[1:] for piece in model.pieces)
    assert model._joined is None
    texts = ["one two", "two three one"] * MANY
    for row, text in zip(model.encode_batch(texts), texts):
        np.testing.assert_array_equal(row, model.encode_batch([text])[0])
