"""Proves that offsets point into the original text, leave nothing of it out, and fit their ids."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.tokenization import AlbertTokenizer

from .golden import AWKWARD_TEXTS, TINY_MODEL, read_lines

TOKENIZERS = {
    "english": AlbertTokenizer.english(),
    "digit_comma": AlbertTokenizer.from_pretrained(TINY_MODEL),
    "digit_comma_reference": AlbertTokenizer.from_pretrained(TINY_MODEL, reference_digit_comma=True),
}
TEXTS = st.text() | st.text("  a1,9/３ﬁ½é\u0301가\u1100\u1161\u11a8\ud800\x00\u3000¨▁")


def _spans(tokenizer, text):
    inputs = tokenizer([text], max_length=1_000_000, return_offsets=True)
    assert inputs["input_ids"][0].tolist() == tokenizer([text], max_length=1_000_000)["input_ids"][0].tolist()
    assert inputs["offsets"][0, [0, -1]].tolist() == [[0, 0], [0, 0]]
    return inputs["offsets"][0, 1:-1].tolist()


def _check_cover(tokenizer, text):
    spans = _spans(tokenizer, text)
    if not spans:
        assert tokenizer.encode(text) == []
        return
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    # What lies outside is nothing: white space, or characters that the clean-up deletes.
    assert tokenizer.encode(text[: spans[0][0]]) == []
    assert tokenizer.encode(text[spans[-1][1] :]) == []
    for (_, end), (start, next_end) in itertools.pairwise(spans):
        # Without a gap, and an overlap is one character (or one syllable's parts) that became several pieces.
        assert start <= end <= max(end, next_end)
        assert start == end or tokenizer._model.processor.Normalize(text[start:end]).removeprefix("▁") != ""
    inside = text[spans[0][0] : spans[-1][1]]
    assert tokenizer.encode(inside) == tokenizer.encode(text)


@pytest.mark.parametrize("tokenizer", TOKENIZERS.values(), ids=TOKENIZERS.keys())
@settings(max_examples=300, derandomize=True, deadline=None)
@given(TEXTS)
def test_spans_cover_any_text(tokenizer, text):
    _check_cover(tokenizer, text)


@pytest.mark.parametrize("tokenizer", TOKENIZERS.values(), ids=TOKENIZERS.keys())
def test_spans_cover_awkward_texts(tokenizer):
    for text in AWKWARD_TEXTS:
        _check_cover(tokenizer, text)


def test_spans_of_recorded_lines():
    for name, case in (("english", "T1_tokenize"), ("digit_comma", "T1b_digit_comma")):
        for line in read_lines(case):
            _check_cover(TOKENIZERS[name], line["text"])


def test_where_nothing_is_changed_spans_spell_the_pieces():
    tokenizer = TOKENIZERS["digit_comma"]
    for line in read_lines("T1b_digit_comma"):
        text = line["lower"]
        if not text or not text.isascii():
            continue
        pieces = [text[start:end].replace(" ", "▁") for start, end in _spans(tokenizer, text)]
        assert ["▁" + pieces[0], *pieces[1:]] == tokenizer.tokenize(text)


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("The Café", [(0, 3), (3, 8)]),
        ("cafe\u0301s x", [(0, 5), (5, 6), (6, 8)]),
        ("  oﬃce", [(2, 6)]),
        ("½", [(0, 1), (0, 1), (0, 1)]),
        ("１９９９，", [(0, 4), (4, 5)]),
        ("the\ud800x", [(0, 3), (3, 4), (4, 5)]),
    ],
)
def test_spans_by_hand(text, spans):
    tokenizer = TOKENIZERS["english"]
    assert [tuple(span) for span in _spans(tokenizer, text)] == spans, tokenizer.tokenize(text)


def test_offsets_of_a_padded_truncated_pair():
    inputs = TOKENIZERS["english"](["hello world", "a"], ["which day now", "b"], max_length=6, return_offsets=True)
    assert inputs["offsets"].tolist() == [
        [[0, 0], [0, 5], [5, 11], [0, 0], [0, 5], [0, 0]],
        [[0, 0], [0, 1], [0, 0], [0, 1], [0, 0], [0, 0]],
    ]
