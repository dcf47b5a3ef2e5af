"""Proves that with all cleaning off the tokenizer gives KerasHub's recorded ids, which are plain SentencePiece's."""

import io
import json
import pathlib

import pytest
import sentencepiece

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


def test_a_vocabulary_with_a_user_defined_mask(tmp_path):
    """KerasHub's page makes one; in texts "[MASK]" is no special piece, as with any other vocabulary."""
    writer, names = (
        io.BytesIO(),
        {"pad_piece": "<pad>", "unk_piece": "<unk>", "bos_piece": "[CLS]", "eos_piece": "[SEP]"},
    )
    ids = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3, "user_defined_symbols": "[MASK]"}
    texts = iter(["the quick brown fox", "the earth is round"])
    settings = {"vocab_size": 12, "model_type": "WORD", "minloglevel": 2, **ids, **names}
    sentencepiece.SentencePieceTrainer.Train(sentence_iterator=texts, model_writer=writer, **settings)
    (tmp_path / "vocabulary.spm").write_bytes(writer.getvalue())
    tokenizer = AlbertTokenizer.from_pretrained(tmp_path / "vocabulary.spm")
    assert tokenizer.tokenize("the quick [MASK]") == ["▁the", "▁quick", "▁[mask]"]
    assert tokenizer.encode("[MASK]") == [1]
    assert tokenizer("the [MASK]", allow_special=True)["input_ids"].tolist() == [[2, tokenizer.encode("the")[0], 4, 3]]
