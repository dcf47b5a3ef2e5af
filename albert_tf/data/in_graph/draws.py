"""The draws of `albert_tf.data.draws` as TensorFlow operations, equal bit for bit."""

import math

import tensorflow as tf

from albert_tf.data import draws

_HIGHEST_BIT = 2**63


def u64(value) -> tf.Tensor:
    """The value as uint64; tensors of integers must not be negative."""
    return tf.cast(value, tf.uint64) if tf.is_tensor(value) else tf.constant(value, tf.uint64)


def mix(values: tf.Tensor) -> tf.Tensor:
    """See `draws.mix`; uint64 in and out."""
    mixed = tf.bitwise.bitwise_xor(values, tf.bitwise.right_shift(values, u64(30))) * u64(draws.FIRST)
    mixed = tf.bitwise.bitwise_xor(mixed, tf.bitwise.right_shift(mixed, u64(27))) * u64(draws.SECOND)
    return tf.bitwise.bitwise_xor(mixed, tf.bitwise.right_shift(mixed, u64(31)))


def draw(keys: tf.Tensor, counters) -> tf.Tensor:
    """See `draws.draw`; keys are uint64, counters integers."""
    return mix(keys + (u64(counters) + u64(1)) * u64(draws.GAMMA))


def child_keys(keys: tf.Tensor, values) -> tf.Tensor:
    """See `draws.child_keys`; keys are uint64, values integers."""
    drawn = draw(u64(0), values)
    keys, drawn = keys + tf.zeros_like(drawn), drawn + tf.zeros_like(keys)  # this operation does not broadcast
    return mix(tf.bitwise.bitwise_xor(keys, drawn))


def below(bits: tf.Tensor, bounds) -> tf.Tensor:
    """See `draws.below`: int64."""
    return tf.cast(_high_half(_high_half(bits) * u64(bounds)), tf.int64)


def below_low(bits: tf.Tensor, bounds) -> tf.Tensor:
    """See `draws.below_low`: int64."""
    return tf.cast(_high_half(tf.bitwise.bitwise_and(bits, u64(2**32 - 1)) * u64(bounds)), tf.int64)


def happens(bits: tf.Tensor, probability: float) -> tf.Tensor:
    """See `draws.happens`: bool."""
    return tf.cast(_high_half(bits), tf.int64) < math.ceil(probability * 2.0**32)


def sortable(bits: tf.Tensor) -> tf.Tensor:
    """int64 in the order of these uint64, because TensorFlow sorts signed integers only."""
    return tf.bitcast(tf.bitwise.bitwise_xor(bits, u64(_HIGHEST_BIT)), tf.int64)


def from_sortable(values: tf.Tensor) -> tf.Tensor:
    """The uint64 that `sortable` was made of."""
    return tf.bitwise.bitwise_xor(tf.bitcast(values, tf.uint64), u64(_HIGHEST_BIT))


def _high_half(bits: tf.Tensor) -> tf.Tensor:
    return tf.bitwise.right_shift(bits, u64(32))
