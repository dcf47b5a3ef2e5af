"""Files that Keras wrote: `.keras` archives, `.weights.h5` files, and KerasHub's preset folders, which hold both kinds.

Nothing that such a file says about Python objects is followed: its JSON is read for numbers, its HDF5 for arrays.
"""

import io
import json
import pathlib
import struct
import zipfile
from typing import Any, NamedTuple

import numpy as np

from albert_tf.checkpoints import keras_hub, own_keras
from albert_tf.checkpoints.archives import refuse_packed
from albert_tf.checkpoints.checkpoint import Checkpoint, with_head_settings

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.weights.h5"
HEAD_FILE = "task.weights.h5"
# How a global heap of HDF5 begins: signature, version and three bytes that are 0.
_HEAP = b"GCOL\x01\x00\x00\x00"

_File = pathlib.Path | io.BytesIO


class _Weights(NamedTuple):
    """What an HDF5 file of Keras holds: arrays by their places, and the names of layers by theirs."""

    arrays: dict[str, np.ndarray]
    layers: dict[str, str]


def read_archive(path: pathlib.Path) -> Checkpoint:
    """Reads a `.keras` file, ours or KerasHub's."""
    try:
        with zipfile.ZipFile(path) as archive:
            refuse_packed(archive, (CONFIG_FILE, WEIGHTS_FILE))
            values = json.loads(archive.read(CONFIG_FILE))
            content = archive.read(WEIGHTS_FILE)
    except (zipfile.BadZipFile, LookupError, ValueError, OSError, EOFError, NotImplementedError) as error:
        raise ValueError(
            f"A .keras file must be whole. Received: {path} ({error}); download or save it again."
        ) from None
    return _checkpoint(path, values, io.BytesIO(content))


def read_weights(path: pathlib.Path) -> Checkpoint:
    """Reads a `.weights.h5` file, ours or KerasHub's, by the `config.json` beside it."""
    config_file = path.with_name(CONFIG_FILE)
    if not config_file.is_file():
        raise ValueError(f"A .weights.h5 file must have {CONFIG_FILE} beside it. Received: {path} without; add it.")
    return _checkpoint(path, _read_json(config_file), path)


def read_preset(folder: pathlib.Path) -> Checkpoint:
    """Reads a preset folder of KerasHub, with the head of its task if it has one."""
    backbone, head = folder / WEIGHTS_FILE, folder / HEAD_FILE
    return _checkpoint(folder, _read_json(folder / CONFIG_FILE), backbone, head if head.is_file() else None)


def _checkpoint(source: pathlib.Path, values: Any, file: _File, head_file: _File | None = None) -> Checkpoint:
    if not isinstance(values, dict):
        raise ValueError(f"A config must be a JSON object. Received: {source} with a {type(values).__name__}.")
    if own_keras.is_own(values):
        return own_keras.checkpoint_from(source, values, *_read_hdf5(source, file, with_layers=True))
    config = keras_hub.config_from(source, values)
    backbone, head = keras_hub.split(_read_hdf5(source, file).arrays)
    if head_file is not None:
        head |= _read_hdf5(source, head_file).arrays
    arrays = keras_hub.arrays_from(source, config, backbone, head)
    return Checkpoint(source, config, arrays, with_head_settings(arrays, {}))


def _read_json(path: pathlib.Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"A config must be a JSON file. Received: {path} ({error}); is it the right file?") from None


def _read_hdf5(source: pathlib.Path, file: _File, with_layers: bool = False) -> _Weights:
    """Every array, except the optimizer's; the names of layers only on demand, for HDF5 can hang on damaged ones.

    What makes it crash or hang is looked for first, all but one thing: a name whose length is damaged can still hang.
    """
    import h5py

    weights = _Weights({}, {})

    def visit(place: str, node: Any) -> None:
        if place.startswith("optimizer/"):
            return
        if isinstance(node, h5py.Dataset):
            if node.id.get_storage_size() != node.nbytes:
                raise ValueError(f"{place} is not stored whole")
            weights.arrays[place] = node[()].astype(np.float32, copy=False)
        elif with_layers and place.endswith("/vars") and "name" in node.attrs:
            name = node.attrs.get_id("name")
            # HDF5 crashes where something else is read as a text.
            if name.shape != () or h5py.check_string_dtype(name.dtype) is None:
                raise ValueError(f"the name of {place} is not a text")
            weights.layers[place.removesuffix("/vars")] = str(node.attrs["name"])

    try:
        if with_layers:
            _refuse_damaged_heaps(file.read_bytes() if isinstance(file, pathlib.Path) else file.getvalue())
        with h5py.File(file, "r") as content:
            content.visititems(visit)
    except (OSError, RuntimeError, LookupError, ValueError, TypeError) as error:
        raise ValueError(
            f"The weights must be a whole HDF5 file. Received: {source} ({error}); download or save it again."
        ) from None
    return weights


def _refuse_damaged_heaps(content: bytes) -> None:
    """Raises where the objects of a global heap, which holds names, do not fill it: HDF5 reads on without end there."""
    place = content.find(_HEAP)
    while place >= 0:
        end = place + int.from_bytes(content[place + 8 : place + 16], "little")
        here = place + 16
        while here + 16 <= min(end, len(content)):
            number, length = struct.unpack_from("<H6xQ", content, here)
            # Number 0 is free space, whose length counts its own head.
            here += length if number == 0 else 16 + (length + 7) // 8 * 8
            if number == 0:
                break
        if end > len(content) or not 0 <= end - here < 16:
            raise ValueError(f"the heap at {place} is damaged")
        place = content.find(_HEAP, place + 8)
