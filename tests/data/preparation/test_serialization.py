"""Serialised bytes are those of TensorFlow's own tf.train.Example."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.data.features import PRETRAINING_FEATURES
from albert_tf.data.preparation.serialization import serialize_examples, varint


def as_tensorflow_does(features, arrays, row):
    example = tf.train.Example()
    for feature in features:
        values = np.atleast_1d(arrays[feature.name][row]).tolist()
        entry = example.features.feature[feature.disk_name]
        (entry.int64_list if feature.disk_dtype == "int64" else entry.float_list).value.extend(values)
    return example.SerializeToString(deterministic=True)


@pytest.mark.parametrize("largest", [1, 127, 128, 16_383, 16_384, 2**21, 2**31 - 1])
@pytest.mark.parametrize("length", [8, 130])
def test_bytes_are_tensorflows(largest, length):
    random = np.random.default_rng(largest)
    sizes = {"L": length, "P": 5}
    arrays = {}
    for feature in PRETRAINING_FEATURES:
        shape = (6, *feature.row_shape(sizes))
        values = random.integers(0, largest, shape, endpoint=True) >> random.integers(0, 31, shape)
        arrays[feature.name] = values.astype(feature.dtype)
    arrays["input_ids"][0, 0] = largest
    records = serialize_examples(PRETRAINING_FEATURES, arrays)
    assert records == [as_tensorflow_does(PRETRAINING_FEATURES, arrays, row) for row in range(6)]


@pytest.mark.parametrize(
    ("value", "encoded"), [(0, b"\0"), (127, b"\x7f"), (128, b"\x80\x01"), (16_384, b"\x80\x80\x01")]
)
def test_varints(value, encoded):
    assert varint(value) == encoded
