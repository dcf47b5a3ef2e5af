"""Splitting a word into the longest pieces that fit, from left to right."""

from collections.abc import Iterable

import numpy as np

MAX_WORD_LENGTH = 200
# The key under which a node holds the ids of the piece that ends there; no character is the empty string.
_END = ""


class LongestMatch:
    """Greedy longest match over a vocabulary; a word that cannot be split whole is unknown, and so is a very long one.

    Ids are bytes of int32, so that the ids of many words are joined without looking at any of them.

    Args:
        initial: pieces that a word can begin with, and their ids.
        following: pieces that can come behind another one in a word.
        unknown: the id of the unknown piece.

    Call arguments:
        word: the word, at least one character.

    Returns:
        The ids.

    Example:

    >>> match = LongestMatch([("un", 1), ("una", 2)], [("able", 3), ("ff", 4), ("f", 5)], unknown=0)
    >>> [np.frombuffer(match(word), np.int32).tolist() for word in ("unaffable", "unable", "x" * 300)]
    [[2, 4, 3], [0], [0]]
    """

    def __init__(self, initial: Iterable[tuple[str, int]], following: Iterable[tuple[str, int]], unknown: int):
        self._initial = _tree(initial)
        self._following = _tree(following)
        self.unknown = _as_bytes(unknown)

    def __call__(self, word: str) -> bytes:
        length = len(word)
        if length > MAX_WORD_LENGTH:
            return self.unknown
        ids: list[bytes] = []
        start, node = 0, self._initial
        while start < length:
            found, end = None, start
            for place in range(start, length):
                node = node.get(word[place])
                if node is None:
                    break
                if _END in node:
                    found, end = node[_END], place + 1
            if found is None:
                return self.unknown
            ids.append(found)
            start, node = end, self._following
        return b"".join(ids)


def _tree(pieces: Iterable[tuple[str, int]]) -> dict:
    root: dict = {}
    for piece, index in pieces:
        node = root
        for character in piece:
            node = node.setdefault(character, {})
        node[_END] = _as_bytes(index)
    return root


def _as_bytes(index: int) -> bytes:
    return np.int32(index).tobytes()
