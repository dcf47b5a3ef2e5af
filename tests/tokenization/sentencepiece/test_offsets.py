"""Proves that offsets point into the original text, leave nothing of it out, and fit their ids."""

import itertools
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.tokenization import AlbertTokenizer, train_sentencepiece
from albert_tf.tokenization.sentencepiece.offsets import readable
from tests.parameters import MadeOnce
from tests.tokenization.golden import AWKWARD_TEXTS, TINY_MODEL, read_lines

TOKENIZERS = MadeOnce(
    {
        "english": AlbertTokenizer.english,
        "digit_comma": lambda: AlbertTokenizer.from_pretrained(TINY_MODEL),
        "digit_comma_reference": lambda: AlbertTokenizer.from_pretrained(TINY_MODEL, reference_digit_comma=True),
    }
)
_BYTE = re.compile("<0x..>")
TEXTS = st.text() | st.text("  a1,9/３ﬁ½é\u0301가\u1100\u1161\u11a8\ud800\x00\u3000¨▁")


def _spans(tokenizer, text):
    inputs = tokenizer([text], max_length=1_000_000, return_offsets=True)
    assert inputs["input_ids"][0].tolist() == tokenizer([text], max_length=1_000_000)["input_ids"][0].tolist()
    assert inputs["offsets"][0, [0, -1]].tolist() == [[0, 0], [0, 0]]
    return inputs["offsets"][0, 1:-1].tolist()


def _check_cover(tokenizer, text):
    ids, spans = tokenizer.encode(text), _spans(tokenizer, text)
    _check_spans(tokenizer, text, ids, spans)
    if not spans:
        return
    # What lies outside is nothing: white space, or characters that the clean-up deletes.
    assert tokenizer.encode(text[: spans[0][0]]) == []
    assert tokenizer.encode(text[spans[-1][1] :]) == []
    assert tokenizer.encode(text[spans[0][0] : spans[-1][1]]) == ids


def _check_spans(tokenizer, text, ids, spans):
    assert len(spans) == len(ids)
    pieces = [tokenizer.pieces[index] for index in ids]
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    for place, (start, end) in enumerate(spans):
        if start == end:
            # A word start that no text stands for: in front of a text, or as the reference's digit-comma rule puts it.
            assert pieces[place] == "▁"
            assert place == 0 or tokenizer.options.reference_digit_comma
            assert start == spans[place + 1][0]
        elif ids[place] != tokenizer.unk_token_id and not _BYTE.fullmatch(pieces[place]):
            assert pieces[place].removeprefix("▁") in _clean(tokenizer, text[start:end])
    filled = [(*span, piece) for span, piece in zip(spans, pieces, strict=True) if span[0] < span[1]]
    for (start, end, piece), (next_start, next_end, _) in itertools.pairwise(filled):
        assert start <= next_start <= end <= next_end
        if next_start < end:
            # What two ids share is one character of the text, with what is deleted behind it, or spells one syllable;
            # and it became several characters, or bytes.
            shared = _clean(tokenizer, text[next_start:end])
            assert _clean(tokenizer, text[next_start + 1 : end]) == "" or len(shared) == 1
            assert len(shared) > 1 or _BYTE.fullmatch(piece)


def _clean(tokenizer, text):
    # White space behind the dot is not dropped.
    return tokenizer._model.processor.Normalize(readable("." + text)).removeprefix("▁.")


@pytest.fixture(params=TOKENIZERS, scope="module")
def tokenizer(request):
    return TOKENIZERS[request.param]


@settings(max_examples=120, derandomize=True, deadline=None)
@given(TEXTS)
def test_spans_cover_any_text(tokenizer, text):
    _check_cover(tokenizer, text)


def test_spans_cover_awkward_texts(tokenizer):
    for text in AWKWARD_TEXTS:
        _check_cover(tokenizer, text)


def test_spans_cover_texts_spelled_in_bytes(tmp_path):
    (tmp_path / "corpus.txt").write_text("the old man and the sea, 1999\n" * 20, encoding="utf-8")
    train_sentencepiece(tmp_path / "corpus.txt", tmp_path / "bytes", vocab_size=285, byte_fallback=True)
    tokenizer = AlbertTokenizer.from_pretrained(tmp_path / "bytes")
    draw, parts = random.Random(0), "  ae9,½é가\u0301\u1100\u1161\ud800漢😀¨▁"
    drawn = ["".join(draw.choices(parts, k=draw.randrange(20))) for _ in range(500)]
    assert any(_BYTE.fullmatch(piece) for piece in tokenizer.tokenize("½"))
    for text in AWKWARD_TEXTS + drawn:
        _check_cover(tokenizer, text)


@pytest.mark.exhaustive
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
