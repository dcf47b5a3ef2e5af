"""Which parts of a layer are frozen, as an entry of its config; Keras' own entry `trainable` is about all of it."""

from collections.abc import Iterable
from typing import Any

import keras

from albert_tf.keras_internals import layers_within

_ENTRY = "frozen"


def with_frozen(config: dict[str, Any], layer: keras.layers.Layer) -> dict[str, Any]:
    """The config of a layer with the paths of its frozen parts, if there are any; "" is the layer itself."""
    paths = list(_frozen_paths(layer))
    return {**config, _ENTRY: paths} if paths else config


def from_frozen_config(make, config: dict[str, Any]) -> Any:
    """The layer that `make` returns for the other entries of a config, with the same parts frozen."""
    layer = make(**{name: value for name, value in config.items() if name != _ENTRY})
    for path in config.get(_ENTRY, ()):
        part = layer
        for name in filter(None, path.split("/")):
            part = next(sublayer for sublayer in layers_within(part, recursive=False) if sublayer.name == name)
        part.trainable = False
    return layer


def _frozen_paths(layer: keras.layers.Layer, path: str = "", seen: set[int] | None = None) -> Iterable[str]:
    """The outermost of the layers that are not trainable; one that several layers share has the first of its paths."""
    seen = set() if seen is None else seen
    if id(layer) in seen:
        return
    seen.add(id(layer))
    if not layer.trainable:
        yield path
        return
    for sublayer in layers_within(layer, recursive=False):
        yield from _frozen_paths(sublayer, f"{path}/{sublayer.name}", seen)
