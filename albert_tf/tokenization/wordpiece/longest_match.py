"""Splitting a word into the longest pieces that fit, from left to right."""

import functools
from collections.abc import Mapping

import numpy as np

MAX_WORD_LENGTH = 200
_CACHED_WORDS = 1 << 16
# The key under which a node holds the piece that ends there, as id and length; no character is the empty string.
_END = ""


class LongestMatch:
    """Greedy longest match over a vocabulary; words that cannot be split completely, and very long ones, are unknown.

    Ids are bytes of int32, so that the ids of many words are joined without looking at any of them.

    Args:
        initial: pieces that a word can begin with, and their ids.
        following: pieces that can come after another one in a word, and their ids.
        unknown: the id of the unknown piece.

    >>> match = LongestMatch({"un": 1, "una": 2}, {"able": 3, "ff": 4, "f": 5}, unknown=0)
    >>> [np.frombuffer(match(word), np.int32).tolist() for word in ("unaffable", "unable", "x" * 300)]
    [[2, 4, 3], [0], [0]]
    """

    def __init__(self, initial: Mapping[str, int], following: Mapping[str, int], unknown: int):
        self.initial = initial
        self.following = following
        self.unknown = unknown
        self._initial_tree = _tree(initial)
        self._following_tree = _tree(following)
        self._unknown_row = _as_bytes(unknown)
        # A text is made of few different words.
        self._cached = functools.lru_cache(maxsize=_CACHED_WORDS)(self._match)

    def __call__(self, word: str) -> bytes:
        return self._unknown_row if len(word) > MAX_WORD_LENGTH else self._cached(word)

    def _match(self, word: str) -> bytes:
        ids: list[bytes] = []
        rest, node = word, self._initial_tree
        while rest:
            found = None
            for character in rest:
                node = node.get(character)
                if node is None:
                    break
                if _END in node:
                    found = node[_END]
            if found is None:
                return self._unknown_row
            ids.append(found[0])
            rest, node = rest[found[1] :], self._following_tree
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
