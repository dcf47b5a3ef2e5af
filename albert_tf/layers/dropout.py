"""Dropout with different masks on each replica.

This is the only layer that imports TensorFlow, to get its replica from tf.distribute.
"""

from typing import Any

import keras

from albert_tf.layers.seeds import next_seed


class ReplicaSeedGenerator(keras.random.SeedGenerator):
    """A generator with the same state, but different seeds, on all replicas.

    Every draw advances the state, so seeds also differ between microbatches and layer calls. They are reproducible for
    the same number of replicas; with one replica they are those of Keras.
    """

    def next(self, ordered=True):
        seed, replica = super().next(ordered), _replica_number()
        return seed if replica is None else seed + keras.ops.cast(keras.ops.stack([replica, 0]), seed.dtype)


class Dropout(keras.layers.Layer):
    """As `keras.layers.Dropout`, but independent on every replica.

    Args:
        rate: float in [0, 1). Fraction of values that are set to 0.
    """

    def __init__(self, rate: float, **kwargs):
        super().__init__(**kwargs)
        self.rate = rate
        self.seed_generator = ReplicaSeedGenerator(next_seed()) if rate > 0 else None
        self.supports_masking = True
        self.built = True

    def call(self, inputs, training=False):
        if self.seed_generator is None or not training:
            return inputs
        return keras.random.dropout(inputs, self.rate, seed=self.seed_generator)

    def get_config(self):
        return {**super().get_config(), "rate": self.rate}


def _replica_number() -> Any:
    """The index of the current replica, an int32 scalar; None if there is only one."""
    if keras.backend.backend() != "tensorflow":
        return None
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return None
    return context.replica_id_in_sync_group
