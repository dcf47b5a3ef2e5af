"""Faster forms for TensorFlow on CPUs, for training and for inference; `plain.py` says what they compute.

Letters: B batch, L sequence (M for the axis of keys), N heads, R rows (B L), D hidden, F intermediate.
"""

import math

import keras
import tensorflow as tf

from albert_tf.layers.kernels import has_onednn
from albert_tf.layers.kernels.plain import Plain


class Programs(Plain):
    """For training: GELU, layer normalisation and softmax with gradients of their own.

    TensorFlow runs the bias, the GELU and the layer normalisation of a block as some thirty operations, each of which
    reads and writes whole tensors. Where shapes are fixed, as in pretraining, each is one XLA program forward and one
    backward here, which keeps nothing but its inputs. XLA would compile anew for each length, so batches of varying
    length get operations with gradients written out, which are fewer.
    """

    def softmax(self, logits, bias=None):
        """The same in bfloat16 without copies in float32, where oneDNN computes a softmax of any type in float32.

        Steps of base are 1.07 (8 x 128) and 1.1 times (2 x 512) as fast with AMX.
        """
        if logits.dtype != tf.bfloat16 or not has_onednn():
            return super().softmax(logits, bias)
        return _softmax(logits if bias is None else logits + tf.cast(bias, logits.dtype))

    def activate(self, x, bias, activation, training):
        return bias_gelu(x, bias) if activation == "gelu_new" else super().activate(x, bias, activation, training)

    def add_and_normalize(self, x, residual, layer_norm, training):
        return add_and_normalize(x, residual, layer_norm)


class OneDnn(Plain):
    """For inference: forms that oneDNN computes fast.

    TensorFlow runs Keras' layer normalisation as six operations that read and write whole tensors. Where oneDNN is on,
    its graph optimizer makes one operation of `normalize`. Float32 outputs differ by 5e-7. Where oneDNN is off, models
    take 9 % longer with it.

    Args:
        low_precision_logits: bool. Whether logits of attention stay in the compute data type, and are scaled and masked
            in the operation that computes them; oneDNN computes a softmax in float32 whatever the type of its input.
            Where it is off, sums would be computed in bfloat16.

    On an Intel CPU with AMX, both make base 1.3 times as fast in bfloat16, and 1.05 times in float32.
    """

    def __init__(self, low_precision_logits: bool = True):
        self.scales_queries = not low_precision_logits

    def softmax(self, logits, bias=None):
        if self.scales_queries:
            return super().softmax(logits, bias)
        return keras.ops.softmax(logits if bias is None else logits + keras.ops.cast(bias, logits.dtype), axis=-1)

    def add_and_normalize(self, x, residual, layer_norm, training):
        return normalize(x + residual, layer_norm)


# === Inference ===


def normalize(x, layer_norm: keras.layers.LayerNormalization):
    """`layer_norm` of a tensor [R, D], as the batch normalisation of an image whose channels are the rows."""
    rows, none = tf.shape(x)[0], tf.zeros([0])
    image = tf.reshape(x, [1, rows, x.shape[-1], 1])
    scale, offset = tf.fill([rows], 1.0), tf.fill([rows], 0.0)
    normalized = tf.raw_ops.FusedBatchNormV3(
        x=image,
        scale=scale,
        offset=offset,
        mean=none,
        variance=none,
        epsilon=layer_norm.epsilon,
        data_format="NCHW",
        is_training=True,
    )[0]
    gamma, beta = (keras.ops.cast(weight, x.dtype) for weight in (layer_norm.gamma, layer_norm.beta))
    return tf.reshape(normalized, tf.shape(x)) * gamma + beta


# === Training ===

_SLOPE, _CUBIC = 2.0 * math.sqrt(2.0 / math.pi), 0.044715

_compiled = tf.function(jit_compile=True, autograph=False)


def _is_fixed(x) -> bool:
    """Whether a tensor is part of a graph and has a fixed shape."""
    return not tf.executing_eagerly() and x.shape.is_fully_defined()


