"""Offsets of WordPiece ids in the original text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from albert_tf.tokenization.interface import EncodedWithOffsets
from albert_tf.tokenization.wordpiece.cleanup import CleanUp

_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class CleanedText:
    """A text after the clean-up."""

    text: str  # words are separated by spaces
    origins: np.ndarray  # the position in the original of each character, and of the end

    @classmethod
    def of(cls, text: str, clean_up: CleanUp) -> "CleanedText":
        """Cleans a text."""
        characters: list[str] = []
        origins: list[int] = []
        rewritten: dict[str, str] = {}
        for position, character in enumerate(clean_up.prepare(text)):
            if character not in rewritten:
                rewritten[character] = clean_up.apply(character)
            characters.append(rewritten[character])
            origins += [position] * len(rewritten[character])
        return cls("".join(characters), np.array([*origins, len(text)], np.int64))

    def words(self) -> list[str]:
        """The words in order."""
        return self.text.split()

    def word_starts(self) -> np.ndarray:
        """The start of each word in the cleaned text, int64 [W]."""
        return np.array([match.start() for match in _WORD.finditer(self.text)], np.int64)


def locate_pieces(
    cleaned: CleanedText, rows: Sequence[bytes], piece_lengths: np.ndarray, text: str | bytes
) -> EncodedWithOffsets:
    """Computes the span of every id. Characters that the clean-up drops belong to the previous piece.

    Args:
        cleaned: the cleaned text.
        rows: the ids of each word, as bytes of int32.
        piece_lengths: int [V], length of each piece in characters; more than the word's for the unknown piece, and for
            pieces with the mark of a word's end.
        text: the original text; spans are in bytes if it is bytes.
    """
    ids = np.frombuffer(b"".join(rows), np.int32)
    counts = np.array([len(row) for row in rows], np.int64) // ids.itemsize
    word_lengths = np.repeat(np.array([len(word) for word in cleaned.words()], np.int64), counts)
    sums = np.concatenate([[0], np.cumsum(np.minimum(piece_lengths[ids], word_lengths))])
    before = sums[:-1] - np.repeat(sums[np.cumsum(counts) - counts], counts)
    first, last = (np.minimum(position, word_lengths) for position in (before, before + piece_lengths[ids]))
    starts = np.repeat(cleaned.word_starts(), counts)
    origins = cleaned.origins
    # If a character became several, every id with a part of it covers all of it: an id ends at the next origin.
    following = origins[np.searchsorted(origins, origins[:-1], side="right")]
    spans = np.stack([origins[starts + first], following[starts + np.maximum(last - 1, 0)]], axis=1)
    # A piece that only marks the end of a word has an empty span.
    spans[first == last, 0] = spans[first == last, 1]
    if isinstance(text, bytes):
        characters = text.decode("utf-8", "surrogateescape")
        spans = np.cumsum([0, *(len(one.encode("utf-8", "surrogateescape")) for one in characters)])[spans]
    return EncodedWithOffsets(ids, spans.astype(np.int32))
