"""Shards of tokenised documents: what examples are made of on the fly.

A shard is a TFRecord file of four records, each an array in little-endian bytes, so that TensorFlow reads it with its
own operations and finds damage by the records' checksums.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from albert_tf.data.corpus import TokenizedDocuments
from albert_tf.data.shards import read_records, write_records

# In the order of the records: hash of each document, segments of each, tokens of each segment, all tokens.
ARRAYS = {"keys": np.dtype("<u8"), "documents": np.dtype("<i8"), "segments": np.dtype("<i4"), "tokens": np.dtype("<i4")}


def write_document_shard(file: BinaryIO, arrays: Mapping[str, npt.NDArray]) -> None:
    """Writes the arrays that `ARRAYS` names."""
    write_records(file, (np.asarray(arrays[name], dtype).tobytes() for name, dtype in ARRAYS.items()))


def read_document_shard(path: Path, lengths_only: bool = False) -> TokenizedDocuments:
    """Reads an undamaged shard, or all but its tokens."""
    arrays = {"tokens": np.zeros(0, np.int32)}
    names = [name for name in ARRAYS if not (lengths_only and name == "tokens")]
    for name, record in zip(names, read_records(path)):
        arrays[name] = np.frombuffer(record, ARRAYS[name])
    return TokenizedDocuments.from_lengths(arrays["tokens"], arrays["segments"], arrays["documents"], arrays["keys"])
