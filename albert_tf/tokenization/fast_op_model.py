"""tensorflow-text's fast SentencePiece model, changed so that it adds up scores exactly as SentencePiece does.

The fast op charges an unknown character once for each of its bytes, SentencePiece once. No text gets other pieces from
that alone, but sums of scores are rounded, and where two splits of a text have exactly equal scores ("!!!!" as "!" +
"!!!" or as "!!!" + "!") the rounding decides. So the changed model knows every character there is: those that are no
piece become a piece of their own, with the score that SentencePiece gives to an unknown character.
"""

import struct
from dataclasses import dataclass

import numpy as np

from albert_tf.tokenization.double_array import DoubleArray

# Numbers of the fields of `EncoderConfig`, the flatbuffer that the fast op reads, and of the tries inside it.
_UNKNOWN_CODE, _UNKNOWN_PENALTY, _PIECES, _SCORES = 3, 4, 6, 7
_TRIE_NODES = 0

_NO_CODE = -1


@dataclass(frozen=True)
class FastOpModel:
    """What the fast op reads.

    Attributes:
        buffer: the flatbuffer.
        unknown_id: the id of a piece that is one unknown character, or one byte that is no UTF-8: the vocabulary's
            size.
    """

    buffer: bytes
    unknown_id: int


def complete_fast_model(converted: bytes) -> FastOpModel:
    """Makes every unknown character a piece.

    Args:
        converted: the model as tensorflow-text converts it.

    Returns:
        The changed model.
    """
    buffer = bytearray(converted)
    root = _follow(buffer, 0)
    nodes_at, scores_at = (
        _field(buffer, _follow(buffer, _field(buffer, root, _PIECES)), _TRIE_NODES),
        _field(buffer, root, _SCORES),
    )
    penalty = struct.unpack_from("<f", buffer, _field(buffer, root, _UNKNOWN_PENALTY))[0]
    scores = np.append(_vector(buffer, scores_at, "<f4"), np.float32(penalty))
    unknown_id = len(scores) - 1
    trie = DoubleArray(_vector(buffer, nodes_at, "<u4"))
    trie.complete_characters(unknown_id)
    struct.pack_into("<i", buffer, _field(buffer, root, _UNKNOWN_CODE), _NO_CODE)
    _replace_vector(buffer, nodes_at, trie.to_array().astype("<u4"))
    _replace_vector(buffer, scores_at, scores.astype("<f4"))
    return FastOpModel(bytes(buffer), unknown_id)


def _follow(buffer: bytearray, place: int) -> int:
    """Where the reference at a place leads to."""
    return place + struct.unpack_from("<I", buffer, place)[0]


def _field(buffer: bytearray, table: int, number: int) -> int:
    """Where a table keeps a field."""
    layout = table - struct.unpack_from("<i", buffer, table)[0]
    return table + struct.unpack_from("<H", buffer, layout + 4 + 2 * number)[0]


def _vector(buffer: bytearray, place: int, dtype: str) -> np.ndarray:
    start = _follow(buffer, place)
    return np.frombuffer(bytes(buffer), dtype, struct.unpack_from("<I", buffer, start)[0], start + 4)


def _replace_vector(buffer: bytearray, place: int, values: np.ndarray) -> None:
    """Puts a vector at the buffer's end and lets the reference at a place lead there."""
    buffer += bytes(-len(buffer) % 4)
    struct.pack_into("<I", buffer, place, len(buffer) - place)
    buffer += struct.pack("<I", len(values)) + values.tobytes()
