"""Proves that in the graph SentencePiece gives the ids and offsets of Python, whatever the model and its pieces."""

import functools
import random

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.tokenization import AlbertTokenizer, train_sentencepiece
from albert_tf.tokenization.files import TokenizerOptions
from albert_tf.tokenization.sentencepiece.model import SentencePieceModel
from tests.conftest import ROOT
from tests.parameters import MadeOnce, diagonal, first_of
from tests.tokenization.golden import AWKWARD_TEXTS, TINY_MODEL, is_tie, read_lines, small_tokenizer, spelling_bytes
from tests.tokenization.in_graph import as_bytes, assert_same, assigned_code_points

LONG = 2_000_000
TOKENIZERS = MadeOnce(
    {
        "lower": AlbertTokenizer.english,
        "cased": lambda: AlbertTokenizer.english(do_lower_case=False),
        "accents": lambda: AlbertTokenizer.english(keep_accents=True),
        "digit_comma": lambda: AlbertTokenizer.from_pretrained(TINY_MODEL),
        "digit_comma_reference": lambda: AlbertTokenizer.from_pretrained(TINY_MODEL, reference_digit_comma=True),
        "bytes": spelling_bytes,
        "bytes_cased": lambda: spelling_bytes(do_lower_case=False),
    }
)
SAMPLES = ROOT / "training" / "sample_data"


def count_ties(tokenizer, folder):
    """Encodes each line in Python and in the graph; returns how many lines there are, and how many differ."""
    lines = [line for file in sorted((SAMPLES / folder).glob("*.txt")) for line in file.read_text("utf-8").splitlines()]
    lines = [line.strip() for line in lines if line.strip()]
    differing, tokenize = 0, tf.function(tokenizer._model.in_graph().tokenize)
    for start in range(0, len(lines), 1024):
        block = lines[start : start + 1024]
        for row, wanted in zip(tokenize(tf.constant(block)).to_list(), tokenizer.encode_batch(block), strict=True):
            if row != wanted.tolist():
                assert is_tie(tokenizer, row, wanted.tolist())
                differing += 1
    return len(lines), differing


@pytest.mark.parametrize(("folder", "lines", "ties"), first_of([("nsmc", 38_384, 66), ("novels", 15_807, 0)]))
def test_python_and_graph_differ_only_where_scores_are_equal(folder, lines, ties):
    assert count_ties(TOKENIZERS["lower"], folder) == (lines, ties)


@pytest.mark.exhaustive
def test_korean_under_a_vocabulary_of_its_own(tmp_path):
    train_sentencepiece(sorted((SAMPLES / "nsmc").glob("*.txt")), tmp_path, 8000, keep_accents=True)
    assert count_ties(AlbertTokenizer.from_pretrained(tmp_path), "nsmc") == (38_384, 1)


@pytest.mark.parametrize("kind", first_of(["lower", "cased", "bytes_cased"]))
def test_recorded_lines(kind):
    texts = [line["text"] for line in read_lines("T1_tokenize")]
    assert_same(TOKENIZERS[kind], texts, max_length=LONG, return_offsets=True)


@pytest.mark.parametrize("kind", ["digit_comma", "digit_comma_reference"])
def test_recorded_lines_of_the_digit_comma_rule(kind):
    assert_same(TOKENIZERS[kind], [line["text"] for line in read_lines("T1b_digit_comma")], max_length=LONG)


def assert_same_around(tokenizer, codes):
    texts = [f"a{chr(code)}b" for code in codes]
    for start in range(0, len(texts), 1 << 17):
        assert_same(tokenizer, as_bytes(texts[start : start + (1 << 17)]))


def test_some_code_points():
    assert_same_around(TOKENIZERS["lower"], [*range(0x600), *range(0x600, 0x110000, 211)])


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["lower", "bytes"])  # test_charsmap.py tries the other clean-ups
def test_assigned_code_points(kind):
    assert_same_around(TOKENIZERS[kind], assigned_code_points())


@pytest.mark.exhaustive
@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.lists(st.text(max_size=40) | st.text("19,/ 2３½é가\u1100\u1161"), min_size=8, max_size=8))
def test_any_text(texts):
    for kind in ("lower", "cased", "accents", "digit_comma", "bytes"):
        assert_same(TOKENIZERS[kind], texts)


@pytest.mark.parametrize(
    "settings",
    first_of(
        [
            {"model_type": "bpe"},
            {"model_type": "bpe", "byte_fallback": True},
            {"add_dummy_prefix": False, "byte_fallback": True},
            {"treat_whitespace_as_suffix": True},
        ]
    ),
    ids=str,
)
def test_other_kinds_of_models(settings):
    texts = [" 漢", *(line["lower"] for line in read_lines("T1_tokenize")[:400]), *AWKWARD_TEXTS]
    assert_same(small_tokenizer(**settings), texts, max_length=LONG, return_offsets=True)


def test_parts_of_pieces_that_are_spelled_in_bytes():
    """The digit-comma rule splits a piece, and what is in front of its comma is no piece."""
    tokenizer = small_tokenizer(byte_fallback=True, user_defined_symbols=["\u0663,", "@9,", "漢9,"])
    assert tokenizer.tokenize("\u0663,")[-3:] == ["<0xD9>", "<0xA3>", ","]
    draw = random.Random(0)
    parts = ["\u0663,", "@9,", "漢9,", "a", " ", "漢", "é"]
    texts = ["".join(draw.choices(parts, k=draw.randrange(12))) for _ in range(500)]
    assert_same(tokenizer, texts)
    wanted = tokenizer(["a\u0663,b"], return_offsets=True)["offsets"][0].tolist()
    assert wanted[-6:] == [[0, 1], [1, 3], [1, 3], [1, 3], [3, 4], [0, 0]]
    assert_same(tokenizer, texts, return_offsets=True)


