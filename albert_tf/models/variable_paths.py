"""Where each variable is in a model: the path by which checkpoints know it.

Paths follow from how layers contain each other, not from the name scope that a model happened to be made in. A
variable's own `path`, which Keras composes from name scopes, is for optimizers and logs: it tells two models apart.
"""

from typing import Any

import keras
from keras import ops


def variables_by_path(model: keras.Model, root: str = "") -> dict[str, Any]:
    """Every weight by its path; states of random generators are left out.

    Args:
        model: keras.Model.
        root: str. What all paths begin with.

    Returns:
        dict from path to variable, in the order of `model.weights`.

    Raises:
        ValueError: where two variables have the same path.
    """
    return {path: variable for path, (variable, _) in _weights(model, root).items()}


def arrays_by_path(model: keras.Model, root: str = "") -> dict[str, Any]:
    """The value of every weight as a NumPy array, by its path, with LoRA's updates added to the kernels they are for.

    Args:
        model: keras.Model.
        root: str. What all paths begin with.

    Returns:
        dict from path to array.

    Raises:
        ValueError: where two variables have the same path.
    """
    arrays = {}
    for path, (variable, layer) in _weights(model, root).items():
        name = path.rpartition("/")[2]
        if getattr(layer, "lora_enabled", False):
            if name.startswith("lora_"):
                continue
            if name == "kernel":
                variable = layer.kernel  # Keras' own sum of the kernel and its update
        arrays[path] = ops.convert_to_numpy(variable)
    return arrays


def _weights(layer: keras.layers.Layer, prefix: str, seen: set[int] | None = None) -> dict[str, tuple[Any, Any]]:
    """Each weight with the layer that it belongs to, by path; what is shared appears once, where it is met first."""
    seen = set() if seen is None else seen
    found: dict[str, tuple[Any, Any]] = {}
    below = layer._flatten_layers(include_self=False, recursive=False)
    inner = {id(variable) for sublayer in below for variable in sublayer.weights}
    for variable in layer.weights:
        if id(variable) not in inner and id(variable) not in seen:
            seen.add(id(variable))
            _add(found, {f"{prefix}{variable.name}": (variable, layer)})
    for sublayer in below:
        _add(found, _weights(sublayer, f"{prefix}{sublayer.name}/", seen))
    return found


def _add(found: dict, more: dict) -> None:
    if twice := sorted(found.keys() & more.keys()):
        raise ValueError(
            f"Layers side by side must have names of their own. Received: two variables at {twice[0]!r}; "
            "pass another `name` to one of the layers."
        )
    found.update(more)
