"""The Hugging Face format, which is also that of our own folders: `config.json` and `model.safetensors`.

Sharded files, half precision, `pytorch_model.bin` and `tf_model.h5` can be read as well.
"""

import pathlib
from collections.abc import Mapping
from typing import Any

import ml_dtypes  # noqa: F401  # registers bfloat16 with NumPy
import numpy as np
import safetensors
import safetensors.numpy

from albert_tf.checkpoints.checkpoint import Checkpoint, from_tensors, infer_head_settings
from albert_tf.checkpoints.config_files import hugging_face_values, read_config
from albert_tf.checkpoints.differences import warn_of_differences
from albert_tf.checkpoints.formats.transformers_tensorflow import as_in_pytorch, read_tf_model
from albert_tf.checkpoints.names import for_file, joined, num_file_groups
from albert_tf.checkpoints.sentence_modules import (
    DENSE,
    SENTENCE_SETTINGS,
    read_sentence_modules,
    save_sentence_modules,
)
from albert_tf.config import AlbertConfig
from albert_tf.files.atomic import atomic_write, write_json
from albert_tf.files.hub import HUGGING_FACE_WEIGHTS as WEIGHTS_FILES
from albert_tf.files.json import has_file, read_json
from albert_tf.files.urls import location, make_folder

CONFIG_FILE = "config.json"
_PROJECTION = "albert.encoder.embedding_hidden_mapping_in"
_BUFFER = "albert.embeddings.position_ids"
# Tied tensors, which PyTorch files hold twice: second name to first name.
_TIED = {
    "predictions.decoder.weight": "albert.embeddings.word_embeddings.weight",
    "predictions.decoder.bias": "predictions.bias",
}


def find_weights(folder: pathlib.Path) -> pathlib.Path | None:
    """The weights file of a folder, None if the folder does not have this format."""
    if not has_file(folder / CONFIG_FILE):
        return None
    return next((folder / name for name in WEIGHTS_FILES if has_file(folder / name)), None)


def read_huggingface(folder: pathlib.Path, weights: pathlib.Path) -> Checkpoint:
    """Reads a folder's `config.json` and `weights`, the result of `find_weights`."""
    config, settings = read_config(folder / CONFIG_FILE)
    tensors = _read_tensors(weights)
    if not any(name.startswith("albert.") for name in tensors):
        # A bare encoder is saved without the prefix that it has in a task model.
        tensors = {f"albert.{name}": tensor for name, tensor in tensors.items()}
    tensors = _without_tied(folder, tensors)
    if not config.has_projection:
        if _is_identity(tensors.get(f"{_PROJECTION}.weight"), tensors.get(f"{_PROJECTION}.bias")):
            tensors = {name: tensor for name, tensor in tensors.items() if not name.startswith(_PROJECTION)}
        else:
            config = config.replace(embedding_projection=True)
    arrays = from_tensors(folder, config, tensors, "huggingface")
    sentence_settings, dense = read_sentence_modules(folder, config, _read_tensors)
    settings, arrays = {**infer_head_settings(arrays, settings), **sentence_settings}, {**arrays, **dense}
    return Checkpoint(folder, config, arrays, settings)


