"""Proves that damaged SentencePiece models and settings are refused by name, and can neither crash nor stall."""

import base64
import random
import re

import numpy as np
import pytest

from albert_tf.tokenization import AlbertTokenizer
from albert_tf.tokenization.sentencepiece.charsmap import check_charsmap
from albert_tf.tokenization.sentencepiece.proto import read_charsmap, replace_charsmap

from .golden import TINY_MODEL


def _units(charsmap):
    size = int.from_bytes(charsmap[:4], "little")
    return np.frombuffer(charsmap, "<u4", size // 4, 4).copy(), charsmap[4 + size :]


def _join(units, targets):
    return (4 * len(units)).to_bytes(4, "little") + units.astype("<u4").tobytes() + targets


def _with_cycle(charsmap):
    """Each child of the root leads back to the root's children: endless keys."""
    units, targets = _units(charsmap)
    root = (int(units[0]) >> 10) << (8 if int(units[0]) & 512 else 0)
    for byte in range(1, 256):
        node = root ^ byte
        if int(units[node]) & 0x800000FF == byte:
            units[node] = byte | (node ^ root) << 10
    return _join(units, targets)


def _beyond_the_end(charsmap):
    units, targets = _units(charsmap)
    units[0] = (1 << 21) - 1 << 10
    return _join(units, targets)


def _targets_cut(charsmap):
    units, _ = _units(charsmap)
    return _join(units, b"x\0")


@pytest.mark.parametrize("damage", [_with_cycle, _beyond_the_end, _targets_cut, lambda _: b"\1", lambda raw: raw[:-1]])
def test_rules_that_lead_nowhere_are_refused(damage, tmp_path):
    proto = TINY_MODEL.read_bytes()
    check_charsmap(read_charsmap(proto))
    (tmp_path / "spiece.model").write_bytes(replace_charsmap(proto, damage(read_charsmap(proto))))
    with pytest.raises(ValueError, match=r"spiece\.model.*normalisation rules are damaged"):
        AlbertTokenizer.from_pretrained(tmp_path)


def test_cut_models_are_refused(tmp_path):
    proto, draw = TINY_MODEL.read_bytes(), random.Random(0)
    for length in [0, 1, *(draw.randrange(len(proto)) for _ in range(20))]:
        (tmp_path / "spiece.model").write_bytes(proto[:length])
        with pytest.raises(ValueError, match=r"spiece\.model"):
            AlbertTokenizer.from_pretrained(tmp_path)


def test_flipped_bits_are_refused_by_name(tmp_path):
    proto, draw = TINY_MODEL.read_bytes(), random.Random(0)
    pieces = proto.index(read_charsmap(proto))
    refused = 0
    for _ in range(20):
        damaged = bytearray(proto)
        damaged[draw.randrange(pieces)] ^= 0x80  # which makes text of an ASCII letter invalid
        (tmp_path / "spiece.model").write_bytes(damaged)
        try:
            AlbertTokenizer.from_pretrained(tmp_path)
        except ValueError as error:
            assert re.search(r"Received: .*spiece\.model", str(error))  # noqa: PT017
            refused += 1
    assert refused > 5


@pytest.mark.parametrize(
    "content",
    [
        *(b"\x89PNG\r\n", b"{}", base64.b64encode(b"model" * 100), b"PK\3\4" + b"\0" * 99),
        *(b"\x0a\x05abc", b"\x0b", b"\x08", b"\xff" * 2**20, b"hello world, this is no model"),
    ],
    ids=lambda content: content[:4].hex(),
)
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "spiece.model").write_bytes(content)
    with pytest.raises(ValueError, match=r"must be a SentencePiece model\. Received: .*spiece\.model"):
        AlbertTokenizer.from_pretrained(tmp_path)


@pytest.mark.parametrize("content", ["{", "[]", '{"do_lower_case": 1}', '{"segmenter": 5}', '{"segmenter": ["kiwi"]}'])
def test_settings_are_refused(tmp_path, content):
    (tmp_path / "spiece.model").write_bytes(TINY_MODEL.read_bytes())
    (tmp_path / "tokenizer_config.json").write_text(content)
    with pytest.raises(ValueError, match=r"is not valid JSON|holds list|must be True or False|`segmenter` must be"):
        AlbertTokenizer.from_pretrained(tmp_path)


def test_what_is_too_large_is_not_read(tmp_path):
    for name in ("spiece.model", "vocab.txt", "tokenizer.json"):
        file = tmp_path / name
        with file.open("wb") as sparse:
            sparse.truncate(1 << 40)
        with pytest.raises(ValueError, match=rf"{name} is larger than"):
            AlbertTokenizer.from_pretrained(file)
        file.unlink()
