"""Activation functions by the names that configs use."""

import math
from collections.abc import Callable

from keras import ops


def gelu_tanh(x):
    """The tanh approximation of GELU, which is what the reference computes for "gelu".

    Written through the sigmoid, since (1 + tanh(u)) / 2 = sigmoid(2 u): fewer passes over memory, and equal to the
    reference's form within rounding.

    References: `modeling.py` (gelu) of google-research/albert; arXiv 1606.08415.
    """
    slope = 2.0 * math.sqrt(2.0 / math.pi)
    return x * ops.sigmoid(x * (slope + (slope * 0.044715) * (x * x)))


_ACTIVATIONS: dict[str, Callable] = {
    "gelu_new": gelu_tanh,
    "gelu": lambda x: ops.gelu(x, approximate=False),
    "relu": ops.relu,
    "tanh": ops.tanh,
    "linear": lambda x: x,
}


def activation(name: str) -> Callable:
    """The function that `AlbertConfig.hidden_act` names."""
    return _ACTIVATIONS[name]
