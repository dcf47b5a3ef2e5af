"""Serializes batches of examples as `tf.train.Example`, without TensorFlow.

The wire format is written directly, because building a protocol buffer for every example takes longer than making the
example. The bytes equal those of `tf.train.Example.SerializeToString(deterministic=True)`.

References: protobuf.dev/programming-guides/encoding, tensorflow/core/example/example.proto.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from albert_tf.data.features import Feature

# Tags of the length-delimited fields 1, 2 and 3.
_FIELD_1, _FIELD_2, _FIELD_3 = b"\x0a", b"\x12", b"\x1a"


def varint(value: int) -> bytes:
    """Encodes a non-negative integer.

    >>> varint(300)
    b'\\xac\\x02'
    """
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _encode_varints(values: npt.NDArray) -> list[bytes]:
    """Encodes each row of non-negative integers [B, N]."""
    groups = [values]
    while (groups[-1] > 0x7F).any():
        groups.append(groups[-1] >> 7)
    if len(groups) == 1:
        return _split(values.astype(np.uint8).tobytes(), range(0, values.size + 1, values.shape[1]))
    stacked = np.empty((*values.shape, len(groups)), np.uint8)  # [B, N, groups]
    is_used = np.ones(stacked.shape, np.bool_)
    for index, group in enumerate(groups):
        stacked[..., index] = group & 0x7F | (group > 0x7F) * 0x80
        is_used[..., index] = (group > 0) | (index == 0)
    lengths = is_used.reshape(len(values), -1).sum(axis=1)
    return _split(stacked[is_used].tobytes(), [0, *np.cumsum(lengths).tolist()])


def _split(data: bytes, offsets: Iterable[int]) -> list[bytes]:
    return [data[start:stop] for start, stop in pairwise(offsets)]


def _encode(feature: Feature, array: npt.NDArray) -> list[bytes]:
    """Encodes the rows of one feature; a feature without row axes has one value per row."""
    rows = array.reshape(len(array), -1)
    if feature.disk_dtype == "float32":
        return _split(rows.astype("<f4").tobytes(), range(0, 4 * rows.size + 1, 4 * rows.shape[1]))
    return _encode_varints(rows)


@lru_cache(maxsize=2**14)
def _header(disk_name: str, disk_dtype: str, length: int) -> bytes:
    """Encodes a feature's map entry up to its `length` bytes of values."""
    values = _FIELD_1 + varint(length)
    kind = _FIELD_3 if disk_dtype == "int64" else _FIELD_2
    feature = kind + varint(len(values) + length) + values
    name = disk_name.encode()
    entry = _FIELD_1 + varint(len(name)) + name + _FIELD_2 + varint(len(feature) + length) + feature
    return _FIELD_1 + varint(len(entry) + length) + entry


def serialize_examples(features: Iterable[Feature], arrays: Mapping[str, npt.NDArray]) -> list[bytes]:
    """Encodes arrays [B, ...] by name of the feature as B serialized `tf.train.Example`s; integers are not negative."""
    ordered = sorted(features, key=lambda feature: feature.disk_name)
    columns = []
    for feature in ordered:
        values = _encode(feature, arrays[feature.name])
        columns += [[_header(feature.disk_name, feature.disk_dtype, len(row)) for row in values], values]
    bodies = [b"".join(parts) for parts in zip(*columns, strict=True)]
    return [_FIELD_1 + varint(len(body)) + body for body in bodies]
