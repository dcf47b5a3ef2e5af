"""Activation functions by their names in configs."""

import math
from collections.abc import Callable

from keras import ops


def gelu_tanh(x):
    """The tanh approximation of GELU, which the reference uses for "gelu".

    It is computed as a sigmoid, because (1 + tanh(u)) / 2 = sigmoid(2 u) needs fewer passes over memory.

    References: `modeling.py` (gelu) of google-research/albert; arXiv 1606.08415.
    """
    slope = 2.0 * math.sqrt(2.0 / math.pi)
    return x * ops.sigmoid(x * (slope + (slope * 0.044715) * (x * x)))


ACTIVATIONS: dict[str, Callable] = {
    "gelu_new": gelu_tanh,
    "gelu": lambda x: ops.gelu(x, approximate=False),
    "relu": ops.relu,
    "tanh": ops.tanh,
    "linear": lambda x: x,
}

# The same functions for inference, in the form that TensorFlow's graph optimizer joins with the product before it.
FUSED_ACTIVATIONS: dict[str, Callable] = {**ACTIVATIONS, "gelu_new": lambda x: ops.gelu(x, approximate=True)}
