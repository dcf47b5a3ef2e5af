"""Reads TensorFlow's checkpoint files without TensorFlow, whose reader aborts the process on some damaged indexes.

`NAME.index` is a sorted table of entries by name, with the offset and size of each tensor in `NAME.data-*`.

References:
    `tensorflow/core/protobuf/tensor_bundle.proto` for the entries; `tensorflow/tsl/lib/io/format.h` for the table,
    which is LevelDB's.
"""

import math
import pathlib
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

import google_crc32c
import ml_dtypes
import numpy as np

from albert_tf.protobuf import fields, last_payload, read_integer, read_varint

_FOOTER, _TRAILER, _MAGIC = 48, 5, 0xDB4775248B80FB57
_MAX_NAME = 1000
# By enum value in `types.proto`.
_DTYPES = {
    **{1: "<f4", 2: "<f8", 3: "<i4", 4: "u1", 5: "<i2", 6: "i1", 9: "<i8", 10: "?", 19: "<f2"},
    14: ml_dtypes.bfloat16,
}


class _Entry(NamedTuple):
    """Type and location of a tensor."""

    dtype: np.dtype
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    checksum: int


def read_bundle(prefix: pathlib.Path, is_wanted: Callable[[str], bool]) -> dict[str, np.ndarray]:
    """Reads the tensors of a checkpoint for whose names `is_wanted` is true.

    Raises:
        ValueError: the files are damaged.
        OSError: a file cannot be read.
    """
    index = dict(_table(prefix.with_name(f"{prefix.name}.index").read_bytes()))
    header = index.pop(b"", b"")
    num_shards = read_integer(header, 1)
    if read_integer(header, 2) != 0:
        raise ValueError("its numbers are big-endian")
    contents = {name.decode(errors="replace"): content for name, content in index.items()}
    entries = {name: _entry(name, content) for name, content in contents.items() if is_wanted(name)}
    files = {
        shard: prefix.with_name(f"{prefix.name}.data-{shard:05d}-of-{num_shards:05d}")
        for shard in {entry.shard for entry in entries.values()}
    }
    # Tensors do not overlap. This bounds the memory that a damaged index can request.
    if sum(entry.size for entry in entries.values()) > sum(file.stat().st_size for file in files.values()):
        raise ValueError("its tensors are larger than its data files")
    return {name: _tensor(name, entry, files[entry.shard]) for name, entry in entries.items()}


def _tensor(name: str, entry: _Entry, file: pathlib.Path) -> np.ndarray:
    with file.open("rb") as data:
        data.seek(entry.offset)
        content = data.read(entry.size)
    if len(content) != entry.size or _checksum(content) != entry.checksum:
        raise ValueError(f"the values of {name} are damaged or missing")
    return np.frombuffer(content, entry.dtype).reshape(entry.shape)


def _entry(name: str, content: bytes) -> _Entry:
    dtype, shard, offset, size = (read_integer(content, number) for number in (1, 3, 4, 5))
    checksum = int.from_bytes(last_payload(content, 6), "little")
    sizes = [read_integer(field.payload, 1) for field in fields(last_payload(content, 2)) if field.number == 2]
    if dtype not in _DTYPES or any(field.number == 7 for field in fields(content)):
        raise ValueError(f"{name} has an unknown type or is sliced")
    dtype = np.dtype(_DTYPES[dtype])
    # Numbers are read as unsigned, so negative ones are huge.
    if len(sizes) > 8 or max([offset, *sizes]) > 2**48 or math.prod(sizes) * dtype.itemsize != size:
        raise ValueError(f"the size of {name} does not match its shape")
    return _Entry(dtype, tuple(sizes), shard, offset, size, checksum)


# === The table ===


def _table(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yields names and entries in order."""
    if len(content) < _FOOTER or struct.unpack("<Q", content[-8:])[0] != _MAGIC:
        raise ValueError("its index is not a table")
    footer = content[-_FOOTER:]
    position = 0
    handles = []
    for _ in range(4):  # offset and size of the unused metaindex block, then of the index block
        number, position = read_varint(footer, position)
        handles.append(number)
    previous = None
    for _, value in _block(content, *handles[2:]):
        start, position = read_varint(value, 0)
        for key, entry in _block(content, start, read_varint(value, position)[0]):
            if previous is not None and key <= previous:
                raise ValueError("its index is not sorted")
            previous = key
            yield key, entry


def _block(content: bytes, start: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """Yields the keys and values of a block; a key is stored as a prefix of the previous key and a suffix."""
    block, trailer = content[start : start + size + 1], content[start + size + 1 : start + size + _TRAILER]
    if len(trailer) != 4 or struct.unpack("<I", trailer)[0] != _checksum(block):
        raise ValueError("its index is damaged")
    if size < 4 or block[-1] != 0:
        raise ValueError("its index is compressed")
    end = size - 4 - 4 * struct.unpack("<I", block[size - 4 : size])[0]
    position, key = 0, b""
    while position < end:
        shared, position = read_varint(block, position)
        unshared, position = read_varint(block, position)
        length, position = read_varint(block, position)
        if shared > len(key) or shared + unshared > _MAX_NAME or position + unshared + length > end:
            raise ValueError("its index is damaged")
        key = key[:shared] + block[position : position + unshared]
        position += unshared
        yield key, block[position : position + length]
        position += length


def _checksum(content: bytes) -> int:
    """Masked CRC-32C, as in LevelDB."""
    checksum = google_crc32c.value(content)
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF
