"""Forms for GPUs of which XLA makes fewer kernels, on TensorFlow and on JAX; `plain.py` says what they compute.

Letters: R rows (batch x sequence), D hidden.
"""

import keras
from keras import ops

from albert_tf.layers.kernels.fused import Fused


class JaxGpu(Fused):
    """`Fused`, but with products and layer normalisations for GPUs."""

    def splits_products(self, has_dropout):
        return not has_dropout  # where attention is several operations, they are faster with one product

    def add_and_normalize(self, x, residual, layer_norm, training):
        total = x + residual
        return scaled(total, *moments(total), *weights_of(layer_norm)) if training else normalize(total, layer_norm)


def weights_of(layer_norm: keras.layers.LayerNormalization) -> list:
    """Scale and offset in float32, and the epsilon."""
    return [*(ops.cast(weight, "float32") for weight in (layer_norm.gamma, layer_norm.beta)), layer_norm.epsilon]


def normalize(x, layer_norm: keras.layers.LayerNormalization):
    """`layer_norm` of a tensor [R, D] for inference, a kernel that reads and writes once."""
    gamma, beta, epsilon = weights_of(layer_norm)
    wide = ops.cast(x, "float32")
    centred = wide - ops.mean(wide, axis=-1, keepdims=True)
    inverse = ops.rsqrt(ops.mean(ops.square(centred), axis=-1, keepdims=True) + epsilon)
    return ops.cast(centred * inverse * gamma + beta, x.dtype)


def moments(x):
    """Means and variances of the rows of a tensor [R, D], float32 [R, 1], by one kernel.

    Squares are those of distances from the first value of a row, so that little is lost where a mean is large.
    """
    wide = ops.cast(x, "float32")
    first = ops.stop_gradient(wide[:, :1])
    mean, square = (ops.mean(power, axis=-1, keepdims=True) for power in (wide - first, ops.square(wide - first)))
    return first + mean, ops.relu(square - ops.square(mean))


def scaled(x, mean, variance, gamma, beta, epsilon: float):
    """The layer normalisation of a tensor [R, D] with these moments."""
    return ops.cast((ops.cast(x, "float32") - mean) * ops.rsqrt(variance + epsilon) * gamma + beta, x.dtype)
