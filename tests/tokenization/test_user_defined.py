"""Proves that user-defined pieces are the same in the graph as in Python, whatever the clean-up would make of them."""

import functools
import random

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

from albert_tf.tokenization import AlbertTokenizer, TokenizerOptions
from albert_tf.tokenization.charsmap import keep_texts, leaves_alone
from albert_tf.tokenization.model_proto import user_defined, user_defined_as_normal
from albert_tf.tokenization.sentencepiece_graph import FastOp, _GeneralOp
from albert_tf.tokenization.sentencepiece_model import SentencePieceModel

from .golden import AWKWARD_TEXTS, read_lines, small_tokenizer

# Some the clean-up would change, some begin like another or like a special piece, some end where a rule goes on, some
# are split by the digit-comma rule, and of one there is nothing but a mark.
SYMBOLS = ["[E1]", "@user", "@u", "ser!", "É!", "É", "e", "가", "\u09c7", "[M", "½", "ﬁ", "ㅋㅋ", "\u0301x"]
SPLIT = ["漢9,", "@9,", "\u0663,", "²,", "½9,", "ﷺ9,"]
SYMBOLS += SPLIT
PARTS = [*SYMBOLS, *"  .!~-é漢字9,rRmM]\u0301\u0308\u11a8\u09be\u3000\0\u1112\u1161😀", "[e1]", "@USER", "E\u0301"]
PARTS += ["!!!!", "~~~~~~~", "the ", "[MASK]", "<unk>", "1999,", "각", "ASK]"]
OPTIONS = [
    TokenizerOptions(),
    TokenizerOptions(do_lower_case=False, reference_digit_comma=True),
    TokenizerOptions(keep_accents=True),
]


@functools.cache
def _trained(byte_fallback, symbols, vocab_size=900):
    settings = {"byte_fallback": byte_fallback, "user_defined_symbols": list(symbols), "vocab_size": vocab_size}
    return small_tokenizer(**settings)._model._model_proto


def _tokenizer(options=OPTIONS[0], byte_fallback=False, symbols=tuple(SYMBOLS)):
    return AlbertTokenizer(SentencePieceModel(_trained(byte_fallback, symbols), options))


def _texts(count):
    draw = random.Random(0)
    drawn = ["".join(draw.choices(PARTS, k=draw.randrange(30))) for _ in range(count)]
    plain = [line["text"] for line in read_lines("T1_tokenize")[::10]]
    awkward = [text.encode("utf-8", "surrogatepass") for text in AWKWARD_TEXTS]
    return [*(text.encode() for text in drawn + plain), *awkward, b"[E1\xff]", b"@user\xcc", b"\xff\xcc\x81x"]


@pytest.mark.parametrize("allow_special", [False, True])
@pytest.mark.parametrize("byte_fallback", [False, True])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_ids_and_offsets(options, byte_fallback, allow_special):
    tokenizer, texts = _tokenizer(options, byte_fallback), _texts(3000)
    assert isinstance(tokenizer._model.in_graph()._op, FastOp)
    layout = {"allow_special": allow_special, "return_offsets": True, "max_length": 100_000}
    got = tokenizer.as_layer(**layout)(tf.constant(texts))
    wanted = tokenizer(texts, **layout)
    for name, array in wanted.items():
        np.testing.assert_array_equal(got[name], array, err_msg=name)
    found = set(np.unique(wanted["input_ids"]).tolist())
    assert {tokenizer.pieces.index(symbol) for symbol in SYMBOLS if symbol not in SPLIT} < found


def test_ids_of_a_split_one_all_cover_it():
    for symbol, count in (("²,", 2), ("½9,", 3), ("@9,", 2)):
        inputs = _tokenizer()(f"a{symbol}b", return_offsets=True)
        spans = inputs["offsets"][0, 2:-2].tolist()
        assert spans == [[1, 1 + len(symbol)]] * count


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_normaliser_with_rules_for_them_needs_no_user_defined_pieces(options):
    model = _tokenizer(options)._model
    proto = keep_texts(model._compiled_proto, user_defined(model._compiled_proto))
    normal = sentencepiece.SentencePieceProcessor(model_proto=user_defined_as_normal(proto))
    assert not user_defined(user_defined_as_normal(proto))
    for text in _texts(3000):
        assert normal.Normalize(text, with_offsets=True) == model.processor.Normalize(text, with_offsets=True)
        assert normal.Encode(text) == model.processor.Encode(text)


def test_published_ones_of_several_bytes_weigh_more():
    """How sums are rounded decides between splits of marks in a row; "–", "£" and "€" count with two tenths each."""
    english, draw = AlbertTokenizer.english(), random.Random(0)
    parts = [*'–£€()"-.!~=*_,?', "...", "!!!", "--", " the ", " a ", "hello ", "1999", "x"]
    texts = ["".join(draw.choices(parts, k=draw.randrange(60))) for _ in range(20_000)]
    np.testing.assert_array_equal(english.as_layer()(tf.constant(texts))["input_ids"], english(texts)["input_ids"])


# SentencePiece looks at 32 rules that fit at one place.
NESTED = tuple("=" * length for length in range(2, 41))


@pytest.mark.parametrize("byte_fallback", [False, True])
@pytest.mark.parametrize("symbols", [("▁of",), ("a b",), ("\ufffd",), NESTED], ids=["▁", "space", "U+FFFD", "nested"])
def test_those_that_the_fast_op_cannot_take_get_the_general_op(symbols, byte_fallback):
    tokenizer = _tokenizer(byte_fallback=byte_fallback, symbols=symbols)
    assert isinstance(tokenizer._model.in_graph()._op, _GeneralOp)
    texts = [f"one {symbols[0]} two{symbols[0]}", "x of y a b", "▁of", b"a\xffb", "=" * 40 + "漢"]
    np.testing.assert_array_equal(tokenizer.as_layer()(tf.constant(texts))["input_ids"], tokenizer(texts)["input_ids"])
    with pytest.raises(ValueError, match="take the offsets that the tokenizer itself returns"):
        tokenizer.as_layer(return_offsets=True)


def test_a_thousand_of_them():
    symbols = tuple(f"[E{number}-{number**5 % 9973}]" for number in range(1000))
    texts = [f"a {symbol}b {symbol.lower()}" for symbol in symbols]
    tokenizer = AlbertTokenizer(SentencePieceModel(_trained(False, symbols, 2000)))
    assert isinstance(tokenizer._model.in_graph()._op, FastOp)
    wanted = tokenizer([text.encode() for text in texts], return_offsets=True)
    got = tokenizer.as_layer(return_offsets=True)(tf.constant(texts))
    for name, array in wanted.items():
        np.testing.assert_array_equal(got[name], array, err_msg=name)
    assert {tokenizer.pieces.index(symbol) for symbol in symbols} < set(np.unique(wanted["input_ids"]).tolist())


@pytest.mark.parametrize(
    ("options", "symbol", "is_alone"),
    [
        (TokenizerOptions(), "@usr", True),
        (TokenizerOptions(), "e", True),  # what a mark makes of it is "e" again
        (TokenizerOptions(keep_accents=True), "@usr", False),  # "@usŕ"
        (TokenizerOptions(), "가", False),  # "각"
        (TokenizerOptions(), "[E1]", False),
        (TokenizerOptions(do_lower_case=False), "[E1]", True),
    ],
    ids=str,
)
def test_what_the_clean_up_leaves_alone(options, symbol, is_alone):
    model = SentencePieceModel(AlbertTokenizer.english()._model._model_proto, options)
    assert leaves_alone(model._compiled_proto, [symbol]) == is_alone
