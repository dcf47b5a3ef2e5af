"""The reference's TensorFlow 1 checkpoints: `albert_config.json` beside `NAME.index` and `NAME.data-*`.

The modules that it published on TF Hub hold the same tensors with `module/` before each name.
"""

import json
import os
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from albert_tf.atomic_files import atomic_write, temporary_folder, tensorflow_writes
from albert_tf.checkpoints.checkpoint import Checkpoint, under_our_names, with_head_settings
from albert_tf.checkpoints.differences import warn_of_differences
from albert_tf.checkpoints.names import PROBLEM_TYPES, for_file, num_file_groups
from albert_tf.config import AlbertConfig

CONFIG_FILE = "albert_config.json"
_HUB_PREFIX = "module/"
# Kept by the reference's optimisers beside every variable, and the counter of its Estimator.
_SLOTS = ("/adam_m", "/adam_v", "/lamb_m", "/lamb_v")
_COUNTER = "global_step"


def from_google_names(source: pathlib.Path, config: AlbertConfig, tensors: Mapping[str, np.ndarray]) -> Checkpoint:
    """Tensors by the reference's names become a checkpoint."""
    weights = {name.removeprefix(_HUB_PREFIX): tensor for name, tensor in tensors.items()}
    arrays = under_our_names(source, config, weights, "google")
    return Checkpoint(source, config, arrays, with_head_settings(arrays, {}))


def save_google(model: Any, prefix: str | pathlib.Path) -> None:
    """Writes a model as the reference's own code would, for that code to read.

    Models without a pooler, those for answers and for tokens, are written without one. The reference's graph has one
    under every head, and leaves it as initialised where `init_checkpoint` has none.

    Args:
        model: a model of this package.
        prefix: where to, such as `folder/model.ckpt-best`; the config goes to `albert_config.json` beside it.

    Warns:
        UserWarning: where a head's epsilon is one that the reference's code does not know; see `differences.py`.

    Raises:
        ValueError: where the reference's code would compute something else with these weights, as with several labels
            for each text, or where a variable has no name there.
    """
    write_google(prefix, model.config, model.arrays_by_path(), model.head_settings())


def write_google(
    prefix: str | pathlib.Path, config: AlbertConfig, arrays: Mapping[str, np.ndarray], settings: Mapping[str, Any]
) -> None:
    """As `save_google`, from arrays by variable path and what `config.json` would say about the head."""
    import tensorflow as tf

    if settings.get("problem_type") == PROBLEM_TYPES["multi_label"]:
        raise ValueError(
            "Google's code has no multi-label classifier and would take the labels to exclude each other. Save the "
            "model with save_pretrained, or its encoder alone."
        )
    prefix = pathlib.Path(prefix)
    values = {**config.to_google(), "num_hidden_groups": num_file_groups(config)}
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
        # The index last: without it there is no checkpoint.
        for file in sorted(partial.parent.iterdir()):
            os.replace(file, prefix.parent / file.name)
    atomic_write(prefix.parent / CONFIG_FILE, (json.dumps(values, indent=2, sort_keys=True) + "\n").encode())


def is_weight(name: str) -> bool:
    """Whether a tensor of such a file belongs to the model, not to its optimizer."""
    return name.removeprefix(_HUB_PREFIX) != _COUNTER and not name.endswith(_SLOTS)
