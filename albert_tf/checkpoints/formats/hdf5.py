"""Reads the HDF5 files that Keras writes, without the HDF5 library.

On an untrusted file, the library can open other files (external storage, virtual datasets, external links), decompress
without limit, crash or hang. This reader supports groups, hard links, contiguous datasets of numbers, and string
attributes; anything else is an error. Its time and memory are bounded by the size of the file.

References:
    HDF5 File Format Specification, version 3.0. By default files have superblock 0, object headers 1 and groups as
    B-trees; with `libver="latest"` and from HDF5 2.0 on, superblock 2 or 3, object headers 2 and groups as links, which
    are in a fractal heap if there are more than eight.
"""

import math
import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_UNDEFINED = 2**64 - 1
_MAX_RANK, _MAX_NAME, _MAX_DEPTH, _MAX_HEAP_BLOCKS = 8, 1000, 64, 256
# Types of messages in object headers.
_SPACE, _LINK_INFO, _DATATYPE, _EXTERNAL, _LINK, _LAYOUT = 0x01, 0x02, 0x03, 0x07, 0x06, 0x08
_FILTERS, _ATTRIBUTE, _CONTINUATION, _SYMBOL_TABLE = 0x0B, 0x0C, 0x10, 0x11
# Bit offset, precision, offset and size of the exponent, offset and size of the mantissa, bias of the exponent.
_FLOATS = {
    (0, 16, 10, 5, 0, 10, 15): "<f2",
    (0, 32, 23, 8, 0, 23, 127): "<f4",
    (0, 64, 52, 11, 0, 52, 1023): "<f8",
}


class Hdf5(NamedTuple):
    """The content of a file.

    Attributes:
        arrays: array by path, such as `layers/dense/vars/0`; views of the file's bytes.
        names: value of the attribute `name` by path of the group.
    """

    arrays: dict[str, np.ndarray]
    names: dict[str, str]


def read_hdf5(content: bytes, skip: str = "") -> Hdf5:
    """Reads a file's arrays and the names of its groups.

    Args:
        content: the file.
        skip: name of a top-level group to skip.

    Raises:
        ValueError: the file is damaged or has unsupported content.
    """
    try:
        return _read(_File(content), skip)
    except (struct.error, LookupError):
        raise ValueError("its tables are damaged") from None


def _read(file: "_File", skip: str) -> Hdf5:
    found, seen = Hdf5({}, {}), set()
    pending = [("", file.root())]
    while pending:
        path, address = pending.pop()
        if address in seen:
            raise ValueError(f"{path or 'the root group'} is linked twice")
        seen.add(address)
        messages = file.messages(address)
        for name, child in file.links(path, messages):
            if path or name != skip:
                pending.append((f"{path}/{name}" if path else name, child))
        if path in found.arrays or path in found.names:
            raise ValueError(f"{path} exists twice")
        if any(kind == _LAYOUT for kind, _ in messages):
            found.arrays[path] = file.array(path, dict(messages))
        elif (name := file.name(path, messages)) is not None:
            found.names[path] = name
        if path.count("/") > _MAX_DEPTH:
            raise ValueError("its groups are nested too deeply")
    return found


