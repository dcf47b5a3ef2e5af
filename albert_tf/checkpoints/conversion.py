"""Converts checkpoints between formats, without building a model."""

import pathlib
from collections.abc import Mapping
from typing import Any

from albert_tf.checkpoints.checkpoint import Checkpoint
from albert_tf.checkpoints.formats.google import write_google
from albert_tf.checkpoints.huggingface import save_huggingface
from albert_tf.checkpoints.names import Format
from albert_tf.checkpoints.sentence_modules import SENTENCE_SETTINGS
from albert_tf.tasks.table import find_task

_GOOGLE_NAME = "model.ckpt-best"
# Values of `config.json` that do not follow from the config.
_HEAD_SETTINGS = ("id2label", "problem_type", "start_n_top", "end_n_top", "objective", SENTENCE_SETTINGS)


def write(checkpoint: Checkpoint, folder: str | pathlib.Path, to: Format) -> None:
    """Writes a checkpoint in another format.

    Args:
        checkpoint: Checkpoint, as returned by `read`.
        folder: created if it does not exist.
        to: `"google"` (`model.ckpt-best` and `albert_config.json`) or `"huggingface"`.

    Raises:
        ValueError: the format cannot represent the checkpoint.
    """
    if to == "google":
        write_google(pathlib.Path(folder, _GOOGLE_NAME), checkpoint.config, checkpoint.arrays, checkpoint.settings)
    elif to == "huggingface":
        save_huggingface(folder, checkpoint.config, checkpoint.arrays, _settings(checkpoint))
    else:
        raise ValueError(f"`to` must be 'google' or 'huggingface'. Received: to={to!r}.")


def _settings(checkpoint: Checkpoint) -> Mapping[str, Any]:
    """The entries of `config.json` about the head."""
    settings = {key: checkpoint.settings[key] for key in _HEAD_SETTINGS if key in checkpoint.settings}
    if "id2label" in settings:
        settings["label2id"] = {label: int(index) for index, label in settings["id2label"].items()}
    task = find_task(checkpoint.parts)
    if task is None:
        return {"architectures": ["AlbertModel"], **settings}
    return {"architectures": checkpoint.settings.get("architectures") or [task.model], **settings}
