"""From any layout that can be read to one that can be written, without a model in between."""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

from albert_tf.checkpoints.checkpoint import Checkpoint
from albert_tf.checkpoints.formats.google import write_google
from albert_tf.checkpoints.huggingface import save_huggingface
from albert_tf.checkpoints.names import Format, rows, to_file
from albert_tf.tasks import find_task

GOOGLE_NAME = "model.ckpt-best"
# What a `config.json` says about heads; all else in it follows from the config.
_HEAD_SETTINGS = ("id2label", "problem_type", "start_n_top", "end_n_top")


@dataclasses.dataclass(frozen=True)
class Placement:
    """Where a variable went.

    Attributes:
        path: our path of the variable.
        name: the tensor's name in the file that was written.
        shape: the tensor's shape there.
    """

    path: str
    name: str
    shape: tuple[int, ...]


def write(checkpoint: Checkpoint, folder: str | pathlib.Path, to: Format) -> list[Placement]:
    """Writes a checkpoint in another layout, with everything that it holds.

    Args:
        checkpoint: Checkpoint, as `read` returns it.
        folder: made if it does not exist.
        to: `"google"`, which gives `model.ckpt-best` and `albert_config.json`, or `"huggingface"`.

    Returns:
        list of Placement, one for each tensor written.

    Raises:
        ValueError: where the layout has no place for what the checkpoint holds.
    """
    config, arrays = checkpoint.config, checkpoint.arrays
    if to == "google":
        write_google(pathlib.Path(folder, GOOGLE_NAME), config, arrays, checkpoint.settings)
    elif to == "huggingface":
        save_huggingface(folder, config, arrays, _settings(checkpoint))
    else:
        raise ValueError(f"`to` must be google or huggingface. Received: to={to}.")
    is_bare = to == "huggingface" and all(path.startswith("encoder/") for path in arrays)
    return [
        Placement(row.path, name.removeprefix("albert.") if is_bare else name, to_file(row, arrays[row.path], to).shape)
        for row in rows(config)
        if row.path in arrays and (name := getattr(row, to))
    ]


def _settings(checkpoint: Checkpoint) -> Mapping[str, Any]:
    given = checkpoint.settings
    kept = {key: given[key] for key in _HEAD_SETTINGS if key in given}
    if "id2label" in kept:
        kept["label2id"] = {label: int(number) for number, label in kept["id2label"].items()}
    parts = {path.split("/", 1)[0] for path in checkpoint.arrays}
    task = find_task(parts)
    return {"architectures": given.get("architectures") or [task.model if task else "AlbertModel"], **kept}