def bias_gelu(x, bias):
    """GELU (tanh approximation) of `x + bias`, [R, F] and [F] of one dtype; programs compute it in float32."""
    program = tf.custom_gradient(lambda x, bias: (_gelu(x, bias), lambda gradient: _gelu_gradient(x, bias, gradient)))
    return program(x, bias) if _is_fixed(x) else _gelu_operations(keras.ops.add(x, bias))


def add_and_normalize(x, residual, layer_norm: keras.layers.LayerNormalization):
    """Layer normalisation of the last axis of `x + residual`, [R, D] of one dtype, computed in float32."""
    epsilon = layer_norm.epsilon

    @tf.custom_gradient
    def program(x, residual, gamma, beta):
        def backward(gradient):
            to_x, *to_weights = _norm_gradient(x, residual, gamma, gradient, epsilon)
            return to_x, to_x, *to_weights

        return _norm(x, residual, gamma, beta, epsilon), backward

    @tf.custom_gradient
    def operations(total, gamma, beta):
        normalized, inverse = _standardized(epsilon, total)
        scaled = tf.cast(normalized * gamma + beta, total.dtype)
        return scaled, lambda gradient: scaled_gradient(normalized, inverse, gamma, gradient)

    weights = [tf.cast(weight, tf.float32) for weight in (layer_norm.gamma, layer_norm.beta)]
    return program(x, residual, *weights) if _is_fixed(x) else operations(x + residual, *weights)


@tf.custom_gradient
def _softmax(logits):
    """The softmax of logits [..., L, M]."""
    probabilities = tf.nn.softmax(logits)
    backward = _softmax_gradient if _is_fixed(logits) else _softmax_gradient.python_function
    return probabilities, lambda gradient: backward(probabilities, gradient)


@_compiled
def _softmax_gradient(probabilities, gradient):
    probabilities, scaled = tf.cast(probabilities, tf.float32), tf.cast(gradient, tf.float32)
    scaled *= probabilities
    to_logits = scaled - probabilities * tf.reduce_sum(scaled, axis=-1, keepdims=True)
    return tf.cast(to_logits, gradient.dtype)


@tf.custom_gradient
def _gelu_operations(x):
    factor = _SLOPE + (_SLOPE * _CUBIC) * (x * x)
    gate = tf.sigmoid(x * factor)

    # SigmoidGrad is x gate (1 - gate), and 3 factor - 2 slope is the derivative of x factor.
    def backward(gradient):
        return gradient * (gate + tf.raw_ops.SigmoidGrad(y=gate, dy=x) * (3.0 * factor - 2.0 * _SLOPE))

    return x * gate, backward


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
    normalized, _ = _standardized(epsilon, x, residual)
    return tf.cast(normalized * gamma + beta, x.dtype)


@_compiled
def _norm_gradient(x, residual, gamma, gradient, epsilon: float):
    """The gradients of `_norm` for `x` and `residual` [R, D], the same, and for `gamma` and `beta` [D]."""
    return scaled_gradient(*_standardized(epsilon, x, residual), gamma, gradient)


def _standardized(epsilon: float, *terms):
    """The sum of `terms` [R, D] with mean 0 and variance 1, and the inverse deviations [R, 1]; both float32."""
    total = tf.add_n([tf.cast(term, tf.float32) for term in terms])
    centred = total - tf.reduce_mean(total, axis=-1, keepdims=True)
    inverse = tf.math.rsqrt(tf.reduce_mean(tf.square(centred), axis=-1, keepdims=True) + epsilon)
    return centred * inverse, inverse


def scaled_gradient(normalized, inverse, gamma, gradient):
    """The gradients for what was standardized, and for `gamma` and `beta`."""
    dtype, gradient = gradient.dtype, tf.cast(gradient, tf.float32)
    scaled = gradient * gamma
    shared = normalized * tf.reduce_mean(scaled * normalized, axis=-1, keepdims=True)
    to_x = inverse * (scaled - tf.reduce_mean(scaled, axis=-1, keepdims=True) - shared)
    return tf.cast(to_x, dtype), tf.reduce_sum(gradient * normalized, axis=0), tf.reduce_sum(gradient, axis=0)
