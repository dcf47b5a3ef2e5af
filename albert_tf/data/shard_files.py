"""Reads and writes TFRecord files without TensorFlow.

A shard of examples has one record per example. A shard of tokenized documents has four, each a little-endian array:
hash of each document, segments of each document, tokens of each segment, all tokens.

A record is its length (8 bytes), a checksum of the length (4), the data, a checksum of the data (4). With google-crc32c
it is written about four times faster than with `tf.io.TFRecordWriter`, and worker processes need not import TensorFlow.

References: tensorflow/core/lib/io/record_writer.h.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import google_crc32c
import numpy as np
import numpy.typing as npt

from albert_tf.data.corpus import TokenizedDocuments
from albert_tf.files.urls import opened

_LENGTH = struct.Struct("<Q")
_CHECKSUM = struct.Struct("<I")
# The records of a shard of documents, in order.
DOCUMENT_ARRAYS = {
    "keys": np.dtype("<u8"),
    "documents": np.dtype("<i8"),
    "segments": np.dtype("<i4"),
    "tokens": np.dtype("<i4"),
}


def masked_checksum(data: bytes) -> bytes:
    """Returns the masked CRC-32C of a record."""
    checksum = google_crc32c.value(data)
    return _CHECKSUM.pack((((checksum >> 15) | (checksum << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def write_records(file: BinaryIO, records: Iterable[bytes]) -> None:
    """Appends records to a file."""
    for record in records:
        length = _LENGTH.pack(len(record))
        for part in (length, masked_checksum(length), record, masked_checksum(record)):
            file.write(part)


@dataclass(frozen=True)
class ShardFault:
    """The first fault of a shard.

    Args:
        path: the file.
        record: index of the record.
        reason: description of the fault.
        readable: every record can be read, but the file is not the one that `prepare` wrote.
    """

    path: Path
    record: int
    reason: str
    readable: bool = False

    def __str__(self) -> str:
        if self.readable:
            return f"{self.path} is not the file that `prepare` wrote ({self.reason})"
        return f"{self.path} is damaged at record {self.record} ({self.reason})"


class DamagedShardError(ValueError):
    """A file is damaged, or is not a TFRecord file."""

    def __init__(self, fault: ShardFault):
        self.fault = fault
        super().__init__(f"{fault}; check that it is the right file, or prepare it again.")


def find_fault(path: Path, records: int | None = None, size: int | None = None) -> ShardFault | None:
    """Verifies all checksums of a TFRecord file and, if given, its number of records and size in bytes.

    Returns:
        The first fault, or None.
    """
    try:
        count = sum(1 for _ in read_records(path))
    except DamagedShardError as error:
        return error.fault
    total = path.stat().st_size
    if records not in (None, count) or size not in (None, total):
        known = (f"{records} records" if records is not None else "", f"{size} bytes" if size is not None else "")
        reason = f"it holds {count} records in {total} bytes, but was written with {' in '.join(filter(None, known))}"
        return ShardFault(path, count if records is None else min(count, records), reason, readable=True)
    return None


def read_records(path: Path) -> Iterator[bytes]:
    """Yields the records of a TFRecord file; raises DamagedShardError at the first one that is damaged."""
    number = 0

    def check(holds: bool, reason: str) -> None:
        if not holds:
            raise DamagedShardError(ShardFault(path, number, reason))

    with opened(path) as file:
        while header := file.read(12):
            check(len(header) == 12, "the file ends inside the record's header")
            check(masked_checksum(header[:8]) == header[8:], "the checksum of the record's length is wrong")
            (length,) = _LENGTH.unpack(header[:8])
            record, checksum = file.read(length), file.read(4)
            check(len(record) == length and len(checksum) == 4, "the file ends inside the record")
            check(masked_checksum(record) == checksum, "the checksum of the record's data is wrong")
            yield record
            number += 1


def write_document_shard(file: BinaryIO, arrays: Mapping[str, npt.NDArray]) -> None:
    """Writes the arrays of `DOCUMENT_ARRAYS`."""
    write_records(file, (np.asarray(arrays[name], dtype).tobytes() for name, dtype in DOCUMENT_ARRAYS.items()))


def read_document_shard(path: Path) -> TokenizedDocuments:
    """Reads a shard of documents; raises DamagedShardError if a record is damaged or missing."""
    records = dict(zip(DOCUMENT_ARRAYS, read_records(path)))
    if len(records) < len(DOCUMENT_ARRAYS):
        raise DamagedShardError(ShardFault(path, len(records), "the file ends before the record"))
    return as_documents({name: np.frombuffer(records[name], dtype) for name, dtype in DOCUMENT_ARRAYS.items()})


def as_documents(arrays: Mapping[str, npt.NDArray]) -> TokenizedDocuments:
    """The documents that the arrays of `DOCUMENT_ARRAYS` hold."""
    tokens = arrays["tokens"].astype(np.int32, copy=False)
    return TokenizedDocuments.from_lengths(tokens, arrays["segments"], arrays["documents"], arrays["keys"])
