"""Proves that spans of a vocabulary file's pieces point into the original text, cover it, and fit their ids."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tokenization.golden import AWKWARD_TEXTS, read_lines
from tests.tokenization.wordpiece_golden import TOKENIZERS

TEXTS = st.text() | st.text("  나는 밥을먹었다.._\u1107\u1161\u11b8abé\u0301É漢#\u200b\ud800\ufa6e1\t")
KINDS = pytest.mark.parametrize("kind", TOKENIZERS)


def _spans(kind, text):
    inputs = TOKENIZERS[kind]([text], max_length=1_000_000, return_offsets=True)
    assert inputs["input_ids"][0, 1:-1].tolist() == TOKENIZERS[kind].encode(text)
    assert inputs["offsets"][0, [0, -1]].tolist() == [[0, 0], [0, 0]]
    return inputs["offsets"][0, 1:-1].tolist()


def _check_cover(kind, text):
    tokenizer, spans = TOKENIZERS[kind], _spans(kind, text)
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    # What lies in front, between and behind is nothing: white space, or characters that the clean-up drops.
    borders = [0, *itertools.chain.from_iterable(spans), len(text)]
    for start, end in zip(borders[::2], borders[1::2], strict=True):
        assert tokenizer.encode(text[start:end]) == []
    for (start, end), (next_start, next_end) in itertools.pairwise(spans):
        # Spans overlap where one character became several pieces, and there alone.
        assert end <= next_start or (start, end) == (next_start, next_end) or end - next_start == 1
        assert end <= next_end
    if kind != "bare_final":
        inside = text[spans[0][0] : spans[-1][1]] if spans else ""
        assert tokenizer.encode(inside) == tokenizer.encode(text)


@KINDS
@settings(max_examples=200, derandomize=True, deadline=None)
@given(text=TEXTS)
def test_spans_cover_any_text(kind, text):
    _check_cover(kind, text)


@KINDS
def test_spans_cover_awkward_texts(kind):
    for text in AWKWARD_TEXTS:
        _check_cover(kind, text)


@KINDS
def test_spans_of_recorded_lines(kind):
    lines = read_lines("W1_wordpiece")
    for line in lines[:: 1 if kind == "lower" else 5]:
        _check_cover(kind, line["text"])


def test_where_nothing_is_changed_spans_spell_the_pieces():
    tokenizer = TOKENIZERS["cased"]
    for line in read_lines("W1_wordpiece"):
        text = line["text"]
        if not text.isascii() or not text.isprintable():
            continue
        for (start, end), piece in zip(_spans("cased", text), line["tokens_cased"], strict=True):
            assert piece == "[UNK]" or text[start:end] == piece.removeprefix("##")
    assert tokenizer.tokenize("##") == ["#", "#"]


@pytest.mark.parametrize(
    ("kind", "text", "spans"),
    [
        ("lower", "  Café, x", [(2, 3), (3, 5), (5, 6), (6, 7), (8, 9)]),
        ("lower", "먹었다.", [(0, 3), (3, 4)]),
        ("lower", "\u200ba\u0301\u200b b", [(1, 4), (5, 6)]),
        ("lower", "\u1106\u1165\u11a8어\u11bb다 \u1161b", [(0, 6), (7, 9)]),
        ("word_end", "나는 밥을 먹었다.", [(0, 1), (1, 2), (3, 4), (4, 5), (6, 9), (9, 10)]),
        ("word_end", "한 b", [(0, 1), (1, 1), (2, 3)]),
        ("word_end", "힣 b", [(0, 1), (2, 3)]),
        ("lower", "가".encode() + b"\xff b", [(0, 4), (5, 6)]),
    ],
)
def test_spans_by_hand(kind, text, spans):
    encoded = TOKENIZERS[kind]._model.encode_with_offsets(text)
    assert [tuple(span) for span in encoded.offsets.tolist()] == spans, TOKENIZERS[kind].tokenize(text)
