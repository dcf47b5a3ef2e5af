"""The clean-up of `characters` for many texts at once, as NumPy arrays. T characters, C after the clean-up."""

import threading
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from albert_tf.tokenization.characters import CODE_POINTS, CleanUp

_UNMET = -1


@dataclass(frozen=True)
class CleanedCharacters:
    """Characters after the clean-up, all [C].

    Attributes:
        code_points: int32.
        alone: bool, whether each is a word of its own.
        sources: int64, which of the given characters each was made of.
    """

    code_points: npt.NDArray[np.int32]
    alone: npt.NDArray[np.bool_]
    sources: npt.NDArray[np.int64]


class CleanUpInArrays:
    """Cleans characters as `CleanUp` does; what becomes of a code point is looked up once it has been met.

    Args:
        clean_up: what is done to each character.

    Call arguments:
        code_points: int32 [T].

    Example:

    >>> clean = CleanUpInArrays(CleanUp(True, True, True, split_punctuation=True, split_chinese=True))
    >>> cleaned = clean(np.array([ord(character) for character in "É\\u200b!"], np.int32))
    >>> cleaned.code_points.tolist(), cleaned.alone.tolist(), cleaned.sources.tolist()
    ([101, 33], [False, True], [0, 2])
    """

    def __init__(self, clean_up: CleanUp):
        self._clean_up = clean_up
        self._counts = np.full(CODE_POINTS, _UNMET, np.int8)
        self._firsts = np.zeros(CODE_POINTS, np.int32)
        self._parts = np.zeros(1, np.int32)
        self._lock = threading.Lock()

    def __call__(self, code_points: npt.NDArray[np.int32]) -> CleanedCharacters:
        counts = self._counts[code_points]
        if (counts == _UNMET).any():
            self._meet(np.unique(code_points[counts == _UNMET]).tolist())
            counts = self._counts[code_points]
        sources = np.flatnonzero(counts)
        places = self._firsts[code_points[sources]]
        if (counts > 1).any():
            counts = counts[sources].astype(np.int64)
            sources, places = np.repeat(sources, counts), np.repeat(places, counts)
            places += np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
        parts = self._parts[places]
        return CleanedCharacters(parts >> 1, (parts & 1).astype(bool), sources)

    def _meet(self, code_points: list[int]) -> None:
        """Works out what becomes of code points."""
        with self._lock:
            rows = [self._clean_up.rewrite(chr(code_point)) for code_point in code_points]
            counts = np.array([len(row) for row in rows])
            firsts = len(self._parts) + np.cumsum(counts) - counts
            # In this order, since other threads read meanwhile: no count without a place, no place without a part.
            self._parts = np.append(self._parts, np.array([part.code for row in rows for part in row], np.int32))
            self._firsts[code_points] = firsts
            self._counts[code_points] = counts
