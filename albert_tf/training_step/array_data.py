"""Batches of texts as a dataset, without the autotuning of tf.data."""

import keras
import tensorflow as tf

from albert_tf.data.autotuning import PREFETCHED_BATCHES, without_autotuning


def dataset_of(batches: keras.utils.PyDataset) -> tf.data.Dataset:
    """Batches of any lengths; Keras would take the length of the first two for that of all, where they have one."""
    signature = tf.nest.map_structure(lambda array: tf.TensorSpec([None] * array.ndim, array.dtype), batches[0])
    dataset = tf.data.Dataset.from_generator(
        lambda: (batches[index] for index in range(len(batches))), output_signature=signature
    )
    dataset = dataset.apply(tf.data.experimental.assert_cardinality(len(batches)))
    return without_autotuning(dataset.prefetch(PREFETCHED_BATCHES))