def save_huggingface(
    folder: str | pathlib.Path, config: AlbertConfig, arrays: Mapping[str, np.ndarray], settings: Mapping[str, Any]
) -> None:
    """Writes both files, atomically, for this package and transformers.

    Args:
        folder: path or URL, created if it does not exist.
        config: AlbertConfig.
        arrays: array by variable path.
        settings: further keys of `config.json`, such as `architectures`; or `SENTENCE_SETTINGS`, for which the files of
            sentence-transformers are written.

    Warns:
        UserWarning: transformers would compute different outputs; see `differences.py`.
    """
    warn_of_differences(config, arrays, "huggingface")
    folder = location(folder)
    make_folder(folder)
    dense = {path: arrays[path] for path in DENSE if path in arrays}  # in a file of its own
    arrays = {path: array for path, array in arrays.items() if path not in dense}
    tensors = for_file(config, arrays, "huggingface")
    if not config.has_projection:
        tensors[f"{_PROJECTION}.weight"] = np.eye(config.hidden_size, dtype=np.float32)
        tensors[f"{_PROJECTION}.bias"] = np.zeros(config.hidden_size, np.float32)
    if all(path.startswith("encoder/") for path in arrays):
        tensors = {name.removeprefix("albert."): tensor for name, tensor in tensors.items()}
    published = {**hugging_face_values(config), "num_hidden_groups": num_file_groups(config), **settings}
    sentence = published.pop(SENTENCE_SETTINGS, None)
    # The large file first: if the disk is full, the files already in the folder still belong together.
    atomic_write(folder / WEIGHTS_FILES[0], safetensors.numpy.save(tensors, metadata={"format": "pt"}))
    write_json(folder / CONFIG_FILE, published, sort_keys=True)
    if sentence is not None:
        save_sentence_modules(folder, config.hidden_size, sentence, dense)


def _read_tensors(weights: pathlib.Path) -> dict[str, np.ndarray]:
    return _read_shards(weights) if weights.suffix == ".json" else _read_file(weights)


def _read_file(path: pathlib.Path) -> dict[str, np.ndarray]:
    tensors = _tensors_of_file(path)
    for name, tensor in tensors.items():
        if not tensor.size:  # whatever its other sizes are, which cost no bytes
            raise ValueError(f"`{name}` in {path} has no values, its shape is {tensor.shape}; save the file again.")
    return tensors


def _tensors_of_file(path: pathlib.Path) -> dict[str, np.ndarray]:
    if path.suffix == ".h5":
        return read_tf_model(path)
    if path.suffix != ".safetensors":
        from albert_tf.checkpoints.formats.torch_pickle import read_torch

        return read_torch(path)
    try:
        return as_in_pytorch(safetensors.numpy.load_file(path))
    except (safetensors.SafetensorError, OSError, KeyError, TypeError, AttributeError) as error:
        # KeyError, TypeError and AttributeError: types that NumPy does not have, such as those of 8 bits.
        raise ValueError(
            f"{path} is not a safetensors file of known types, or is damaged ({error}); download or save it again."
        ) from None


def _read_shards(index: pathlib.Path) -> dict[str, np.ndarray]:
    """Reads the tensors of all files in the index."""
    weight_map = _read_weight_map(index)
    files = sorted(set(weight_map.values()))
    if missing := [name for name in files if not (index.parent / name).is_file()]:
        raise ValueError(f"{index} names files that are not beside it: {', '.join(missing)}; download the rest.")
    tensors: dict[str, np.ndarray] = {}
    for name in files:
        tensors |= _read_file(index.parent / name)
    if wrong := sorted(tensors.keys() ^ weight_map.keys()):
        raise ValueError(
            f"{index} does not match the tensors of its files ({joined(wrong)}); download all files of one version."
        )
    return tensors


def _read_weight_map(index: pathlib.Path) -> dict[str, str]:
    try:
        weight_map = read_json(index, cure="download it again")["weight_map"]
        names = set(weight_map.values())
    except (LookupError, TypeError, AttributeError):
        names, weight_map = {None}, {}
    # File names only: no path out of the folder, and none longer than file systems allow.
    if not all(isinstance(name, str) and pathlib.PurePath(name).name == name and len(name) < 128 for name in names):
        raise ValueError(f"{index} does not map tensors to files beside it under `weight_map`; download it again.")
    return weight_map


def _without_tied(folder: pathlib.Path, tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    for second, first in _TIED.items():
        if second in tensors and not np.array_equal(tensors[second], tensors.get(first, ()), equal_nan=True):
            raise ValueError(f"`{second}` and `{first}` differ in {folder}, but ALBERT ties them; use an ALBERT model.")
    return {name: tensor for name, tensor in tensors.items() if name not in _TIED and name != _BUFFER}


def _is_identity(kernel: np.ndarray | None, bias: np.ndarray | None) -> bool:
    if kernel is None or bias is None:
        return False
    return not np.any(bias) and np.array_equal(kernel, np.eye(len(kernel)))
