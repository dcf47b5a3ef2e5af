"""Reads TensorFlow checkpoints (`NAME.index` and `NAME.data-*`) and TF Hub modules, which contain one."""

import pathlib

import numpy as np

from albert_tf.checkpoints.checkpoint import Checkpoint
from albert_tf.checkpoints.config_files import read_config
from albert_tf.checkpoints.formats import google, model_garden
from albert_tf.checkpoints.formats.tensor_bundle import read_bundle

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
    return next((file for folder in folders if (file := folder / google.CONFIG_FILE).is_file()), None)


def _read_tensors(prefix: pathlib.Path) -> dict[str, np.ndarray]:
    try:
        return read_bundle(prefix, lambda name: google.is_weight(name) and model_garden.is_weight(name))
    except (ValueError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"{prefix} could not be read ({reason}); download its index and data files again.") from None
