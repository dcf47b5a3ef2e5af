"""Batches of texts as a dataset, without the autotuning of tf.data."""

import itertools
from collections.abc import Iterator
from typing import Any

import keras
import tensorflow as tf

from albert_tf.data.autotuning import PREFETCHED_BATCHES, without_autotuning


def dataset_of(batches: keras.utils.PyDataset) -> tf.data.Dataset:
    """Batches of any lengths; Keras would take the length of the first two for that of all, where they have one."""
    inputs, *labels = batches[0]
    signature = (
        tf.nest.map_structure(lambda array: tf.TensorSpec([None] * array.ndim, array.dtype), inputs),
        *tf.nest.map_structure(lambda array: tf.TensorSpec([None, *array.shape[1:]], array.dtype), labels),
    )

    def epoch() -> Iterator[Any]:
        batches.on_epoch_begin()
        yield from map(batches.__getitem__, itertools.count() if count is None else range(count))
        batches.on_epoch_end()

    dataset, count = tf.data.Dataset.from_generator(epoch, output_signature=signature), batches.num_batches
    if count is not None:
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(count))
    return without_autotuning(dataset.prefetch(PREFETCHED_BATCHES))
