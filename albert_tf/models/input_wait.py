"""How long a device stands still because its next batch is not there yet.

Like the training step that uses it, this file is about tf.data and tf.distribute and imports TensorFlow.
"""

import tensorflow as tf


def timed_next(iterator):
    """The next batch, and the seconds until it was there, a float64 scalar."""
    begun = tf.timestamp()
    with tf.control_dependencies([begun]):
        batch = iterator.get_next()
    return batch, _time_of(batch) - begun


def standstill(logs, following):
    """Seconds between the end of a step and the arrival of the batch that comes after it; 0 where that came first.

    Neither waits for the other, so that a batch is still fetched while its forerunner is worked on.

    Args:
        logs: what the step returned.
        following: an Optional with a batch.
    """
    # A step that runs on an accelerator has ended when its values are on the host, where a branch needs them.
    ended = tf.cond(tf.math.is_finite(logs["loss"]), tf.timestamp, tf.timestamp)
    return tf.maximum(_time_of(following) - ended, 0.0)


def _time_of(values):
    with tf.control_dependencies(tf.nest.flatten(values, expand_composites=True)):
        return tf.timestamp()
