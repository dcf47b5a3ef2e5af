"""Proves that with all cleaning off the tokenizer gives KerasHub's recorded ids, which are plain SentencePiece's."""

import json
import pathlib

import pytest

from albert_tf import AlbertTokenizer

FOLDER = pathlib.Path(__file__).parents[1] / "golden" / "keras_hub_tokenizer"
CASES = json.loads((FOLDER / "cases.json").read_text(encoding="utf-8"))["cases"]


@pytest.fixture(scope="module")
def plain():
    return AlbertTokenizer.from_pretrained(FOLDER / "spm.model", do_lower_case=False, keep_accents=True)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["text"][:20])
def test_ids_are_the_recorded_ones(plain, case):
    assert plain.encode(case["text"]) == case["ids"]


def test_an_uncased_tokenizer_knows_the_capitals_that_these_ids_lose(plain):
    uncased = AlbertTokenizer.from_pretrained(FOLDER / "spm.model", do_lower_case=True)
    assert plain.unk_token_id in plain.encode("The Hound")
    assert uncased.encode("The Hound") == plain.encode("the hound")
