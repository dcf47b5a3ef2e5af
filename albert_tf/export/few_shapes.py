"""Inputs padded to few shapes in a TensorFlow graph, for a function that XLA compiles, and its outputs without padding.

Letters: R rows, L sequence, P predictions.
"""

from collections.abc import Callable, Mapping, Sequence

import tensorflow as tf

_POWERS = tuple(1 << exponent for exponent in range(31))


def in_few_shapes(
    compiled: Callable[[Mapping[str, tf.Tensor]], Mapping[str, tf.Tensor]],
    inputs: Mapping[str, tf.Tensor],
    lengths: Sequence[int],
    pad_token_id: int,
) -> dict[str, tf.Tensor]:
    """Calls a function with numbers of rows and of predictions that are powers of two, and with few lengths.

    Args:
        compiled: the network's outputs for inputs.
        inputs: int32 [R, L], or [R, choices, L]; `masked_lm_positions` is [R, P].
        lengths: those of padded rows, in ascending order; L is at most the last one.
        pad_token_id: id of the padding.

    Returns:
        The outputs of the R rows. Their second axis, if its size is not static, is that of the positions to predict,
        or else that of the tokens, except with choices.
    """
    ids = inputs["input_ids"]
    size = tf.shape(inputs.get("masked_lm_positions", ids))
    padded = {}
    with tf.device("/CPU:0"):  # on a GPU, each size would be copied back and forth
        for name, values in inputs.items():
            shape = tf.shape(values)
            sizes = _POWERS if name == "masked_lm_positions" else lengths
            last = _at_least(sizes, shape[-1]) - shape[-1]
            paddings = [[0, _at_least(_POWERS, shape[0]) - shape[0]], *[[0, 0]] * (values.shape.rank - 2), [0, last]]
            padded[name] = tf.pad(values, paddings, constant_values=pad_token_id if name == "input_ids" else 0)
    outputs = {}
    for name, values in compiled(padded).items():
        values = values[: size[0]]
        has_tokens = ids.shape.rank == 2 and values.shape.rank > 1 and values.shape[1] is None
        outputs[name] = values[:, : size[1]] if has_tokens else values
    return outputs


def _at_least(sizes: Sequence[int], count: tf.Tensor) -> tf.Tensor:
    """The first of these sizes, which ascend, that is not below a count."""
    return tf.gather(tf.constant(sizes), tf.searchsorted(tf.constant(sizes), [count])[0])