class _File:
    """Reads the structures of a file; each byte may be read about once, as overlapping tables could take forever."""

    def __init__(self, content: bytes):
        self.content = content
        self.bytes_left, self.values_left = 2 * len(content), len(content)
        self.heaps: dict[int, dict[int, bytes]] = {}

    def take(self, address: int, length: int) -> bytes:
        """Reads bytes of metadata."""
        self.bytes_left -= length + 1
        if address + length > len(self.content) or self.bytes_left < 0:
            raise ValueError(f"its tables are damaged at {address}")
        return self.content[address : address + length]

    def numbers(self, layout: str, address: int) -> tuple:
        return struct.unpack(f"<{layout}", self.take(address, struct.calcsize(f"<{layout}")))

    def root(self) -> int:
        """Address of the root group's header."""
        if self.content[:8] != _SIGNATURE:
            raise ValueError("it has no HDF5 signature")
        version = self.numbers("B", 8)[0]
        sizes, base, root = {0: (13, 24, 64), 1: (13, 28, 68), 2: (9, 12, 36), 3: (9, 12, 36)}.get(version, (0, 0, 0))
        if not sizes or self.numbers("BB", sizes) != (8, 8) or self.numbers("Q", base) != (0,):
            raise ValueError("its superblock is not supported")
        return self.numbers("Q", root)[0]

    # === Object headers ===

    def messages(self, address: int) -> list[tuple[int, bytes]]:
        """Type and content of each message in an object's header."""
        if self.take(address, 4) == b"OHDR":
            _, flags = self.numbers("BB", address + 4)
            start = address + 6 + (16 if flags & 32 else 0) + (4 if flags & 16 else 0)
            length = int.from_bytes(self.take(start, 1 << (flags & 3)), "little")
            blocks, head = [(start + (1 << (flags & 3)), length)], 6 if flags & 4 else 4
        elif self.content[address] == 1:
            blocks, head = [(address + 16, self.numbers("I", address + 8)[0])], 8
        else:
            raise ValueError(f"an object header at {address} is damaged")
        found: list[tuple[int, bytes]] = []
        for start, length in blocks:  # grows with continuations
            for kind, message in _split_messages(self.take(start, length), head):
                if kind == _CONTINUATION:
                    block, size = struct.unpack_from("<QQ", message)
                    # In newer headers, a signature precedes the block and a checksum follows it.
                    blocks.append((block, size) if head == 8 else (block + 4, size - 8))
                else:
                    found.append((kind, message))
        return found

    def name(self, path: str, messages: list[tuple[int, bytes]]) -> str | None:
        """The attribute `name`, or None."""
        for kind, message in messages:
            if kind == _ATTRIBUTE and (value := _attribute(message, b"name")) is not None:
                type_, space, data = value
                if type_[0] & 15 != 9 or type_[1] & 15 != 1 or _shape(space) != ():
                    raise ValueError(f"the name of {path} is not a string")
                length, heap, index = struct.unpack_from("<IQI", data)
                text = self._heap(heap).get(index, b"")[:length]
                if not 0 < length == len(text) < _MAX_NAME:
                    raise ValueError(f"the name of {path} is damaged")
                return text.decode()
        return None

    def _heap(self, address: int) -> dict[int, bytes]:
        """The objects of a global heap by index."""
        if address not in self.heaps:
            signature, size = self.numbers("8sQ", address)
            if signature[:5] != b"GCOL\1":
                raise ValueError(f"the heap at {address} is damaged")
            block, objects, position = self.take(address, size), {}, 16
            while position + 16 <= size:
                index, length = struct.unpack_from("<H6xQ", block, position)
                if index == 0:  # free space
                    break
                objects[index] = block[position + 16 : position + 16 + length]
                position += 16 + (length + 7) // 8 * 8
            self.heaps[address] = objects
        return self.heaps[address]

    # === Datasets ===

    def array(self, path: str, messages: dict[int, bytes]) -> np.ndarray:
        """A view of a dataset's values."""
        if messages.keys() & {_FILTERS, _EXTERNAL}:
            raise ValueError(f"{path} is compressed or stored in another file")
        layout = messages[_LAYOUT]
        if layout[0] not in (3, 4) or layout[1] != 1:
            raise ValueError(f"{path} is not stored contiguously in this file")
        address, size = struct.unpack_from("<QQ", layout, 2)
        dtype, shape = _dtype(path, messages.get(_DATATYPE, b"")), _shape(messages.get(_SPACE, b""))
        count = math.prod(shape)
        if count == 0:
            return np.zeros(shape, dtype)
        self.values_left -= count * dtype.itemsize
        if size != count * dtype.itemsize or address + size > len(self.content) or self.values_left < 0:
            raise ValueError(f"{path} is not stored completely")
        return np.frombuffer(self.content, dtype, count, address).reshape(shape)

    # === Groups ===

    def links(self, path: str, messages: list[tuple[int, bytes]]) -> Iterator[tuple[str, int]]:
        """Names and addresses of a group's members."""
        for kind, message in messages:
            if kind == _SYMBOL_TABLE:
                yield from self._symbol_table(path, *struct.unpack_from("<QQ", message))
            elif kind == _LINK:
                yield _link(path, message, 0)[:2]
            elif kind == _LINK_INFO:
                heap = struct.unpack_from("<Q", message, 10 if message[1] & 1 else 2)[0]
                if heap != _UNDEFINED:
                    yield from self._fractal_heap(path, heap)

    def _symbol_table(self, path: str, tree: int, heap: int) -> Iterator[tuple[str, int]]:
        signature, size, _, segment = self.numbers("8sQQQ", heap)
        if signature[:5] != b"HEAP\0":
            raise ValueError(f"the names in {path or 'the root group'} are damaged")
        names = self.take(segment, size)
        nodes = [tree]
        while nodes:
            node = nodes.pop()
            if self.take(node, 4) == b"TREE":
                kind, _, count = self.numbers("BBH", node + 4)
                if kind != 0:
                    raise ValueError(f"the group {path} is damaged")
                nodes += [self.numbers("Q", node + 32 + 16 * index)[0] for index in range(count)][::-1]
                continue
            signature, count = self.numbers("4s2xH", node)
            if signature != b"SNOD":
                raise ValueError(f"the group {path} is damaged")
            for index in range(count):
                name, address, cache_type = self.numbers("QQI20x", node + 8 + 40 * index)
                if cache_type == 2:
                    raise ValueError(f"{path or 'the root group'} has a soft or external link")
                yield _text(path, names[name : name + _MAX_NAME].split(b"\0", 1)[0]), address

    def _fractal_heap(self, path: str, address: int) -> Iterator[tuple[str, int]]:
        """Links in the order of the heap's blocks, which have gaps only if links were deleted."""
        signature, filters, flags = self.numbers("5s2xHB", address)
        count = self.numbers("Q", address + 70)[0]
        width, start, largest, bits, _, root, rows = self.numbers("HQQHHQH", address + 110)
        if signature != b"FRHP\0" or filters or rows * width > _MAX_HEAP_BLOCKS:
            raise ValueError(f"the group {path} is damaged or compressed")
        blocks = [(root, start)]
        if rows:
            sizes = [start << max(row - 1, 0) for row in range(rows) for _ in range(width)]
            first = root + 13 + (bits + 7) // 8
            blocks = [(self.numbers("Q", first + 8 * index)[0], size) for index, size in enumerate(sizes)]
        found = 0
        for block, size in blocks:
            if block == _UNDEFINED:
                continue
            if size > largest or self.take(block, 4) != b"FHDB":
                raise ValueError(f"the group {path} is damaged or too large")
            content, position = self.take(block, size), 13 + (bits + 7) // 8 + (4 if flags & 2 else 0)
            while content[position : position + 1] == b"\1":
                name, child, position = _link(path, content, position)
                found += 1
                yield name, child
        if found != count:
            raise ValueError(f"links were deleted from the group {path}")


