"""What other code would compute differently from files that we write for it: said in a warning before they are written.

Our own reading is not touched by it: the fields that others do not know stay in the config beside the weights.
"""

import warnings
from collections.abc import Mapping

import numpy as np

from albert_tf.checkpoints.names import Format
from albert_tf.config import AlbertConfig

_READERS: Mapping[Format, str] = {"google": "Google's code", "huggingface": "transformers"}


def warn_of_differences(config: AlbertConfig, arrays: Mapping[str, np.ndarray], layout: Format) -> None:
    """One warning, of one sentence, for each field of the config that the readers of a layout cannot follow."""
    reader, layers, groups = _READERS[layout], config.num_hidden_layers, config.num_hidden_groups
    theirs, ours = config.layer_norm_eps, config.head_layer_norm_eps
    if "masked_lm/layer_norm/gamma" in arrays and theirs != ours:
        warnings.warn(
            f"{reader} would compute other masked-LM logits, for its head normalises with an epsilon of {theirs} and "
            f"this model's with masked_lm_layer_norm_eps={ours}.",
            stacklevel=3,
        )
    # transformers finds a layer's group by float arithmetic, which for a few sizes is one too low.
    dealt = [int(layer / (layers / groups)) for layer in range(layers)]
    if layout == "huggingface" and dealt != [config.group_of_layer(layer) for layer in range(layers)]:
        warnings.warn(
            f"{reader} would compute other outputs, for it deals num_hidden_layers={layers} unevenly to "
            f"num_hidden_groups={groups}.",
            stacklevel=3,
        )
