"""Proves that pieces and ids are the reference's on every recorded line, and plain SentencePiece's without clean-up."""

import io
import json
import unicodedata

import numpy as np
import pytest
import sentencepiece

from albert_tf.tokenization import AlbertTokenizer
from tests.tokenization.golden import GOLDEN, TINY_MODEL, clean_text, read_lines

RECORDED_UNICODE = "14.0.0"


def test_clean_text_of_every_line():
    for line in read_lines("T1_tokenize"):
        assert clean_text(line["text"]) == line["lower"]
        assert clean_text(line["text"], do_lower_case=False) == line["cased"]


@pytest.mark.parametrize("reference_digit_comma", [False, True])
def test_pieces_and_ids_of_every_line(reference_digit_comma):
    tokenizer = AlbertTokenizer.english(reference_digit_comma=reference_digit_comma)
    assert len(read_lines("T1_tokenize")) == 3188
    for line in read_lines("T1_tokenize"):
        assert tokenizer.tokenize(line["text"]) == line["pieces"]
        assert tokenizer.encode(line["text"]) == line["ids"]


@pytest.mark.parametrize(("reference_digit_comma", "suffix"), [(False, "_intended"), (True, "")])
def test_digit_comma_rule_as_meant_and_as_published(reference_digit_comma, suffix):
    tokenizer = AlbertTokenizer.from_pretrained(TINY_MODEL, reference_digit_comma=reference_digit_comma)
    lines = read_lines("T1b_digit_comma")
    rows = tokenizer.encode_batch([line["text"] for line in lines])
    assert len(lines) == 418
    for line, row in zip(lines, rows, strict=True):
        assert tokenizer.tokenize(line["text"]) == line["pieces" + suffix]
        assert row.tolist() == line["ids" + suffix]


def test_clean_text_of_every_recorded_character():
    table = np.load(GOLDEN / "T1_tokenize" / "codepoints.npz")
    ends = table["offsets"].tolist()
    flat = table["flat"].tolist()
    assert len(table["codepoints"]) == 85536
    for code_point, start, end in zip(table["codepoints"].tolist(), ends, ends[1:], strict=False):
        character, recorded = chr(code_point), "".join(map(chr, flat[start:end]))
        cleaned = clean_text(character)
        # Under another Unicode version, characters that one of the two does not know may differ.
        newly_known = unicodedata.unidata_version != RECORDED_UNICODE and character in (recorded, cleaned)
        assert cleaned == recorded or newly_known


def test_start_of_word_of_every_piece():
    recorded = np.load(GOLDEN / "start_pieces" / "start_pieces.npz")["is_start_piece_sp"]
    assert len(recorded) == 30_000
    np.testing.assert_array_equal(AlbertTokenizer.english().start_of_word, recorded)


def test_a_well_known_sentence():
    ids = AlbertTokenizer.english()(["The quick brown fox jumps over the lazy dog."])["input_ids"]
    assert ids.tolist() == [[2, 14, 2231, 886, 2385, 17659, 84, 14, 16792, 1952, 9, 3]]


# === With all cleaning off ===

KERAS_HUB = GOLDEN / "keras_hub_tokenizer"


def test_ids_of_keras_hub_and_capitals_that_they_lose():
    plain = AlbertTokenizer.from_pretrained(KERAS_HUB / "spm.model", do_lower_case=False, keep_accents=True)
    cases = json.loads((KERAS_HUB / "cases.json").read_text(encoding="utf-8"))["cases"]
    assert len(cases) == 10
    assert [plain.encode(case["text"]) for case in cases] == [case["ids"] for case in cases]
    uncased = AlbertTokenizer.from_pretrained(KERAS_HUB / "spm.model", do_lower_case=True)
    assert plain.unk_token_id in plain.encode("The Hound")
    assert uncased.encode("The Hound") == plain.encode("the hound")


def test_a_vocabulary_with_a_user_defined_mask(tmp_path):
    """KerasHub's page makes one; in texts "[MASK]" is no special piece, as with any other vocabulary."""
    writer = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(["the quick brown fox", "the earth is round"]),
        model_writer=writer,
        **{"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3, "user_defined_symbols": "[MASK]"},
        **{"pad_piece": "<pad>", "unk_piece": "<unk>", "bos_piece": "[CLS]", "eos_piece": "[SEP]"},
        **{"vocab_size": 12, "model_type": "WORD", "minloglevel": 2},
    )
    (tmp_path / "vocabulary.spm").write_bytes(writer.getvalue())
    tokenizer = AlbertTokenizer.from_pretrained(tmp_path / "vocabulary.spm")
    assert tokenizer.tokenize("the quick [MASK]") == ["▁the", "▁quick", "▁[mask]"]
    assert tokenizer.encode("[MASK]") == [1]
    assert tokenizer("the [MASK]", allow_special=True)["input_ids"].tolist() == [[2, tokenizer.encode("the")[0], 4, 3]]
