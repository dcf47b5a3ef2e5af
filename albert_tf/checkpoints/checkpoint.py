"""A checkpoint in memory, and its assignment to a model's variables."""

import dataclasses
import hashlib
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from albert_tf.checkpoints.names import Format, joined, num_file_groups, reorient, rows
from albert_tf.config import AlbertConfig
from albert_tf.tasks.table import HEADS

# The parts of a model that can be initialized anew.
_RENEWABLE = HEADS | {"pooler"}


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """The content of a file of any format.

    Attributes:
        source: the file or folder.
        config: AlbertConfig.
        arrays: array by variable path, such as `encoder/embeddings/word_embeddings`.
        settings: further values of the file's config, such as `id2label`.
    """

    source: pathlib.Path
    config: AlbertConfig
    arrays: Mapping[str, np.ndarray]
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def parts(self) -> set[str]:
        """The parts that the file has, such as `encoder` and `classifier`."""
        return {path.split("/", 1)[0] for path in self.arrays}

    def digest(self) -> str:
        """SHA-256 of all arrays with their names, types and shapes, as hexadecimal digits."""
        return digest({f"{path} {array.dtype} {array.shape}": array for path, array in self.arrays.items()})


def with_sharing(checkpoint: Checkpoint, config: AlbertConfig) -> Checkpoint:
    """A checkpoint whose shared blocks are copied for each layer that has weights of its own in `config`.

    Raises:
        ValueError: layers with different weights would have to share them.
    """
    old, arrays = checkpoint.config, dict(checkpoint.arrays)
    for name, before, after in (
        ("attention", old.num_attention_groups, config.num_attention_groups),
        ("ffn", old.num_ffn_groups, config.num_ffn_groups),
    ):
        if after % before:
            raise ValueError(
                f"`share` must not make layers share weights that differ in {checkpoint.source}, nor "
                f"`num_hidden_layers` leave them out. Received: share={config.share!r}, num_hidden_layers="
                f"{config.num_hidden_layers}, which need {after} sets of {name} weights instead of {before}."
            )
        blocks = {path: arrays.pop(path) for path in checkpoint.arrays if path.startswith(f"encoder/{name}_")}
        for path, array in blocks.items():
            block, rest = path.removeprefix(f"encoder/{name}_").split("/", 1)
            group, inner = block.split("_")
            for copy in range(after // before):
                arrays[f"encoder/{name}_{int(group) * (after // before) + copy}_{inner}/{rest}"] = array
    return dataclasses.replace(checkpoint, config=config, arrays=arrays)


def with_positions(checkpoint: Checkpoint, config: AlbertConfig) -> Checkpoint:
    """A checkpoint whose position embeddings are repeated until there are `max_position_embeddings` of `config`.

    Repeated, not interpolated, so that tokens next to each other have the positions that they were trained with
    (Longformer, arXiv 2004.05150, section 5).
    """
    path, count = "encoder/embeddings/position_embeddings", config.max_position_embeddings
    table = checkpoint.arrays.get(path)
    if table is None or count <= len(table):
        return checkpoint
    repeated = np.tile(table, (-(-count // len(table)), 1))[:count]
    return dataclasses.replace(checkpoint, config=config, arrays={**checkpoint.arrays, path: repeated})


def digest(arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of arrays with their names, as hexadecimal digits."""
    total = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        total.update(name.encode())
        total.update(np.ascontiguousarray(array).data)
    return total.hexdigest()


def from_tensors(
    source: pathlib.Path, config: AlbertConfig, tensors: Mapping[str, np.ndarray], layout: Format
) -> dict[str, np.ndarray]:
    """Converts the tensors of a file to arrays by variable path.

    Raises:
        ValueError: a tensor is unknown, or the copies of a shared layer differ.
    """
    check_blocks(source, config, len(tensors))
    by_name = {getattr(row, layout): row for row in rows(config)}
    reject_unknown(source, set(tensors) - set(by_name))
    arrays: dict[str, np.ndarray] = {}
    for name, tensor in tensors.items():
        path, array = by_name[name].path, reorient(by_name[name], tensor, layout)
        if path in arrays and not np.array_equal(arrays[path], array):
            raise ValueError(
                f"{source} has different values for the copies of `{path}`, but its config shares this layer; read it "
                f"with a config whose `share` is 'none'."
            )
        arrays[path] = array
    return arrays


def reject_unknown(source: pathlib.Path, names: Iterable[str]) -> None:
    """Raises ValueError if there are any names, which are those of unknown tensors."""
    if unknown := sorted(names):
        raise ValueError(
            f"{source} has tensors that a model of its config does not have: {joined(unknown)}; check that the config "
            f"belongs to this file."
        )


def check_blocks(source: pathlib.Path, config: AlbertConfig, num_tensors: int) -> None:
    """Raises ValueError if a config has more blocks than its file has tensors, before names are made for all blocks."""
    blocks = num_file_groups(config) * config.inner_group_num
    if blocks > num_tensors:
        raise ValueError(
            f"{source} has {num_tensors} tensors, but its config describes {blocks} blocks; check that the config "
            f"belongs to this file."
        )


def check_size(checkpoint: Checkpoint) -> None:
    """Raises ValueError if the config describes a model of more than twice the file's size, before one is built."""
    count = sum(array.size for array in checkpoint.arrays.values())
    expected = checkpoint.config.num_parameters("encoder")
    if expected <= 2 * count:
        return
    raise ValueError(
        f"{checkpoint.source} has {count:,} values, but its config describes an encoder of {expected:,} parameters; "
        "use the config that the weights were trained with."
    )


def infer_head_settings(arrays: Mapping[str, np.ndarray], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that follow from the heads' arrays, and `settings`, which take precedence and hold no None."""
    inferred: dict[str, Any] = {}
    if "classifier/bias" in arrays:
        count = len(arrays["classifier/bias"])
        inferred["id2label"] = {str(index): f"LABEL_{index}" for index in range(count)}
        inferred |= {"problem_type": "regression"} if count == 1 else {}
    if "qa_beam/start/kernel" in arrays:
        inferred |= {"start_n_top": 5, "end_n_top": 5}  # the reference's defaults
    return {**inferred, **settings}


def assign(checkpoint: Checkpoint, variables: Mapping[str, Any], new_head: bool = False) -> None:
    """Assigns the checkpoint to all variables, or raises before any is changed.

    Heads that the model does not have are ignored.

    Args:
        checkpoint: Checkpoint.
        variables: Keras variables by path.
        new_head: keep the initial values of heads that the file does not have, of a missing pooler, and of a classifier
            with another number of labels.

    Raises:
        ValueError: the message names missing and unexpected arrays, and those with other shapes.
    """
    model_parts, file_parts = {_part(path) for path in variables}, {_part(path) for path in checkpoint.arrays}
    arrays, labels = checkpoint.arrays, _label_counts(checkpoint, variables)
    absent = (model_parts - file_parts) & _RENEWABLE
    reasons = [f"has no {part}" for part in sorted(absent)]
    reasons += [f"has {labels[0]} labels and the model has {labels[1]}"] if labels else []
    renewable = absent | ({"classifier"} if labels else set())
    fresh = renewable if new_head else set()
    missing = [path for path in variables if path not in arrays and _part(path) not in fresh]
    unused = [path for path in arrays if path not in variables and _part(path) in model_parts]
    wrong = {
        path: f"{path} {arrays[path].shape} for {tuple(variable.shape)}"
        for path, variable in variables.items()
        if path in arrays and _part(path) not in fresh and arrays[path].shape != tuple(variable.shape)
    }
    if missing or unused or wrong:
        cure = "its config probably has another size or version"
        if not unused and {_part(path) for path in (*missing, *wrong)} <= renewable:
            cure = f"it {' and '.join(reasons)}: pass new_head=True to initialize this part anew"
        elif custom := sorted(model_parts - _RENEWABLE - {"encoder"}):
            cure = (
                f"`{custom[0]}` is a custom layer, which no such file has: construct the model, then call "
                "model.encoder.set_weights(AlbertEncoder.from_pretrained(path).get_weights())"
            )
        problems = [f"missing {joined(missing)}"] if missing else []
        problems += [f"unexpected {joined(unused)}"] if unused else []
        problems += [f"other shapes ({joined(list(wrong.values()))})"] if wrong else []
        raise ValueError(f"{checkpoint.source} does not fit the model: {', '.join(problems)}; {cure}.")
    for path, variable in variables.items():
        if path in arrays and _part(path) not in fresh:
            variable.assign(arrays[path])


def _label_counts(checkpoint: Checkpoint, variables: Mapping[str, Any]) -> tuple[int, int] | None:
    """The numbers of labels of the file and of the model if they differ, else None."""
    if not {"classifier/kernel", "classifier/bias"} <= set(checkpoint.arrays) & set(variables):
        return None
    in_file, in_model = checkpoint.arrays["classifier/bias"].size, int(variables["classifier/bias"].shape[0])
    return (in_file, in_model) if in_file != in_model else None


def _part(path: str) -> str:
    """The part of the model that a variable belongs to: the encoder, its pooler, or a head."""
    return "pooler" if path.startswith("encoder/pooler/") else path.split("/", 1)[0]
