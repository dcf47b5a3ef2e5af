"""Editing a compiled trie instead of compiling it anew: the double array of SentencePiece and tensorflow-text.

A node is one 32-bit number: the byte that leads to it, a bit that says whether a key ends here, and the offset to its
children. The child of node i for byte b is at `i ^ offset ^ b`, and the value of a key that ends at node i at
`i ^ offset`. Every edit moves the children of a node to a block of their own, where all 256 places are free, so nodes
that the compiler made several parents share are left as they are for the others.

References:
    Darts-clone, darts.h.
"""

from collections.abc import Iterable, Iterator

import numpy as np

Ranges = tuple[tuple[int, int], ...]

_BLOCK = 256
_ENDS_KEY, _LARGE_OFFSET, _IS_VALUE = 1 << 8, 1 << 9, 1 << 31
_OFFSET_SHIFT = 10
_MAX_OFFSET = 1 << 21

_NEXT = (0x80, 0xBF)
# The bytes that begin a UTF-8 character of several bytes, and what may follow them: neither surrogates nor long forms.
_CHARACTERS: tuple[tuple[tuple[int, int], Ranges], ...] = (
    ((0xC2, 0xDF), (_NEXT,)),
    ((0xE0, 0xE0), ((0xA0, 0xBF), _NEXT)),
    ((0xE1, 0xEC), (_NEXT, _NEXT)),
    ((0xED, 0xED), ((0x80, 0x9F), _NEXT)),
    ((0xEE, 0xEF), (_NEXT, _NEXT)),
    ((0xF0, 0xF0), ((0x90, 0xBF), _NEXT, _NEXT)),
    ((0xF1, 0xF3), (_NEXT, _NEXT, _NEXT)),
    ((0xF4, 0xF4), ((0x80, 0x8F), _NEXT, _NEXT)),
)


class DoubleArray:
    """A double array that keys can be added to.

    Args:
        units: uint32, the array as it was compiled.
    """

    def __init__(self, units: Iterable[int]):
        self._units = [int(unit) for unit in units]
        self._own_blocks: set[int] = set()
        self._shared: dict[tuple[Ranges, bool], int] = {}

    def to_array(self) -> np.ndarray:
        """Returns the array as uint32."""
        return np.array(self._units, np.uint32)

    def insert(self, key: bytes, value: int) -> None:
        """Adds a key, or gives it another value.

        Args:
            key: at least one byte, none of them 0.
            value: at least 0.
        """
        node = 0
        for byte in key:
            child = self._free_children(node) ^ byte
            if not self._is_child(child, byte):
                self._write(child, byte, False, self._own_block())
            node = child
        self._end_key(node, value)

    def longer_keys(self, prefix: bytes) -> Iterator[bytes]:
        """Yields what follows a prefix in each key that begins with it and is longer."""
        node = 0
        for byte in prefix:
            node ^= self._offset(node) ^ byte
            if not self._is_child(node, byte):
                return
        yield from self._below(node)

    def _below(self, node: int) -> Iterator[bytes]:
        for byte in range(1, _BLOCK):
            child = node ^ self._offset(node) ^ byte
            if self._is_child(child, byte):
                if self._units[child] & _ENDS_KEY:
                    yield bytes([byte])
                yield from (bytes([byte]) + rest for rest in self._below(child))

    def complete_characters(self, value: int) -> None:
        """Makes a key of every single byte and of every UTF-8 character that is none yet, all with one value."""
        root = self._free_children(0)
        following = {byte: ranges for (low, high), ranges in _CHARACTERS for byte in range(low, high + 1)}
        for byte in range(_BLOCK):
            self._complete(root, byte, following.get(byte, ()), True, value)

    def _complete(self, children: int, byte: int, following: Ranges, ends_key: bool, value: int) -> None:
        """Makes sure of one child and of all characters below it."""
        node = children ^ byte
        if not self._is_child(node, byte):
            self._write(node, byte, ends_key, self._shared_children(following, ends_key, value))
            return
        if ends_key and not self._units[node] & _ENDS_KEY:
            self._end_key(node, value)
        if following:
            self._complete_all(self._free_children(node), following, value)

    def _complete_all(self, children: int, following: Ranges, value: int) -> None:
        (low, high), *rest = following
        for byte in range(low, high + 1):
            self._complete(children, byte, tuple(rest), not rest, value)

    def _shared_children(self, following: Ranges, ends_key: bool, value: int) -> int:
        """The children of all nodes that have nothing but unknown characters below them."""
        if (following, ends_key) not in self._shared:
            block = self._shared[following, ends_key] = self._new_block()
            if ends_key:
                self._units[block] = value | _IS_VALUE
            if following:
                self._complete_all(block, following, value)
        return self._shared[following, ends_key]

    def _end_key(self, node: int, value: int) -> None:
        self._units[self._free_children(node)] = value | _IS_VALUE
        self._units[node] |= _ENDS_KEY

    def _free_children(self, node: int) -> int:
        """Moves a node's children to a block of their own, unless they are in one, and returns where that is."""
        old = node ^ self._offset(node)
        if old in self._own_blocks:
            return old
        new = self._own_block()
        if self._units[node] & _ENDS_KEY:
            self._units[new] = self._units[old]
        for byte in range(1, _BLOCK):
            child = old ^ byte
            if self._is_child(child, byte):
                ends_key = bool(self._units[child] & _ENDS_KEY)
                self._write(new ^ byte, byte, ends_key, child ^ self._offset(child))
        self._write(node, self._units[node] & 0xFF, bool(self._units[node] & _ENDS_KEY), new)
        return new

    def _own_block(self) -> int:
        block = self._new_block()
        self._own_blocks.add(block)
        return block

    def _new_block(self) -> int:
        self._units += [_IS_VALUE] * (-len(self._units) % _BLOCK)
        start = len(self._units)
        self._units += [_IS_VALUE] * _BLOCK
        return start

    def _offset(self, node: int) -> int:
        unit = self._units[node]
        return (unit & ~_IS_VALUE) >> _OFFSET_SHIFT << (8 if unit & _LARGE_OFFSET else 0)

    def _is_child(self, node: int, byte: int) -> bool:
        return node < len(self._units) and self._units[node] & (_IS_VALUE | 0xFF) == byte

    def _write(self, node: int, byte: int, ends_key: bool, children: int) -> None:
        offset = node ^ children
        if offset >= _MAX_OFFSET:
            raise ValueError(
                f"A vocabulary's trie must have fewer than {_MAX_OFFSET} nodes. Received: {len(self._units)}; train a "
                "smaller vocabulary."
            )
        self._units[node] = byte | (_ENDS_KEY if ends_key else 0) | offset << _OFFSET_SHIFT
