"""Greedy longest-match-first splitting of words into pieces."""

import functools
from collections.abc import Mapping

import numpy as np

MAX_WORD_LENGTH = 200
_CACHED_WORDS = 1 << 16
# The key of the piece that ends at a node, as id and length; it differs from all characters.
_END = ""


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
        self._initial_tree = _tree(initial)
        self._following_tree = _tree(following)
        self._unknown_row = _as_bytes(unknown)
        # Texts repeat few different words.
        self._cached = functools.lru_cache(maxsize=_CACHED_WORDS)(self._match)

    def __call__(self, word: str) -> bytes:
        return self._unknown_row if len(word) > self.max_word_length else self._cached(word)

    def _match(self, word: str) -> bytes:
        ids: list[bytes] = []
        rest, node = word, self._initial_tree
        while rest:
            longest = None
            for character in rest:
                node = node.get(character)
                if node is None:
                    break
                if _END in node:
                    longest = node[_END]
            if longest is None:
                return self._unknown_row
            ids.append(longest[0])
            rest, node = rest[longest[1] :], self._following_tree
        return b"".join(ids)


def _tree(pieces: Mapping[str, int]) -> dict:
    root: dict = {}
    for piece, index in pieces.items():
        node = root
        for character in piece:
            node = node.setdefault(character, {})
        node[_END] = _as_bytes(index), len(piece)
    return root


def _as_bytes(index: int) -> bytes:
    return np.int32(index).tobytes()
