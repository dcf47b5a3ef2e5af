"""Reads TensorFlow checkpoints (`NAME.index` and `NAME.data-*`) and TF Hub modules, which contain one."""

import glob
import math
import pathlib
from typing import Any

import numpy as np

from albert_tf.checkpoints.checkpoint import Checkpoint
from albert_tf.checkpoints.config_files import read_config
from albert_tf.checkpoints.formats import google, model_garden
from albert_tf.files.json import has_file
from albert_tf.lazy import FIRST_IMPORTS

SAVED_MODEL_FILE = "saved_model.pb"
_VARIABLES = pathlib.Path("variables", "variables")


def read_folder(folder: pathlib.Path) -> Checkpoint:
    """Reads the checkpoint of a folder or a TF Hub module, as `read_tensorflow`."""
    return read_tensorflow(find_prefix(folder))


def read_tensorflow(prefix: pathlib.Path) -> Checkpoint:
    """Reads a checkpoint of the reference or Model Garden, without the optimizer's state.

    Raises:
        ValueError: the config is missing, or the files are damaged.
    """
    if (config_file := _find_config(prefix)) is None:
        raise ValueError(f"{prefix} has no {google.CONFIG_FILE} beside it; add the config of the model.")
    config, _ = read_config(config_file)
    tensors = _read_tensors(prefix)
    read = model_garden.from_object_names if model_garden.has_object_names(tensors) else google.from_google_names
    return read(prefix, config, tensors)


def is_hub_module(folder: pathlib.Path) -> bool:
    """Whether a folder is a SavedModel with a config."""
    return (folder / SAVED_MODEL_FILE).is_file() and _find_config(folder / _VARIABLES) is not None


def find_prefix(folder: pathlib.Path) -> pathlib.Path:
    """The prefix of a folder's checkpoint: `model.ckpt-best`, or the only one; raises ValueError without either."""
    if (folder / SAVED_MODEL_FILE).is_file():
        return folder / _VARIABLES
    prefixes = sorted(path.with_suffix("") for path in folder.glob("*.index"))
    best = [prefix for prefix in prefixes if prefix.name == "model.ckpt-best"]
    if not best and len(prefixes) != 1:
        names = ", ".join(prefix.name for prefix in prefixes)
        raise ValueError(
            f"{folder} holds several checkpoints ({names}); give the prefix of one of them."
            if names
            else f"{folder} holds no TensorFlow checkpoint; give another folder."
        )
    return (best or prefixes)[0]


def _find_config(prefix: pathlib.Path) -> pathlib.Path | None:
    folders = [prefix.parent]
    if prefix.parent.name == _VARIABLES.parent.name:
        folders += [prefix.parent.parent / "assets", prefix.parent.parent]
    return next((file for folder in folders if has_file(file := folder / google.CONFIG_FILE)), None)


def _read_tensors(prefix: pathlib.Path) -> dict[str, np.ndarray]:
    try:
        with FIRST_IMPORTS:
            import tensorflow as tf
    except ImportError:
        raise ValueError(
            f"{prefix} is a TensorFlow checkpoint, which only TensorFlow reads; convert it once where TensorFlow is "
            f"installed: albert-tf convert {prefix} FOLDER --to huggingface."
        ) from None

    # TensorFlow raises a plain RuntimeError, ValueError or SystemError for some damage.
    damage = (tf.errors.OpError, RuntimeError, ValueError, LookupError, TypeError, OSError, SystemError)
    try:
        return _wanted(tf, prefix)
    except damage as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{prefix} could not be read ({reason}); download its index and data files again.") from None


def _wanted(tf: Any, prefix: pathlib.Path) -> dict[str, np.ndarray]:
    """The tensors that belong to the model."""
    reader = tf.train.load_checkpoint(str(prefix))
    dtypes = reader.get_variable_to_dtype_map()
    shapes = {
        name: shape
        for name, shape in reader.get_variable_to_shape_map().items()
        if google.is_weight(name) and model_garden.is_weight(name)
    }
    if empty := [name for name, shape in shapes.items() if 0 in shape]:
        raise ValueError(f"{empty[0]} has no values, its shape is {shapes[empty[0]]}")
    # Tensors do not overlap. This bounds the memory that a damaged index can request.
    size = sum(math.prod(shape) * dtypes[name].size for name, shape in shapes.items())
    if size > sum(file.stat().st_size for file in prefix.parent.glob(f"{glob.escape(prefix.name)}.data-*")):
        raise ValueError("its tensors are larger than its data files")
    return {name: reader.get_tensor(name) for name in shapes}
