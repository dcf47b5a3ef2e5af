"""Gives our variables to layers of Keras 2 and Keras 3 alike.

Letters: D hidden, N heads, H head size.
"""

import numpy as np


def fill(layers: dict, variables: dict[str, np.ndarray]) -> None:
    """Fills each layer, found under our path for it, with our variables.

    Attention kernels are [D, N, H] and [N, H, D] there where ours are [D, D]; the order of the numbers is the same.
    """
    for path, layer in layers.items():
        names = ("gamma", "beta") if path.endswith("layer_norm") else ("kernel", "bias")
        paths = [path] if path in variables else [f"{path}/{name}" for name in names]
        values = [variables[one] for one in paths]
        layer.set_weights([v.reshape(w.shape) for v, w in zip(values, layer.weights, strict=True)])


def block_layers(place: str, attention, attention_norm, intermediate, output, output_norm) -> dict:
    """The layers of one transformer block by our paths; `place` is such as "0_0"."""
    names = ("query", "key", "value", "output")
    return {
        **{f"encoder/attention_{place}/{name}": getattr(attention, f"_{name}_dense") for name in names},
        f"encoder/attention_{place}/layer_norm": attention_norm,
        f"encoder/ffn_{place}/intermediate": intermediate,
        f"encoder/ffn_{place}/output": output,
        f"encoder/ffn_{place}/layer_norm": output_norm,
    }
