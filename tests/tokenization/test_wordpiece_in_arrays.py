"""Proves that a large batch of texts gets the ids that its words get one by one."""

import functools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.tokenization import longest_match_in_arrays
from albert_tf.tokenization.characters import CleanUp
from albert_tf.tokenization.characters_in_arrays import CleanUpInArrays
from albert_tf.tokenization.longest_match import LongestMatch
from albert_tf.tokenization.longest_match_in_arrays import LongestMatchInArrays
from albert_tf.tokenization.wordpiece_in_arrays import WordPieceInArrays
from albert_tf.tokenization.wordpiece_model import WordPieceModel

from .golden import AWKWARD_TEXTS, read_lines
from .wordpiece_golden import TOKENIZERS

MORE_TEXTS = [
    *("", " ", "\u200b", "a\ud800", "b c\udfff漢", "x" * 200, "x" * 201, "가" * 200, "가" * 201, "나" * 199 + "는"),
    *("a\x1cb\x85c\u2028d\u3000e", "\U0010ffff", "\ufffd", "\u1fef \u037e", "a\u0301\u200b b", "x" * 1_000_000),
    *(b"\xff\xfe", b"\xc0\x80a", b"\xe2\x82 a", b"\xff_", "." * 1000, "\ufa6e漢字a", "[UNK]_", "[UNK] _"),
]
KINDS = pytest.mark.parametrize("kind", TOKENIZERS)
PIECES = st.dictionaries(st.text("ab가 \0[#😀\ud800", max_size=4), st.integers(0, 1000), max_size=12)


@functools.cache
def _arrays(kind):
    return TOKENIZERS[kind]._model._in_arrays


def _one_by_one(kind, texts, monkeypatch):
    monkeypatch.setattr("albert_tf.tokenization.wordpiece_model._MANY_CHARACTERS", np.inf)
    rows = TOKENIZERS[kind].encode_batch(texts)
    monkeypatch.undo()
    return rows


def _assert_equal(rows, wanted):
    assert [row.tolist() for row in rows] == [row.tolist() for row in wanted]
    assert all(row.dtype == np.int32 for row in rows)


@KINDS
def test_recorded_and_awkward_texts(kind, monkeypatch):
    texts = [*(line["text"] for line in read_lines("W1_wordpiece")), *AWKWARD_TEXTS, *MORE_TEXTS]
    calls = []
    encode = WordPieceInArrays.encode
    monkeypatch.setattr(WordPieceInArrays, "encode", lambda *args: calls.append(args) or encode(*args))
    rows = TOKENIZERS[kind].encode_batch(texts)
    assert len(calls) == 1
    _assert_equal(rows, _one_by_one(kind, texts, monkeypatch))


@KINDS
def test_nothing_at_all(kind):
    assert _arrays(kind).encode([]) == []
    _assert_equal(_arrays(kind).encode(["", "\u200b", " "]), [np.zeros(0, np.int32)] * 3)


@pytest.mark.parametrize("kind", ["lower", "word_end"])
def test_every_code_point(kind, monkeypatch):
    texts = [
        " ".join(f"a{chr(code_point)}나{chr(code_point)}" for code_point in range(first, first + 256))
        for first in range(0, 0x110000, 256)
    ]
    _assert_equal(_arrays(kind).encode(texts), _one_by_one(kind, texts, monkeypatch))


@KINDS
@settings(max_examples=60, derandomize=True, deadline=None)
@given(
    texts=st.lists(
        st.text("나는 밥을먹었다.._\u1107\u1161\u11b8ab\u0301É漢#\u200b\ud800\ufa6e1\t") | st.text(), max_size=8
    )
)
def test_any_text(kind, texts):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(longest_match_in_arrays, "_FEW_WORDS", 0)
        rows = _arrays(kind).encode(texts)
    _assert_equal(rows, TOKENIZERS[kind].encode_batch(texts))


@settings(max_examples=300, derandomize=True, deadline=None)
@given(
    initial=PIECES, following=PIECES, words=st.lists(st.text("ab가 \0[#😀\ud800", min_size=1, max_size=12), max_size=20)
)
def test_any_pieces(initial, following, words):
    plain = LongestMatch(initial, following, unknown=0)
    starts = np.cumsum([0, *map(len, words)])[:-1]
    characters = np.array([ord(character) for word in words for character in word], np.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(longest_match_in_arrays, "_FEW_WORDS", 0)
        found = LongestMatchInArrays(plain)(characters, starts)
    rows = np.split(found, starts[1:]) if words else []
    wanted = [np.frombuffer(plain(word), np.int32).tolist() for word in words]
    assert [row[row >= 0].tolist() for row in rows] == wanted


def test_many_pieces_that_meet_in_the_table():
    random = np.random.default_rng(0)
    pieces = {"".join(map(chr, row)): index for index, row in enumerate(random.integers(0x4E00, 0x9000, [40_000, 2]))}
    match = LongestMatchInArrays(LongestMatch(pieces, {}, unknown=-2))
    words = [*pieces, *("".join(map(chr, row)) for row in random.integers(0x4E00, 0x9000, [40_000, 2]))]
    characters = np.array([list(map(ord, word)) for word in words], np.int32).reshape(-1)
    found = match(characters, np.arange(0, len(characters), 2))
    np.testing.assert_array_equal(found[::2], [pieces.get(word, -2) for word in words])
    assert (found[1::2] == -1).all()


def test_a_thread_reads_while_another_learns_the_same_characters(monkeypatch):
    clean = CleanUpInArrays(CleanUp(True, True, True, split_punctuation=True, split_chinese=True))
    characters = np.array([ord(character) for character in "Éa漢!"], np.int32)
    wanted = clean(characters).code_points.tolist()
    append, read = np.append, []

    def read_then_append(*args):
        read.append(clean(characters).code_points.tolist())
        return append(*args)

    monkeypatch.setattr(np, "append", read_then_append)
    clean._meet(characters.tolist())
    monkeypatch.undo()
    assert read == [wanted] == [clean(characters).code_points.tolist()]


def test_words_that_take_many_steps_are_left_to_the_plain_way():
    pieces = ("[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##a", "a" * 100 + "b", "##" + "a" * 100 + "b")
    model = WordPieceModel(pieces)
    texts = ["a" * 200] + ["a"] * 4000
    start = time.process_time()
    rows = model._in_arrays.encode(texts)
    assert time.process_time() - start < 0.5
    assert [row.tolist() for row in rows] == [[4] + [5] * 199] + [[4]] * 4000


@KINDS
def test_words_at_the_border_of_two_blocks(kind, monkeypatch):
    texts = ["나는 밥을 먹었다. abc " * size for size in (8000, 1, 7000, 3, 20000)]
    _assert_equal(_arrays(kind).encode(texts), _one_by_one(kind, texts, monkeypatch))
