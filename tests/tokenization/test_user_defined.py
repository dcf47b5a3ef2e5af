"""Proves that user-defined pieces are the same in the graph as in Python, whatever the clean-up would make of them."""

import functools
import random

import numpy as np
import pytest

from albert_tf.tokenization import AlbertTokenizer
from albert_tf.tokenization.files import TokenizerOptions, english_model_file
from albert_tf.tokenization.sentencepiece.charsmap import changes
from albert_tf.tokenization.sentencepiece.model import SentencePieceModel
from tests.parameters import diagonal, first_of

from .golden import AWKWARD_TEXTS, read_lines, small_tokenizer
from .test_graph import _assert_same

# Some the clean-up would change, some begin like another or like a special piece, some end where a rule goes on, some
# are split by the digit-comma rule, and of one there is nothing but a mark.
SYMBOLS = ["[E1]", "@user", "@u", "É!", "É", "e", "가", "\u09c7", "[M", "½", "ﬁ", "ㅋㅋ", "\u0301x"]
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


@pytest.mark.parametrize(
    ("options", "byte_fallback", "allow_special"),
    first_of([*diagonal(OPTIONS, [False, True], [False, True]), (OPTIONS[0], False, True), (OPTIONS[1], True, False)]),
    ids=str,
)
def test_ids_and_offsets(options, byte_fallback, allow_special):
    tokenizer, texts = _tokenizer(options, byte_fallback), _texts(500)
    layout = {"allow_special": allow_special, "return_offsets": True, "max_length": 100_000}
    _assert_same(tokenizer, texts, **layout)
    found = set(np.concatenate(tokenizer.encode_batch(texts)).tolist())
    assert {tokenizer.pieces.index(symbol) for symbol in SYMBOLS if symbol not in SPLIT} < found


def test_ids_of_a_split_one_all_cover_it():
    for symbol, count in (("²,", 2), ("½9,", 3), ("@9,", 2)):
        inputs = _tokenizer()(f"a{symbol}b", return_offsets=True)
        spans = inputs["offsets"][0, 2:-2].tolist()
        assert spans == [[1, 1 + len(symbol)]] * count


# SentencePiece looks at 32 rules that fit at one place.
NESTED = tuple("=" * length for length in range(2, 41))


@pytest.mark.parametrize(
    ("symbols", "byte_fallback"),
    [(("▁of",), True), (("a b",), False), (("\ufffd",), True), (("\ufffd",), False), (NESTED, True)],
)
def test_uncommon_ones(symbols, byte_fallback):
    tokenizer = _tokenizer(byte_fallback=byte_fallback, symbols=symbols)
    texts = [f"one {symbols[0]} two{symbols[0]}", "x of y a b", "▁of", b"a\xffb", "=" * 40 + "漢"]
    texts = [text if isinstance(text, bytes) else text.encode() for text in texts]
    _assert_same(tokenizer, texts, return_offsets=True)


def test_a_thousand_of_them():
    symbols = tuple(f"[E{number}-{number**5 % 9973}]" for number in range(1000))
    texts = [f"a {symbol}b {symbol.lower()}".encode() for symbol in symbols]
    tokenizer = AlbertTokenizer(SentencePieceModel(_trained(False, symbols, 2000)))
    _assert_same(tokenizer, texts, return_offsets=True)
    found = set(np.concatenate(tokenizer.encode_batch(texts)).tolist())
    assert {tokenizer.pieces.index(symbol) for symbol in symbols} < found


@pytest.mark.parametrize(
    ("options", "symbol", "changed"),
    [
        (TokenizerOptions(), "@usr", False),
        (TokenizerOptions(), "[E1]", True),
        (TokenizerOptions(do_lower_case=False), "[E1]", False),
        (TokenizerOptions(), "é", True),
        (TokenizerOptions(keep_accents=True), "é", False),
    ],
    ids=str,
)
def test_what_the_clean_up_changes(options, symbol, changed):
    model = SentencePieceModel(english_model_file().read_bytes(), options)
    assert changes(model._compiled_proto, [symbol]) == changed
