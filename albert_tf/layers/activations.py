"""Activation functions by the names that configs use."""

import math
from collections.abc import Callable

from keras import ops


def gelu_tanh(x):
    """The tanh approximation of GELU, which is what the reference computes for "gelu".

    The cube is written as a product: a power of three costs several times as much on a CPU.

    References: `modeling.py` (gelu) of google-research/albert; arXiv 1606.08415.
    """
    inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * (x * x * x))
    return x * (0.5 * (1.0 + ops.tanh(inner)))


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