def _split_messages(block: bytes, head: int) -> Iterator[tuple[int, bytes]]:
    """Type and content of each message; its header has 8 bytes in old object headers, 4 or 6 in newer ones."""
    position = 0
    while position + head <= len(block):
        kind, size, flags = struct.unpack_from("<HHB" if head == 8 else "<BHB", block, position)
        if flags & 2 and kind:
            raise ValueError("an object header has a shared message")
        yield kind, block[position + head : position + head + size]
        position += head + size


def _attribute(message: bytes, wanted: bytes) -> tuple[bytes, bytes, bytes] | None:
    """Datatype, shape and value of an attribute, None if it has another name."""
    version, flags, *sizes = struct.unpack_from("<BBHHH", message)
    position, parts = 9 if version == 3 else 8, []
    for size in sizes:
        parts.append(message[position : position + size])
        position += (size + 7) // 8 * 8 if version == 1 else size
    if parts[0].rstrip(b"\0") != wanted:
        return None
    if version not in (1, 2, 3) or (version > 1 and flags):
        raise ValueError("an attribute has an unknown version")
    return parts[1], parts[2], message[position:]


def _shape(message: bytes) -> tuple[int, ...]:
    if len(message) < 4 or message[0] not in (1, 2) or message[1] > _MAX_RANK or (message[0] == 2 and message[3] == 2):
        raise ValueError("a shape is damaged")
    return struct.unpack_from(f"<{message[1]}Q", message, 8 if message[0] == 1 else 4)


def _dtype(path: str, message: bytes) -> np.dtype:
    kind, bits, size = struct.unpack_from("<BB2xI", message)
    if kind & 15 == 0 and bits & ~8 == 0 and size in (1, 2, 4, 8):
        return np.dtype(f"<{'i' if bits & 8 else 'u'}{size}")
    if kind & 15 == 1 and bits & 65 == 0:
        name = _FLOATS.get(struct.unpack_from("<HHBBBBI", message, 8))
        if name and np.dtype(name).itemsize == size:
            return np.dtype(name)
    raise ValueError(f"{path} has an unsupported type")


def _link(path: str, message: bytes, start: int) -> tuple[str, int, int]:
    """Name and address of the link at `start`, and the position after it."""
    version, flags, position = message[start], message[start + 1], start + 2
    kind = message[position] if flags & 8 else 0
    position += (1 if flags & 8 else 0) + (8 if flags & 4 else 0) + (1 if flags & 16 else 0)
    width = 1 << (flags & 3)
    length = int.from_bytes(message[position : position + width], "little")
    position += width
    if version != 1 or kind != 0 or length > _MAX_NAME:
        raise ValueError(f"{path or 'the root group'} has a soft or external link")
    name = _text(path, message[position : position + length])
    return name, struct.unpack_from("<Q", message, position + length)[0], position + length + 8


def _text(path: str, name: bytes) -> str:
    if not name or b"/" in name or name == b"." or len(name) >= _MAX_NAME:
        raise ValueError(f"a name in {path or 'the root group'} is damaged")
    return name.decode()
