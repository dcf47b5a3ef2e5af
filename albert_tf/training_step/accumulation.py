"""Gradient accumulation: computes a batch as microbatches, one at a time, to save memory."""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf
from keras.utils import unpack_x_y_sample_weight

from albert_tf.data.finetuning.batches import COUNTED, WEIGHTS

_UNDIVIDED = (
    "`gradient_accumulation_steps` must divide the number of rows per device, in the last batch too. Received: "
    "gradient_accumulation_steps={}, {} rows; use a batch size and a number of rows that are multiples of devices "
    "times microbatches: leave out the last rows of lists and arrays, and in tf.data set drop_remainder=True."
)


class Batch(NamedTuple):
    """This replica's rows of a batch, or a microbatch of them.

    Attributes:
        counted: float32 [B], 0 for copies that fill the batch, 1 for other rows; None if there are no copies.
    """

    x: Any
    y: Any
    sample_weight: Any
    counted: Any = None

    @classmethod
    def of(cls, data) -> "Batch":
        """The batch that `fit` or `evaluate` gets."""
        x, y, weights = unpack_x_y_sample_weight(data)
        if isinstance(weights, dict) and COUNTED in weights:
            return cls(x, y, weights.get(WEIGHTS), weights[COUNTED])
        return cls(x, y, weights)

    @property
    def rows(self):
        """The number of rows that count, a float32 scalar."""
        if self.counted is not None:
            return tf.reduce_sum(self.counted)
        first = next(leaf for leaf in tf.nest.flatten(self.x) if leaf is not None)
        return tf.cast(tf.shape(first)[0], tf.float32)


def accumulate(batch: Batch, count: int, function: Callable[[Batch], tuple[Any, Any]]) -> tuple[Any, Any]:
    """Calls a function on each of `count` microbatches.

    Args:
        function: returns two nested structures of tensors with static shapes.

    Returns:
        The first structure, summed over the microbatches, and the second one, from the last microbatch.
    """
    microbatch = _split(batch, count)
    if count == 1 or tf.executing_eagerly():
        first, (sums, last) = 1, function(microbatch(0))
    else:
        first, (sums, last) = 0, _zeros_as_returned(lambda: function(microbatch(0)))

    def add(index, sums, last):
        values, last = function(microbatch(index))
        return index + 1, tf.nest.map_structure(tf.add, sums, values), last

    if count > 1:
        # One iteration at a time, to save memory.
        limits = {"maximum_iterations": count - first, "parallel_iterations": 1}
        _, sums, last = tf.while_loop(lambda index, *_: index < count, add, (tf.constant(first), sums, last), **limits)
    return sums, last


def _zeros_as_returned(function: Callable) -> Any:
    """Zeros in the structure that a function returns; it is traced, but not run.

    Running the first microbatch outside the loop would need additional memory.
    """
    specs = tf.function(function, autograph=False).get_concrete_function().structured_outputs
    return tf.nest.map_structure(lambda spec: tf.zeros(spec.shape, spec.dtype), specs)


def _split(batch: Batch, count: int) -> Callable[[Any], Batch]:
    """A function that returns the microbatch of an index."""
    if count == 1:
        return lambda index: batch

    def split(tensor):
        if tensor is None:
            return None
        tensor = tf.convert_to_tensor(tensor)
        with tf.control_dependencies(_check_rows(tensor, count)):
            return tf.reshape(tensor, tf.concat([[count, tf.shape(tensor)[0] // count], tf.shape(tensor)[1:]], 0))

    tensors = tf.nest.map_structure(split, tuple(batch))  # [count, rows, ...] each
    return lambda index: Batch(*tf.nest.map_structure(lambda x: None if x is None else x[index], tensors))


def _check_rows(tensor, count: int) -> list[Any]:
    """Operations to run first when the number of rows is unknown at trace time."""
    rows = tensor.shape[0]
    if rows is None:
        message = _UNDIVIDED.format(count, "a batch with a remainder of")
        return [tf.debugging.assert_equal(tf.shape(tensor)[0] % count, 0, message)]
    check_rows(rows, count)
    return []


def check_rows(rows: int, count: int) -> None:
    """Raises ValueError if a batch of this many rows per device cannot be split into `count` microbatches."""
    if rows % count:
        raise ValueError(_UNDIVIDED.format(count, f"a batch of {rows}"))
