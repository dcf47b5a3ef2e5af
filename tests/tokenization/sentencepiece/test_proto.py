"""Proves that damaged SentencePiece models are refused by name, and can neither crash nor stall."""

import base64

import numpy as np
import pytest

from albert_tf.tokenization import AlbertTokenizer
from albert_tf.tokenization.sentencepiece.charsmap import check_charsmap
from albert_tf.tokenization.sentencepiece.proto import read_charsmap, replace_charsmap
from tests.tokenization.golden import TINY_MODEL

PROTO = TINY_MODEL.read_bytes()


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
    return _join(_units(charsmap)[0], b"x\0")


@pytest.mark.parametrize("damage", [_with_cycle, _beyond_the_end, _targets_cut, lambda _: b"\1", lambda raw: raw[:-1]])
def test_rules_that_lead_nowhere_are_refused(damage, tmp_path):
    check_charsmap(read_charsmap(PROTO))
    (tmp_path / "spiece.model").write_bytes(replace_charsmap(PROTO, damage(read_charsmap(PROTO))))
    with pytest.raises(ValueError, match=r"spiece\.model.*normalisation rules are damaged"):
        AlbertTokenizer.from_pretrained(tmp_path)


# Any other damage is in tests/fuzz.
@pytest.mark.parametrize(
    "content",
    [
        *(b"", PROTO[:1], PROTO[: len(PROTO) // 2], PROTO.replace(b"[MASK]", b"[MAS\xcb]")),
        *(b"\x89PNG\r\n", b"{}", base64.b64encode(b"model" * 100), b"PK\3\4" + b"\0" * 99),
        *(b"\x0a\x05abc", b"\x0b", b"\x08", b"\xff" * 2**20, b"hello world, this is no model"),
    ],
    ids=lambda content: f"{content[:4].hex()} {len(content)}",
)
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "spiece.model").write_bytes(content)
    with pytest.raises(ValueError, match=r"must be a SentencePiece model\. Received: .*spiece\.model"):
        AlbertTokenizer.from_pretrained(tmp_path)
