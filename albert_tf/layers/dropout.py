"""Dropout whose masks differ from replica to replica.

On TensorFlow this file asks tf.distribute which replica it runs on; it is the one layer that knows TensorFlow.
"""

from typing import Any

import keras


class ReplicaSeedGenerator(keras.random.SeedGenerator):
    """A generator of seeds whose state is the same on all replicas and whose seeds are not.

    Every draw advances the state, so microbatches and layer calls differ too. Equal layouts of devices give equal
    seeds, and one device those of Keras.
    """

    def next(self, ordered=True):
        seed, replica = super().next(ordered), _replica_number()
        return seed if replica is None else seed + keras.ops.cast(keras.ops.stack([replica, 0]), seed.dtype)


class Dropout(keras.layers.Layer):
    """Inverted dropout, as `keras.layers.Dropout`, independent on every replica of a batch.

    Args:
        rate: float, at least 0 and below 1. The share of values that are set to 0.
    """

    def __init__(self, rate: float, **kwargs):
        super().__init__(**kwargs)
        self.rate = rate
        self.seed_generator = ReplicaSeedGenerator() if rate > 0 else None
        self.supports_masking = True
        self.built = True

    def call(self, inputs, training=False):
        if self.seed_generator is None or not training:
            return inputs
        return keras.random.dropout(inputs, self.rate, seed=self.seed_generator)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "rate": self.rate}


def _replica_number() -> Any:
    """The number of the replica that is running, an int32 scalar; None where there is only one."""
    if keras.backend.backend() != "tensorflow":
        return None
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return None
    return context.replica_id_in_sync_group
