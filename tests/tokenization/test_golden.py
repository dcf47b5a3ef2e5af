"""Proves that pieces and ids are the reference's, on every recorded line, character and piece."""

import unicodedata

import numpy as np
import pytest

from albert_tf.tokenization import AlbertTokenizer

from .golden import GOLDEN, TINY_MODEL, clean_text, read_lines

RECORDED_UNICODE = "14.0.0"


@pytest.fixture(scope="module")
def lines():
    return read_lines("T1_tokenize")


def test_clean_text_of_every_line(lines):
    for line in lines:
        assert clean_text(line["text"]) == line["lower"]
        assert clean_text(line["text"], do_lower_case=False) == line["cased"]


@pytest.mark.parametrize("reference_digit_comma", [False, True])
def test_pieces_and_ids_of_every_line(lines, reference_digit_comma):
    tokenizer = AlbertTokenizer.english(reference_digit_comma=reference_digit_comma)
    assert len(lines) == 3188
    for line in lines:
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
