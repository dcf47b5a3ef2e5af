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
    merged = dict(arrays)
    for path, array in arrays.items():
        if "/attention_" not in path or array.ndim != (3 if path.endswith("/kernel") else 2):
            continue
        heads_first = array.ndim == 2 or path.endswith("/output/kernel")
        heads = array.shape[0 if heads_first else 1]
        if heads != config.num_attention_heads:
            raise ValueError(
                f"{source} has {heads} attention heads, but its config has num_attention_heads="
                f"{config.num_attention_heads}; correct the config."
            )
        merged[path] = array.reshape((-1, *array.shape[2:]) if heads_first else (len(array), -1))
    return merged
