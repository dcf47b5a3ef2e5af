"""Greedy longest-match-first splitting of words into pieces."""

import functools
from collections.abc import Mapping

import numpy as np

MAX_WORD_LENGTH = 200
_CACHED_WORDS = 1 << 16


class LongestMatch:
    """Splits words by greedy longest match; words that cannot be split completely, and very long ones, are unknown.

    Ids are returned as bytes of int32, which are fast to concatenate.

    Args:
        initial: ids of pieces at the beginning of words.
        following: ids of pieces inside words.
        unknown: id of the unknown piece.
        max_word_length: longer words are unknown.

    >>> match = LongestMatch({"un": 1, "una": 2}, {"able": 3, "ff": 4, "f": 5}, unknown=0)
    >>> [np.frombuffer(match(word), np.int32).tolist() for word in ("unaffable", "unable", "x" * 300)]
    [[2, 4, 3], [0], [0]]
    """

    def __init__(
        self,
        initial: Mapping[str, int],
        following: Mapping[str, int],
        unknown: int,
        max_word_length: int = MAX_WORD_LENGTH,
    ):
        self.max_word_length = max_word_length
        self.initial = initial
        self.following = following
        self.unknown = unknown
        self._unknown_row = np.int32(unknown).tobytes()
        self._longest = max(map(len, (*initial, *following)), default=0)
        # Texts repeat few different words.
        self._cached = functools.lru_cache(maxsize=_CACHED_WORDS)(self._match)

    def __call__(self, word: str) -> bytes:
        return self._unknown_row if len(word) > self.max_word_length else self._cached(word)

    def _match(self, word: str) -> bytes:
        ids: list[int] = []
        start, pieces = 0, self.initial
        while start < len(word):
            ends = range(min(start + self._longest, len(word)), start, -1)
            end = next((end for end in ends if word[start:end] in pieces), None)
            if end is None:
                return self._unknown_row
            ids.append(pieces[word[start:end]])
            start, pieces = end, self.following
        return np.array(ids, np.int32).tobytes()
