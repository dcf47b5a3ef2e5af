"""Element-wise parts of a transformer block as small XLA programs, for training in TensorFlow.

TensorFlow runs the bias, the GELU and the layer normalisation of a block as some thirty operations, each of which reads
and writes whole tensors. Here each is one program forward and one backward, which keeps nothing but its inputs. XLA
compiles for fixed shapes, so they are used where shapes are fixed: in pretraining and other rows of equal length.

The plain versions, in `feed_forward.py` and `attention.py`, define them. This module imports TensorFlow.

Letters: R rows (B L), D hidden, F intermediate.
"""

import functools
import math

import keras
import tensorflow as tf

_SLOPE, _CUBIC = 2.0 * math.sqrt(2.0 / math.pi), 0.044715

_compiled = functools.partial(tf.function, jit_compile=True, autograph=False)


def fit(x) -> bool:
    """Whether a tensor is part of a graph and has a fixed shape."""
    return not tf.executing_eagerly() and x.shape.is_fully_defined()


@tf.custom_gradient
def bias_gelu(x, bias):
    """GELU (tanh approximation) of `x + bias`.

    Args:
        x: float tensor [R, F].
        bias: float tensor [F] of the same dtype.

    Returns:
        Tensor [R, F] of the same dtype, computed in float32.
    """
    return _gelu(x, bias), lambda gradient: _gelu_gradient(x, bias, gradient)


def add_and_normalize(x, residual, layer_norm: keras.layers.LayerNormalization):
    """Layer normalisation of `x + residual`.

    Args:
        x: float tensor [R, D].
        residual: float tensor [R, D] of the same dtype.
        layer_norm: built, of the last axis.

    Returns:
        Tensor [R, D] of the same dtype, computed in float32.
    """

    @tf.custom_gradient
    def normalize(x, residual, gamma, beta):
        def backward(gradient):
            to_x, to_gamma, to_beta = _norm_gradient(x, residual, gamma, gradient, layer_norm.epsilon)
            return to_x, to_x, to_gamma, to_beta

        return _norm(x, residual, gamma, beta, layer_norm.epsilon), backward

    return normalize(x, residual, *map(keras.ops.convert_to_tensor, (layer_norm.gamma, layer_norm.beta)))


@_compiled
def _gelu(x, bias):
    shifted = tf.cast(x, tf.float32) + tf.cast(bias, tf.float32)
    return tf.cast(shifted * _gate(shifted), x.dtype)


@_compiled
def _gelu_gradient(x, bias, gradient):
    """The gradients of `_gelu` for `x` [R, F] and `bias` [F]."""
    shifted = tf.cast(x, tf.float32) + tf.cast(bias, tf.float32)
    gate = _gate(shifted)
    slope = shifted * gate * (1.0 - gate) * _SLOPE * (1.0 + 3.0 * _CUBIC * tf.square(shifted))
    to_x = tf.cast(gradient, tf.float32) * (gate + slope)
    return tf.cast(to_x, x.dtype), tf.cast(tf.reduce_sum(to_x, axis=0), bias.dtype)


def _gate(x):
    return tf.sigmoid(x * _SLOPE * (1.0 + _CUBIC * tf.square(x)))


@_compiled
def _norm(x, residual, gamma, beta, epsilon: float):
    normalized, _ = _standardized(x, residual, epsilon)
    return tf.cast(normalized * gamma + beta, x.dtype)


@_compiled
def _norm_gradient(x, residual, gamma, gradient, epsilon: float):
    """The gradients of `_norm` for `x` and `residual` [R, D], the same, and for `gamma` and `beta` [D]."""
    normalized, inverse = _standardized(x, residual, epsilon)
    gradient = tf.cast(gradient, tf.float32)
    scaled = gradient * gamma
    shared = normalized * tf.reduce_mean(scaled * normalized, axis=-1, keepdims=True)
    to_x = inverse * (scaled - tf.reduce_mean(scaled, axis=-1, keepdims=True) - shared)
    return tf.cast(to_x, x.dtype), tf.reduce_sum(gradient * normalized, axis=0), tf.reduce_sum(gradient, axis=0)


def _standardized(x, residual, epsilon: float):
    """`x + residual` [R, D] with mean 0 and variance 1, and the inverse standard deviations [R, 1]; both float32."""
    total = tf.cast(x, tf.float32) + tf.cast(residual, tf.float32)
    centred = total - tf.reduce_mean(total, axis=-1, keepdims=True)
    inverse = tf.math.rsqrt(tf.reduce_mean(tf.square(centred), axis=-1, keepdims=True) + epsilon)
    return centred * inverse, inverse
