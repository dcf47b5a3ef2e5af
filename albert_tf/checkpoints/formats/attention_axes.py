"""Attention variables in the layout of Keras' layers: kernels [D, N, H] and [N, H, D], biases [N, H].

Letters: D hidden, N heads, H head size (= D / N).
"""

import pathlib
from collections.abc import Mapping

import numpy as np

from albert_tf.config import AlbertConfig


def merge_heads(source: pathlib.Path, config: AlbertConfig, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Reshapes the attention variables to [D, D] and [D], as in our layers.

    Raises:
        ValueError: the file has another number of heads than its config.
    """
    return {path: _merged(source, config, path, array) for path, array in arrays.items()}


def _merged(source: pathlib.Path, config: AlbertConfig, path: str, array: np.ndarray) -> np.ndarray:
    if "/attention_" not in path or array.ndim != (3 if path.endswith("/kernel") else 2):
        return array
    is_output = path.endswith("/output/kernel")
    heads = array.shape[0 if is_output or array.ndim == 2 else 1]
    if heads != config.num_attention_heads:
        raise ValueError(
            f"{source} has {heads} attention heads, but its config has num_attention_heads="
            f"{config.num_attention_heads}; correct the config."
        )
    if array.ndim == 2:
        return array.reshape(-1)
    return array.reshape((-1, array.shape[-1]) if is_output else (len(array), -1))
