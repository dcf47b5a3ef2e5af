"""Reads KerasHub's `.keras` archives, `.weights.h5` files and preset folders, without running code in them."""

import pathlib
import zipfile
from typing import Any

from albert_tf.checkpoints.checkpoint import Checkpoint, infer_head_settings
from albert_tf.checkpoints.config_files import CURE
from albert_tf.checkpoints.formats import keras_hub
from albert_tf.checkpoints.formats.hdf5 import read_hdf5
from albert_tf.checkpoints.formats.zip_archive import reject_compressed
from albert_tf.files.json import has_file, parse_json, read_bytes, read_json

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.weights.h5"
HEAD_FILE = "task.weights.h5"
MAX_BYTES = 1 << 40  # of weights


def read_archive(path: pathlib.Path) -> Checkpoint:
    """Reads a `.keras` file of KerasHub; raises ValueError if it is damaged or holds no ALBERT of it."""
    try:
        with zipfile.ZipFile(path) as archive:
            reject_compressed(archive, (CONFIG_FILE, WEIGHTS_FILE))
            config, weights = archive.read(CONFIG_FILE), archive.read(WEIGHTS_FILE)
    except (zipfile.BadZipFile, LookupError, ValueError, OSError, EOFError, RuntimeError) as error:
        raise ValueError(f"{path} is not a valid .keras file ({error}); download or save it again.") from None
    return _checkpoint(path, parse_json(config, f"{path}: {CONFIG_FILE}", cure=CURE), weights)


def read_weights(path: pathlib.Path) -> Checkpoint:
    """Reads a `.weights.h5` file of KerasHub, with the `config.json` beside it.

    Raises:
        ValueError: there is no config, a file is damaged, or the model is not an ALBERT.
    """
    config_file = path.with_name(CONFIG_FILE)
    if not config_file.is_file():
        raise ValueError(f"{path} has no {CONFIG_FILE} beside it; add the config of the model.")
    return _checkpoint(path, read_json(config_file, cure=CURE), _content(path))


def read_preset(folder: pathlib.Path) -> Checkpoint:
    """Reads a preset folder of KerasHub, including the head of a task if it has one."""
    values, head = read_json(folder / CONFIG_FILE, cure=CURE), folder / HEAD_FILE
    return _checkpoint(folder, values, _content(folder / WEIGHTS_FILE), _content(head) if has_file(head) else None)


def _checkpoint(source: pathlib.Path, values: dict[str, Any], weights: bytes, head: bytes | None = None) -> Checkpoint:
    if "class_name" not in values or str(values.get("registered_name")).startswith("albert_tf>"):
        raise ValueError(
            f"{source} holds a model of this package, which Keras reads: "
            "keras.saving.load_model(FILE).save_pretrained(FOLDER) for a .keras file, model.load_weights(FILE) and "
            "model.save_pretrained(FOLDER) for .weights.h5; then give that folder."
        )
    config = keras_hub.config_from(source, values)
    in_backbone, in_head = keras_hub.split(_read(source, weights))
    if head is not None:
        in_head |= _read(source, head)
    arrays = keras_hub.arrays_from(source, config, in_backbone, in_head)
    return Checkpoint(source, config, arrays, infer_head_settings(arrays, {}))


def _content(file: pathlib.Path) -> bytes:
    return read_bytes(file, "download it again", MAX_BYTES)


def _read(source: pathlib.Path, content: bytes) -> dict[str, Any]:
    try:
        return read_hdf5(content, skip="optimizer")
    except ValueError as error:
        raise ValueError(f"{source} is not a valid HDF5 file of Keras ({error}); download or save it again.") from None
