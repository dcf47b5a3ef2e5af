"""Reads TensorFlow's checkpoint files without TensorFlow, whose own reader aborts the process on some damaged indexes.

`NAME.index` is a sorted table from names to entries, each of which says where in `NAME.data-*` a tensor's bytes lie.

References:
    `tensorflow/core/protobuf/tensor_bundle.proto` for entries; `tensorflow/tsl/lib/io/format.h` for the table, which is
    LevelDB's.
"""

import math
import pathlib
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import google_crc32c
import ml_dtypes
import numpy as np

_FOOTER, _TRAILER, _MAGIC = 48, 5, 0xDB4775248B80FB57
_LONGEST_NAME = 1000
# By number in `types.proto`.
_DTYPES = {
    **{1: "<f4", 2: "<f8", 3: "<i4", 4: "u1", 5: "<i2", 6: "i1", 9: "<i8", 10: "?", 19: "<f2"},
    14: ml_dtypes.bfloat16,
}


class _Entry(NamedTuple):
    """Where a tensor lies."""

    dtype: np.dtype
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    checksum: int


def read_bundle(prefix: pathlib.Path, is_wanted: Callable[[str], bool]) -> dict[str, np.ndarray]:
    """Returns the tensors of the checkpoint `prefix` whose names are wanted.

    Raises:
        ValueError or OSError: where the files are not a whole checkpoint.
    """
    index = dict(_table(prefix.with_name(f"{prefix.name}.index").read_bytes()))
    header = _fields(index.pop(b"", b""))
    num_shards = _number(header, 1)
    if _number(header, 2) != 0:
        raise ValueError("its numbers are big-endian")
    contents = {name.decode(errors="replace"): content for name, content in index.items()}
    entries = {name: _entry(name, content) for name, content in contents.items() if is_wanted(name)}
    files = {
        shard: prefix.with_name(f"{prefix.name}.data-{shard:05d}-of-{num_shards:05d}")
        for shard in {entry.shard for entry in entries.values()}
    }
    # Tensors do not overlap, so that together they are no larger than their files.
    if sum(entry.size for entry in entries.values()) > sum(file.stat().st_size for file in files.values()):
        raise ValueError("its tensors are larger than its data files")
    return {name: _tensor(name, entry, files[entry.shard]) for name, entry in entries.items()}


def _tensor(name: str, entry: _Entry, file: pathlib.Path) -> np.ndarray:
    with file.open("rb") as data:
        data.seek(entry.offset)
        content = data.read(entry.size)
    if len(content) != entry.size or _checksum(content) != entry.checksum:
        raise ValueError(f"the numbers of {name} are damaged or missing")
    return np.frombuffer(content, entry.dtype).reshape(entry.shape)


def _entry(name: str, content: bytes) -> _Entry:
    fields = _fields(content)
    dtype, shard, offset, size, checksum = (_number(fields, field) for field in (1, 3, 4, 5, 6))
    sizes = [_number(_fields(dimension), 1) for dimension in _fields(fields.get(2, [b""])[0]).get(2, [])]
    if dtype not in _DTYPES or 7 in fields:
        raise ValueError(f"{name} is of an unknown type or in slices")
    dtype = np.dtype(_DTYPES[dtype])
    # What is below zero is huge here, as numbers are read without a sign.
    if len(sizes) > 8 or max([offset, *sizes]) > 2**48 or math.prod(sizes) * dtype.itemsize != size:
        raise ValueError(f"{name} has not the size of its shape")
    return _Entry(dtype, tuple(sizes), shard, offset, size, checksum)


# === The table ===


def _table(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Names and entries, in order."""
    if len(content) < _FOOTER or struct.unpack("<Q", content[-8:])[0] != _MAGIC:
        raise ValueError("its index is no table")
    footer = content[-_FOOTER:]
    place = 0
    handle = []
    for _ in range(4):  # offset and size of the block of names that nothing uses, then of the index of blocks
        number, place = _varint(footer, place)
        handle.append(number)
    before = None
    for _, value in _block(content, *handle[2:]):
        start, place = _varint(value, 0)
        for key, entry in _block(content, start, _varint(value, place)[0]):
            if before is not None and key <= before:
                raise ValueError("its index is not in order")
            before = key
            yield key, entry


def _block(content: bytes, start: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of one block; a key is the beginning of the one before and what is new."""
    block, trailer = content[start : start + size + 1], content[start + size + 1 : start + size + _TRAILER]
    if len(trailer) != 4 or struct.unpack("<I", trailer)[0] != _checksum(block):
        raise ValueError("its index is damaged")
    if size < 4 or block[-1] != 0:
        raise ValueError("its index is compressed")
    end = size - 4 - 4 * struct.unpack("<I", block[size - 4 : size])[0]
    place, key = 0, b""
    while place < end:
        shared, place = _varint(block, place)
        fresh, place = _varint(block, place)
        length, place = _varint(block, place)
        if shared > len(key) or shared + fresh > _LONGEST_NAME or place + fresh + length > end:
            raise ValueError("its index is damaged")
        key = key[:shared] + block[place : place + fresh]
        place += fresh
        yield key, block[place : place + length]
        place += length


def _checksum(content: bytes) -> int:
    """CRC-32C, disguised as such tables have it."""
    plain = google_crc32c.value(content)
    return ((plain >> 15 | plain << 17) + 0xA282EAD8) & 0xFFFFFFFF


# === Protocol buffers ===


def _number(fields: dict[int, list[Any]], field: int) -> int:
    """What a field holds, 0 where it is left out."""
    value = fields.get(field, [0])[-1]
    if not isinstance(value, int):
        raise ValueError("an entry of its index is damaged")
    return value


def _fields(content: Any) -> dict[int, list[Any]]:
    """Values by the number of their field: numbers, and bytes for texts and messages."""
    if not isinstance(content, bytes):
        raise ValueError("an entry of its index is damaged")
    found: dict[int, list[Any]] = {}
    place = 0
    while place < len(content):
        tag, place = _varint(content, place)
        kind = tag & 7
        if kind == 0:
            value, place = _varint(content, place)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, place = int.from_bytes(content[place : place + size], "little"), place + size
        elif kind == 2:
            size, place = _varint(content, place)
            value, place = content[place : place + size], place + size
        else:
            raise ValueError("an entry of its index is damaged")
        if place > len(content):
            raise ValueError("an entry of its index is damaged")
        found.setdefault(tag >> 3, []).append(value)
    return found


def _varint(content: bytes, place: int) -> tuple[int, int]:
    """A number of variable length and the place behind it."""
    number = 0
    for shift in range(0, 70, 7):
        if place >= len(content):
            break
        byte = content[place]
        number, place = number | (byte & 127) << shift, place + 1
        if byte < 128:
            return number, place
    raise ValueError("a number in its index is damaged")
