"""Proves that answers are found among the tokens, and cut from the original text again, in English and Korean."""

import gzip
import json
import unicodedata

import numpy as np
import pytest

from albert_tf.tokenization import AlbertTokenizer, cut_text, find_tokens
from tests.tokenization.golden import GOLDEN
from tests.tokenization.wordpiece_golden import TOKENIZERS

DATES = "임수경은 1989년 6월 30일 평양에 도착하였다. 카페 ＡＢＣ①에서 Café를 마셨다."
NAMES = "임수경은 평양에서, 안톤 체호프는 벚꽃 동산에서 Café를"
KOREAN = {
    DATES: ["1989년", "ＡＢＣ①에서", "Café를", "도착하였다."],
    NAMES: ["임수경은", "평양에서", "안톤 체호프는", "벚꽃 동산에서", "Café를"],
}


@pytest.fixture(scope="module")
def tokenizer():
    return AlbertTokenizer.english()


@pytest.mark.parametrize(("name", "answers", "longer"), [("squad_v2", 358, 2), ("xquad_en", 100, 0)])
def test_no_answer_of_the_reference_is_lost(tokenizer, name, answers, longer):
    """An answer that ends inside of a piece ("75" of "75%") is cut with the whole of that piece."""
    with gzip.open(GOLDEN / "Q1_squad_features" / f"{name}.json.gz", "rt", encoding="utf-8") as file:
        pages = json.load(file)["data"]
    found, uncut = 0, 0
    for paragraph in (paragraph for page in pages for paragraph in page["paragraphs"]):
        text = paragraph["context"]
        offsets = tokenizer(text, max_length=10_000, return_offsets=True)["offsets"][0]
        for answer in (answer for question in paragraph["qas"] for answer in question["answers"]):
            start, expected = answer["answer_start"], answer["text"]
            cut = cut_text(text, offsets, find_tokens(offsets, start, start + len(expected)))
            assert expected in cut
            found, uncut = found + 1, uncut + (cut != expected)
    assert (found, uncut) == (answers, longer)


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("kind", ["english", "lower", "cased"])
def test_answers_and_entities_in_korean_are_cut_as_they_were_written(form, kind):
    tokenizer = AlbertTokenizer.english() if kind == "english" else TOKENIZERS[kind]
    for text, parts in KOREAN.items():
        text = unicodedata.normalize(form, text)
        offsets = tokenizer(text, return_offsets=True)["offsets"][0]
        for part in (unicodedata.normalize(form, part) for part in parts):
            start = text.index(part)
            assert cut_text(text, offsets, find_tokens(offsets, start, start + len(part))) == part


def test_special_tokens_are_cut_to_nothing_and_never_found(tokenizer):
    inputs = tokenizer(["a dog", "a much longer text"], return_offsets=True)
    offsets = inputs["offsets"][0]
    assert cut_text("a dog", offsets, slice(0, 1)) == ""
    assert cut_text("a dog", offsets, slice(0, len(offsets))) == "a dog"
    with pytest.raises(ValueError, match=r"Received: start=7, end=9 and tokens from 0 to 5; use the window"):
        find_tokens(offsets, 7, 9)
    with pytest.raises(ValueError, match="Received: start=2, end=2"):
        find_tokens(offsets, 2, 2)
    with pytest.raises(ValueError, match="tokens from 0 to 0"):
        find_tokens(np.zeros((0, 2), int), 0, 1)
