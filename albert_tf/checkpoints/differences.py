"""Warns before files are written that other code would read with different results.

This package reads them without differences: fields that others do not know are kept in the config.
"""

import warnings
from collections.abc import Mapping

import numpy as np

from albert_tf.checkpoints.names import Format
from albert_tf.config import AlbertConfig

_READERS: Mapping[Format, str] = {"google": "Google's code", "huggingface": "transformers"}


def warn_of_differences(config: AlbertConfig, arrays: Mapping[str, np.ndarray], layout: Format) -> None:
    """Warns of each field of the config that the format's other readers do not support."""
    reader, layers, groups = _READERS[layout], config.num_hidden_layers, config.num_hidden_groups
    theirs, ours = config.layer_norm_eps, config.head_layer_norm_eps
    if "masked_lm/layer_norm/gamma" in arrays and theirs != ours:
        warnings.warn(
            f"{reader} would compute different masked-LM logits, because its head normalizes with epsilon={theirs} "
            f"and this model's with masked_lm_layer_norm_eps={ours}.",
            stacklevel=3,
        )
    if config.attention == "block_local" and config.max_position_embeddings > 2 * config.block_size:
        warnings.warn(
            f"{reader} would compute different outputs for inputs of more than {2 * config.block_size} tokens, because "
            f"it does not have attention='block_local' (block_size={config.block_size}).",
            stacklevel=3,
        )
    # transformers computes a layer's group in floating point, which for a few sizes is one too low.
    their_groups = [int(layer / (layers / groups)) for layer in range(layers)]
    if layout == "huggingface" and their_groups != [config.group_of_layer(layer) for layer in range(layers)]:
        warnings.warn(
            f"{reader} would compute different outputs, because it assigns num_hidden_layers={layers} unevenly to "
            f"num_hidden_groups={groups}.",
            stacklevel=3,
        )
