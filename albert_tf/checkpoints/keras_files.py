"""Files that Keras wrote: `.keras` archives, `.weights.h5` files, and KerasHub's preset folders, which hold both kinds.

Nothing that such a file says about Python objects is followed: its JSON is read for numbers, its HDF5 for arrays.
"""

import dataclasses
import io
import json
import pathlib
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from albert_tf.checkpoints import keras_hub, own_keras
from albert_tf.checkpoints.checkpoint import Checkpoint, with_head_settings

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.weights.h5"
HEAD_FILE = "task.weights.h5"


@dataclasses.dataclass(frozen=True)
class _Weights:
    """What an HDF5 file of Keras holds: arrays by their places, and the names of layers by theirs."""

    arrays: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    layers: dict[str, str] = dataclasses.field(default_factory=dict)


def read_archive(path: pathlib.Path) -> Checkpoint:
    """Reads a `.keras` file, ours or KerasHub's."""
    try:
        with zipfile.ZipFile(path) as archive:
            values = json.loads(archive.read(CONFIG_FILE))
            content = archive.read(WEIGHTS_FILE)
    except (zipfile.BadZipFile, LookupError, ValueError, OSError, EOFError, NotImplementedError) as error:
        raise ValueError(
            f"A .keras file must be whole. Received: {path} ({error}); download or save it again."
        ) from None
    return _checkpoint(path, values, _read_hdf5(path, io.BytesIO(content)))


def read_weights(path: pathlib.Path) -> Checkpoint:
    """Reads a `.weights.h5` file, ours or KerasHub's, by the `config.json` beside it."""
    config_file = path.with_name(CONFIG_FILE)
    if not config_file.is_file():
        raise ValueError(f"A .weights.h5 file must have {CONFIG_FILE} beside it. Received: {path} without; add it.")
    return _checkpoint(path, _read_json(config_file), _read_hdf5(path, path))


def read_preset(folder: pathlib.Path) -> Checkpoint:
    """Reads a preset folder of KerasHub, with the head of its task if it has one."""
    backbone, head = folder / WEIGHTS_FILE, folder / HEAD_FILE
    task = _read_hdf5(head, head).arrays if head.is_file() else {}
    return _checkpoint(folder, _read_json(folder / CONFIG_FILE), _read_hdf5(backbone, backbone), task)


def _checkpoint(
    source: pathlib.Path, values: Any, weights: _Weights, task: Mapping[str, np.ndarray] | None = None
) -> Checkpoint:
    if not isinstance(values, dict):
        raise ValueError(f"A config must be a JSON object. Received: {source} with a {type(values).__name__}.")
    if own_keras.is_own(values):
        return own_keras.checkpoint_from(source, values, weights.arrays, weights.layers)
    config = keras_hub.config_from(source, values)
    backbone, head = keras_hub.split(weights.arrays)
    arrays = keras_hub.arrays_from(source, config, backbone, {**head, **(task or {})})
    return Checkpoint(source, config, arrays, with_head_settings(arrays, {}))


def _read_json(path: pathlib.Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"A config must be a JSON file. Received: {path} ({error}); is it the right file?") from None


def _read_hdf5(source: pathlib.Path, file: pathlib.Path | io.BytesIO) -> _Weights:
    """Every array and the name of every layer, except the optimizer's."""
    import h5py

    weights = _Weights()

    def visit(place: str, node: Any) -> None:
        if place.startswith("optimizer/"):
            return
        if isinstance(node, h5py.Dataset):
            weights.arrays[place] = node[()].astype(np.float32, copy=False)
        elif place.endswith("/vars") and "name" in node.attrs:
            weights.layers[place.removesuffix("/vars")] = str(node.attrs["name"])

    try:
        with h5py.File(file, "r") as content:
            content.visititems(visit)
    except (OSError, RuntimeError, LookupError, ValueError, TypeError) as error:
        raise ValueError(
            f"The weights must be a whole HDF5 file. Received: {source} ({error}); download or save it again."
        ) from None
    return weights
