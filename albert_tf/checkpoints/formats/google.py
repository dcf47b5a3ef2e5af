"""The reference's TensorFlow 1 checkpoints: `albert_config.json` beside `NAME.index` and `NAME.data-*`.

In its TF Hub modules, tensor names have the prefix `module/`.
"""

import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from albert_tf.checkpoints.checkpoint import Checkpoint, from_tensors, infer_head_settings
from albert_tf.checkpoints.config_files import google_values
from albert_tf.checkpoints.differences import warn_of_differences
from albert_tf.checkpoints.names import PROBLEM_TYPES, for_file, num_file_groups
from albert_tf.config import AlbertConfig
from albert_tf.files.atomic import move, temporary_folder, tensorflow_writes, write_json
from albert_tf.files.urls import location

CONFIG_FILE = "albert_config.json"
_HUB_PREFIX = "module/"
# State of the reference's optimizers.
_SLOTS = ("/adam_m", "/adam_v", "/lamb_m", "/lamb_v")


def from_google_names(source: pathlib.Path, config: AlbertConfig, tensors: Mapping[str, np.ndarray]) -> Checkpoint:
    """Makes a checkpoint from tensors by the reference's names."""
    weights = {name.removeprefix(_HUB_PREFIX): tensor for name, tensor in tensors.items()}
    arrays = from_tensors(source, config, weights, "google")
    return Checkpoint(source, config, arrays, infer_head_settings(arrays, {}))


def save_google(model: Any, prefix: str | pathlib.Path) -> None:
    """Writes a model for the reference's code.

    A model without a pooler (for question answering or tokens) is written without one; the reference's graph then keeps
    its initial pooler.

    Args:
        model: a model of this package.
        prefix: such as `folder/model.ckpt-best`; `albert_config.json` is written beside it.

    Warns:
        UserWarning: the reference's code would compute different outputs; see `differences.py`.

    Raises:
        ValueError: the reference's code does not support the model, such as a multi-label classifier, or the format has
            no name for a variable.
    """
    write_google(prefix, model.config, model.arrays_by_path(), model.head_settings())


def write_google(
    prefix: str | pathlib.Path, config: AlbertConfig, arrays: Mapping[str, np.ndarray], settings: Mapping[str, Any]
) -> None:
    """As `save_google`, from arrays by variable path and the values of `config.json` about the head.

    Raises:
        ValueError: as `save_google`.
    """
    import tensorflow as tf

    if settings.get("problem_type") == PROBLEM_TYPES["multi_label"]:
        raise ValueError(
            "Google's code has no multi-label classifier; it would treat the labels as mutually exclusive. Save the "
            "model with save_pretrained, or save only its encoder."
        )
    prefix = location(prefix)
    values = {**google_values(config), "num_hidden_groups": num_file_groups(config)}
    warn_of_differences(config, arrays, "google")
    tensors = for_file(config, arrays, "google")
    with temporary_folder(prefix) as folder, tensorflow_writes(prefix):
        partial = folder / prefix.name
        tf.raw_ops.SaveV2(
            prefix=str(partial),
            tensor_names=list(tensors),
            shape_and_slices=[""] * len(tensors),
            tensors=[tf.constant(tensor) for tensor in tensors.values()],
        )
        # The index comes last, as it completes the checkpoint.
        for file in sorted(partial.parent.iterdir()):
            move(file, prefix.parent / file.name)
    write_json(prefix.parent / CONFIG_FILE, values, sort_keys=True)


def is_weight(name: str) -> bool:
    """Whether a tensor belongs to the model, not to the optimizer."""
    return name.removeprefix(_HUB_PREFIX) != "global_step" and not name.endswith(_SLOTS)
