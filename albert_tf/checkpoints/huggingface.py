"""The Hugging Face layout: `config.json` and `model.safetensors`, which is also the layout of our own folders.

Read are also files cut into shards with an index, half precision, and `pytorch_model.bin`.
"""

import json
import pathlib
from collections.abc import Mapping
from typing import Any

# NumPy knows bfloat16 by name once this is imported.
import ml_dtypes  # noqa: F401
import numpy as np
import safetensors
import safetensors.numpy

from albert_tf.atomic_files import atomic_write
from albert_tf.checkpoints.checkpoint import Checkpoint, under_our_names, with_head_settings
from albert_tf.checkpoints.config_files import read_config
from albert_tf.checkpoints.differences import warn_of_differences
from albert_tf.checkpoints.names import for_file, num_file_groups
from albert_tf.config import AlbertConfig
from albert_tf.json_files import read_json

CONFIG_FILE = "config.json"
# The first that a folder has is read; an index is a JSON file that says in which file each tensor is.
WEIGHTS_FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
_PROJECTION = "albert.encoder.embedding_hidden_mapping_in"
_BUFFER = "albert.embeddings.position_ids"
# Second names of tensors that PyTorch files hold twice.
_TIED = {
    "predictions.decoder.weight": "albert.embeddings.word_embeddings.weight",
    "predictions.decoder.bias": "predictions.bias",
}


def find_weights(folder: pathlib.Path) -> pathlib.Path | None:
    """The file to read in a folder of this layout, None if it is not of this layout."""
    if not (folder / CONFIG_FILE).is_file():
        return None
    return next((folder / name for name in WEIGHTS_FILES if (folder / name).is_file()), None)


def read_huggingface(folder: pathlib.Path, weights: pathlib.Path) -> Checkpoint:
    """Reads a folder's `config.json` and the file that `find_weights` found in it."""
    config, settings = read_config(folder / CONFIG_FILE)
    tensors = _read_shards(weights) if weights.suffix == ".json" else _read_file(weights)
    if not any(name.startswith("albert.") for name in tensors):
        # A bare encoder is saved without the prefix that it has inside a task model.
        tensors = {f"albert.{name}": tensor for name, tensor in tensors.items()}
    tensors = _without_second_names(folder, tensors)
    if not config.has_projection:
        if _does_nothing(tensors.get(f"{_PROJECTION}.weight"), tensors.get(f"{_PROJECTION}.bias")):
            tensors = {name: tensor for name, tensor in tensors.items() if not name.startswith(_PROJECTION)}
        else:
            config = config.replace(embedding_projection=True)
    arrays = under_our_names(folder, config, tensors, "huggingface")
    return Checkpoint(folder, config, arrays, with_head_settings(arrays, settings))


def save_huggingface(
    folder: str | pathlib.Path, config: AlbertConfig, arrays: Mapping[str, np.ndarray], settings: Mapping[str, Any]
) -> None:
    """Writes both files so that transformers loads them unchanged; each appears whole or not at all.

    Args:
        folder: made if it does not exist.
        config: AlbertConfig.
        arrays: array by variable path.
        settings: further keys of `config.json`, such as `architectures`.

    Warns:
        UserWarning: where transformers would compute something else with these weights; see `differences.py`.
    """
    warn_of_differences(config, arrays, "huggingface")
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = for_file(config, arrays, "huggingface")
    if not config.has_projection:
        tensors[f"{_PROJECTION}.weight"] = np.eye(config.hidden_size, dtype=np.float32)
        tensors[f"{_PROJECTION}.bias"] = np.zeros(config.hidden_size, np.float32)
    if all(path.startswith("encoder/") for path in arrays):
        tensors = {name.removeprefix("albert."): tensor for name, tensor in tensors.items()}
    published = {**config.to_hugging_face(), "num_hidden_groups": num_file_groups(config), **settings}
    # The large file first: where the disk is full, what stood in the folder before still fits together.
    atomic_write(folder / WEIGHTS_FILES[0], safetensors.numpy.save(tensors, metadata={"format": "pt"}))
    atomic_write(folder / CONFIG_FILE, (json.dumps(published, indent=2, sort_keys=True) + "\n").encode())


def _read_file(path: pathlib.Path) -> dict[str, np.ndarray]:
    if path.suffix != ".safetensors":
        from albert_tf.checkpoints.formats.torch_pickle import read_torch

        return read_torch(path)
    try:
        return safetensors.numpy.load_file(path)
    except (safetensors.SafetensorError, OSError, KeyError, TypeError, AttributeError) as error:
        # Types of 8 bits and fewer are no attributes of NumPy.
        raise ValueError(
            f"{path} is not a safetensors file of known types, or is damaged ({error}); download or save it again."
        ) from None


def _read_shards(index: pathlib.Path) -> dict[str, np.ndarray]:
    """Every tensor from the file that the index names for it."""
    places = _places(index)
    absent = sorted(name for name in set(places.values()) if not (index.parent / name).is_file())
    if absent:
        raise ValueError(f"{index} names files that are not beside it: {', '.join(absent)}; download the rest.")
    tensors: dict[str, np.ndarray] = {}
    for shard in sorted(set(places.values())):
        tensors |= _read_file(index.parent / shard)
    if tensors.keys() != places.keys():
        wrong = ", ".join(sorted(tensors.keys() ^ places.keys())[:4])
        raise ValueError(
            f"{index} does not name the tensors of its files ({wrong}); download all files of one version."
        )
    return tensors


def _places(index: pathlib.Path) -> dict[str, str]:
    try:
        places = read_json(index, cure="download it again")["weight_map"]
        names = set(places.values())
    except (LookupError, TypeError, AttributeError):
        names, places = {None}, {}
    # A name must not lead out of the folder, nor be longer than a file system knows.
    if not all(isinstance(name, str) and pathlib.PurePath(name).name == name and len(name) < 128 for name in names):
        raise ValueError(f"{index} does not map tensors to files beside it under `weight_map`; download it again.")
    return places


def _without_second_names(folder: pathlib.Path, tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    for second, first in _TIED.items():
        if second in tensors and not np.array_equal(tensors[second], tensors.get(first, ()), equal_nan=True):
            raise ValueError(
                f"`{second}` must equal `{first}`, as ALBERT ties them. Received: {folder} with others; "
                "this is another model."
            )
    return {name: tensor for name, tensor in tensors.items() if name not in _TIED and name != _BUFFER}


def _does_nothing(kernel: np.ndarray | None, bias: np.ndarray | None) -> bool:
    """Whether a projection between equal widths gives what it gets; such a one need not be kept."""
    if kernel is None or bias is None:
        return False
    return not np.any(bias) and np.array_equal(kernel, np.eye(len(kernel)))