def test_with_byte_fallback_no_text_is_unknown():
    tokenizer = TOKENIZERS["bytes"]
    for allow_special in (False, True):
        row = tokenizer("<unk> \U0010fff8", allow_special=allow_special)["input_ids"][0, 1:-1]
        assert tokenizer.decode(row.tolist()) == "<unk> \U0010fff8"


def test_of_a_long_text_the_part_that_can_be_used_is_read():
    """Unknown characters take time in the square of their number in the graph; a run of them is one id."""
    tokenizer = TOKENIZERS["lower"]
    unknown = "\u0e01" * 65_535
    texts = [unknown + "a b", "\u0e01" * 1_400_000, "a" + " " * 65_533 + "bc"]
    assert_same(tokenizer, texts)
    assert_same(tokenizer, texts[2:], pairs=["one"], max_length=16)
    assert tokenizer.encode(texts[0])[:-1] == tokenizer(texts[0])["input_ids"][0, 1:-1].tolist()
    untruncated = tokenizer(texts[:1], max_length=LONG)["input_ids"], tokenizer(texts[:1], doc_stride=8)["input_ids"]
    assert all(ids.shape[1] == len(tokenizer.encode(texts[0])) + 2 for ids in untruncated)


# === User-defined pieces ===

# Some the clean-up would change, some begin like another or like a special piece, some end where a rule goes on, some
# are split by the digit-comma rule, and of one there is nothing but a mark.
SYMBOLS = ["[E1]", "@user", "@u", "É!", "É", "e", "가", "\u09c7", "[M", "½", "ﬁ", "ㅋㅋ", "\u0301x"]
SPLIT = ["漢9,", "@9,", "\u0663,", "²,", "½9,", "ﷺ9,"]
PARTS = [*SYMBOLS, *SPLIT, *"  .!~-é漢字9,rRmM]\u0301\u0308\u11a8\u09be\u3000\0\u1112\u1161😀", "[e1]", "@USER"]
PARTS += ["E\u0301", "!!!!", "~~~~~~~", "the ", "[MASK]", "<unk>", "1999,", "각", "ASK]"]
OPTIONS = [
    TokenizerOptions(),
    TokenizerOptions(do_lower_case=False, reference_digit_comma=True),
    TokenizerOptions(keep_accents=True),
]


@functools.cache
def trained(byte_fallback, symbols, vocab_size=900):
    settings = {"byte_fallback": byte_fallback, "user_defined_symbols": list(symbols), "vocab_size": vocab_size}
    return small_tokenizer(**settings)._model._model_proto


def with_symbols(options=OPTIONS[0], byte_fallback=False, symbols=(*SYMBOLS, *SPLIT), **settings):
    return AlbertTokenizer(SentencePieceModel(trained(byte_fallback, symbols, **settings), options))


@pytest.mark.parametrize(
    ("options", "byte_fallback", "allow_special"),
    first_of([*diagonal(OPTIONS, [False, True], [False, True]), (OPTIONS[0], False, True), (OPTIONS[1], True, False)]),
    ids=str,
)
def test_user_defined_pieces(options, byte_fallback, allow_special):
    draw = random.Random(0)
    texts = ["".join(draw.choices(PARTS, k=draw.randrange(30))) for _ in range(500)]
    texts += [line["text"] for line in read_lines("T1_tokenize")[::10]]
    texts += [*AWKWARD_TEXTS, b"[E1\xff]", b"@user\xcc", b"\xff\xcc\x81x"]
    tokenizer = with_symbols(options, byte_fallback)
    assert_same(tokenizer, texts, allow_special=allow_special, return_offsets=True, max_length=100_000)
    found = set(np.concatenate(tokenizer.encode_batch(texts)).tolist())
    assert {tokenizer.pieces.index(symbol) for symbol in SYMBOLS} < found


def test_ids_of_a_split_one_all_cover_it():
    for symbol, count in (("²,", 2), ("½9,", 3), ("@9,", 2)):
        spans = with_symbols()(f"a{symbol}b", return_offsets=True)["offsets"][0, 2:-2].tolist()
        assert spans == [[1, 1 + len(symbol)]] * count


# SentencePiece looks at 32 rules that fit at one place.
NESTED = tuple("=" * length for length in range(2, 41))


@pytest.mark.parametrize(
    ("symbols", "byte_fallback"),
    [(("▁of",), True), (("a b",), False), (("\ufffd",), True), (("\ufffd",), False), (NESTED, True)],
)
def test_uncommon_ones(symbols, byte_fallback):
    texts = [f"one {symbols[0]} two{symbols[0]}", "x of y a b", "▁of", b"a\xffb", "=" * 40 + "漢"]
    assert_same(with_symbols(byte_fallback=byte_fallback, symbols=symbols), texts, return_offsets=True)


def test_a_thousand_of_them():
    symbols = tuple(f"[E{number}-{number**5 % 9973}]" for number in range(1000))
    texts = [f"a {symbol}b {symbol.lower()}" for symbol in symbols]
    tokenizer = with_symbols(symbols=symbols, vocab_size=2000)
    assert_same(tokenizer, texts, return_offsets=True)
    found = set(np.concatenate(tokenizer.encode_batch(texts)).tolist())
    assert {tokenizer.pieces.index(symbol) for symbol in symbols} < found
