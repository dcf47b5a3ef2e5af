"""A `tf.data.Dataset` of texts as one of inputs, tokenized on the host.

Letters: B batch, L sequence.
"""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf


def encoded_dataset(
    dataset: tf.data.Dataset,
    encode: Callable[..., dict[str, np.ndarray]],
    ids_of: Callable[[np.ndarray], np.ndarray],
    inputs: Sequence[str],
    label_shape: Sequence[int],
) -> tf.data.Dataset:
    """Batches of texts as batches of inputs, in their order; nothing is read before it is needed.

    Args:
        dataset: batches of texts, tf.string [B], or of `(texts, pairs)`; alone, or with labels and weights.
        encode: makes inputs, int32 [B, L], of texts, or of texts and pairs, bytes [B] each.
        ids_of: makes int32 of names of labels, bytes [B, ...]. Labels that are numbers stay as they are.
        inputs: names of the inputs.
        label_shape: that of what `ids_of` returns, without the axis of the batch.
    """

    def convert(x, y: Any = None, weights=None):
        def arrays(*columns: np.ndarray) -> list[np.ndarray]:
            encoded = encode(*columns)
            return [encoded[name] for name in inputs]

        columns = tf.nest.flatten(x)
        encoded: Any = tf.numpy_function(arrays, columns, [tf.int32] * len(inputs))
        for array in encoded:
            array.set_shape([columns[0].shape[0], None])
        if getattr(y, "dtype", None) == tf.string:
            y = tf.numpy_function(ids_of, [y.to_tensor() if isinstance(y, tf.RaggedTensor) else y], tf.int32)
            y.set_shape([columns[0].shape[0], *label_shape])
        return keras.utils.pack_x_y_sample_weight(dict(zip(inputs, encoded)), y, weights)

    return dataset.map(convert)
