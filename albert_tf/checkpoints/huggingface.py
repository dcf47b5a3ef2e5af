"""The Hugging Face layout: `config.json` and `model.safetensors`, which is also the layout of our own folders."""

import json
import os
import pathlib
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import safetensors.numpy

from albert_tf.checkpoints.checkpoint import Checkpoint, under_our_names
from albert_tf.checkpoints.names import num_file_groups, rows, to_file
from albert_tf.config import AlbertConfig

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
_PROJECTION = "albert.encoder.embedding_hidden_mapping_in"


def read_huggingface(folder: pathlib.Path) -> Checkpoint:
    """Reads a folder with `config.json` and `model.safetensors`."""
    config = AlbertConfig.from_json(folder / CONFIG_FILE)
    settings = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
    try:
        tensors = safetensors.numpy.load_file(folder / WEIGHTS_FILE)
    except (safetensors.SafetensorError, OSError) as error:
        raise ValueError(
            f"The weights must be a whole safetensors file. Received: {folder / WEIGHTS_FILE} ({error}); "
            "download or save it again."
        ) from None
    if not any(name.startswith("albert.") for name in tensors):
        # A bare encoder is saved without the prefix that it has inside a task model.
        tensors = {f"albert.{name}": tensor for name, tensor in tensors.items()}
    if not config.has_projection:
        tensors = _without_identity_projection(folder, tensors)
    return Checkpoint(folder, config, under_our_names(folder, config, tensors, "huggingface"), settings)


def save_huggingface(
    folder: str | pathlib.Path, config: AlbertConfig, arrays: Mapping[str, np.ndarray], settings: Mapping[str, Any]
) -> None:
    """Writes both files so that transformers loads them unchanged; each appears whole or not at all.

    Args:
        folder: made if it does not exist.
        config: AlbertConfig.
        arrays: array by variable path.
        settings: further keys of `config.json`, such as `architectures`.
    """
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    is_bare = all(path.startswith("encoder/") for path in arrays)
    tensors = {
        (row.huggingface.removeprefix("albert.") if is_bare else row.huggingface): to_file(
            row, arrays[row.path], "huggingface"
        )
        for row in rows(config)
        if row.path in arrays
    }
    if not config.has_projection:
        prefix = _PROJECTION.removeprefix("albert.") if is_bare else _PROJECTION
        tensors[f"{prefix}.weight"] = np.eye(config.hidden_size, dtype=np.float32)
        tensors[f"{prefix}.bias"] = np.zeros(config.hidden_size, np.float32)
    published = {**config.to_hugging_face(), "num_hidden_groups": num_file_groups(config), **settings}
    # The large file first: where the disk is full, what stood in the folder before still fits together.
    write_whole(folder / WEIGHTS_FILE, safetensors.numpy.save(tensors, metadata={"format": "pt"}))
    write_whole(folder / CONFIG_FILE, (json.dumps(published, indent=2, sort_keys=True) + "\n").encode())


def write_whole(path: pathlib.Path, content: bytes) -> None:
    """Writes a file under a temporary name beside its own and renames it, so that no half file is ever seen."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        pathlib.Path(temporary).unlink(missing_ok=True)
        raise


def _without_identity_projection(folder: pathlib.Path, tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Hugging Face projects even where E equals D; ours does not, the same only if that projection does nothing."""
    kernel, bias = tensors.get(f"{_PROJECTION}.weight"), tensors.get(f"{_PROJECTION}.bias")
    if kernel is None or bias is None or np.any(bias) or not np.array_equal(kernel, np.eye(len(kernel))):
        raise ValueError(
            f"A model whose embedding_size equals its hidden_size must have no projection. Received: {folder} with "
            "one that changes its input; such files cannot be read yet."
        )
    return {name: tensor for name, tensor in tensors.items() if not name.startswith(_PROJECTION)}
