"""Offsets of WordPiece ids in the original text."""

import re
from collections.abc import Sequence

import numpy as np

from albert_tf.tokenization.interface import EncodedWithOffsets, as_text

_WORD = re.compile(r"\S+")


def locate_pieces(
    cleaned: str, origins: np.ndarray, rows: Sequence[bytes], piece_lengths: np.ndarray, text: str | bytes
) -> EncodedWithOffsets:
    """Computes the span of every id. Characters that the clean-up drops belong to the previous piece.

    Args:
        cleaned: the cleaned text, whose words are separated by spaces.
        origins: the position in the original of each of its characters, and of the end.
        rows: the ids of each word, as bytes of int32.
        piece_lengths: int [V], length of each piece in characters; more than the word's for the unknown piece, and for
            pieces with the mark of a word's end.
        text: the original text; spans are in bytes if it is bytes.
    """
    ids = np.frombuffer(b"".join(rows), np.int32)
    counts = np.array([len(row) for row in rows], np.int64) // ids.itemsize
    borders = np.array([match.span() for match in _WORD.finditer(cleaned)], np.int64).reshape(-1, 2)
    words, word_lengths = np.repeat(borders[:, 0], counts), np.repeat(borders[:, 1] - borders[:, 0], counts)
    sums = np.concatenate([[0], np.cumsum(np.minimum(piece_lengths[ids], word_lengths))])
    before = sums[:-1] - np.repeat(sums[np.cumsum(counts) - counts], counts)
    first, last = (np.minimum(position, word_lengths) for position in (before, before + piece_lengths[ids]))
    # If a character became several, every id with a part of it covers all of it: an id ends at the next origin.
    following = origins[np.searchsorted(origins, origins[:-1], side="right")]
    spans = np.stack([origins[words + first], following[words + np.maximum(last - 1, 0)]], axis=1)
    # A piece that only marks the end of a word has an empty span.
    spans[first == last, 0] = spans[first == last, 1]
    if isinstance(text, bytes):
        spans = np.cumsum([0, *(len(one.encode("utf-8", "surrogateescape")) for one in as_text(text))])[spans]
    return EncodedWithOffsets(ids, spans.astype(np.int32))
