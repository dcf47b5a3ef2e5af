"""The paths of variables in checkpoints.

They follow from the nesting of layers, unlike Keras' `variable.path`, which also includes the name scopes in which a
model was created; that one is for optimizers and logs.
"""

from typing import Any

import keras

from albert_tf.keras_internals import layers_within


def weights_by_path(
    layer: keras.layers.Layer, prefix: str = "", seen: set[int] | None = None
) -> dict[str, tuple[Any, Any]]:
    """Each weight and its layer, by path, without the states of random generators.

    A shared weight appears once, under its first path. Raises ValueError if two variables have the same path.
    """
    seen = set() if seen is None else seen
    by_path: dict[str, tuple[Any, Any]] = {}
    below = layers_within(layer, recursive=False)
    inner = {id(variable) for sublayer in below for variable in sublayer.weights}
    for variable in layer.weights:
        if id(variable) not in inner and id(variable) not in seen:
            seen.add(id(variable))
            _add(by_path, {f"{prefix}{variable.name}": (variable, layer)})
    for sublayer in below:
        _add(by_path, weights_by_path(sublayer, f"{prefix}{sublayer.name}/", seen))
    return by_path


def _add(by_path: dict, more: dict) -> None:
    if twice := sorted(by_path.keys() & more.keys()):
        raise ValueError(
            f"Layers within a layer must have different names. Received: two variables at {twice[0]!r}; pass another "
            "`name` to one of the layers."
        )
    by_path.update(more)
