"""A checkpoint in memory, and how it becomes a model's variables: wholly, or not at all."""

import dataclasses
import hashlib
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from albert_tf.checkpoints.names import Format, Row, from_file, num_file_groups, rows
from albert_tf.config import AlbertConfig
from albert_tf.tasks import HEADS

# The parts of a model that may start fresh: the heads, and the pooler below some of them.
_RENEWABLE = HEADS | {"pooler"}


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """What a file of any format holds, under our names.

    Attributes:
        source: where it was read from.
        config: AlbertConfig.
        arrays: array by variable path, such as `encoder/embeddings/word_embeddings`.
        settings: what the file's config says beyond `config`, such as `id2label`.
    """

    source: pathlib.Path
    config: AlbertConfig
    arrays: Mapping[str, np.ndarray]
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def digest(self) -> str:
        """SHA-256 of all arrays with their names, types and shapes, in hexadecimal."""
        return digest({f"{path} {array.dtype} {array.shape}": array for path, array in self.arrays.items()})


def digest(arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of arrays with their names, in hexadecimal."""
    total = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        total.update(name.encode())
        total.update(np.ascontiguousarray(array).data)
    return total.hexdigest()


def under_our_names(
    source: pathlib.Path, config: AlbertConfig, tensors: Mapping[str, np.ndarray], layout: Format
) -> dict[str, np.ndarray]:
    """Renames and turns the tensors of a file; a tensor that no row names is an error."""
    refuse_absurd_size(source, config, len(tensors))
    by_name = {getattr(row, layout): row for row in rows(config)}
    refuse_unknown(source, set(tensors) - set(by_name))
    arrays: dict[str, np.ndarray] = {}
    for name, tensor in tensors.items():
        _add(arrays, by_name[name], from_file(by_name[name], tensor, layout), source)
    return arrays


def refuse_unknown(source: pathlib.Path, names: Iterable[str]) -> None:
    """Raises where tensors of a file have no place in a model of its config."""
    if names := sorted(names):
        raise ValueError(
            f"Every tensor of a checkpoint must have a place in the model. Received: {source} with "
            f"{_listed(names)} left over; is this the right config for the file?"
        )


def refuse_absurd_size(source: pathlib.Path, config: AlbertConfig, num_tensors: int) -> None:
    """Raises where a config has more blocks than its file has tensors, before a name is made for each of them."""
    blocks = num_file_groups(config) * config.inner_group_num
    if blocks > num_tensors:
        raise ValueError(
            f"A config must not have more blocks than its file has tensors. Received: {source} with {num_tensors} "
            f"tensors for {blocks} blocks; is this the right config for the file?"
        )


def refuse_another_size(checkpoint: Checkpoint) -> None:
    """Raises where a model of the config would be more than twice as large as its file, before it takes up memory."""
    config, arrays = checkpoint.config, checkpoint.arrays
    found, expected = sum(array.size for array in arrays.values()), config.num_parameters("encoder")
    if expected <= 2 * found:
        return
    shapes = {
        "encoder/embeddings/word_embeddings": (config.vocab_size, config.embedding_size),
        "encoder/embeddings/position_embeddings": (config.max_position_embeddings, config.embedding_size),
        "encoder/embeddings/token_type_embeddings": (config.type_vocab_size, config.embedding_size),
        "encoder/ffn_0_0/intermediate/kernel": (config.hidden_size, config.intermediate_size),
    }
    wrong = [
        f"{path} {arrays[path].shape} for {shape}"
        for path, shape in shapes.items()
        if path in arrays and arrays[path].shape != shape
    ]
    raise ValueError(
        f"A checkpoint must be as large as its config. Received: {checkpoint.source} with {found:,} values for an "
        f"encoder of {expected:,} parameters{f' ({_listed(wrong)})' if wrong else ''}; take the config that the "
        "weights were made with."
    )


def with_head_settings(arrays: Mapping[str, np.ndarray], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, and what they leave to be seen from the heads: names of classes, numbers of answers kept."""
    seen: dict[str, Any] = {}
    if "classifier/bias" in arrays:
        count = len(arrays["classifier/bias"])
        seen["id2label"] = {str(number): f"LABEL_{number}" for number in range(count)}
        seen |= {"problem_type": "regression"} if count == 1 else {}
    if "qa_beam/start/kernel" in arrays:
        seen |= {"start_n_top": 5, "end_n_top": 5}  # the reference's defaults
    return {**seen, **{key: value for key, value in settings.items() if value is not None}}


def _add(arrays: dict[str, np.ndarray], row: Row, array: np.ndarray, source: pathlib.Path) -> None:
    if row.path in arrays and not np.array_equal(arrays[row.path], array):
        raise ValueError(
            f"Layers that share `{row.path}` must hold equal tensors. Received: {source} with layers that differ; "
            "read it with a config whose `share` is 'none'."
        )
    arrays[row.path] = array


def assign(checkpoint: Checkpoint, variables: Mapping[str, Any], new_head: bool = False) -> None:
    """Fills every variable from the checkpoint, or raises before any is touched.

    Heads in the file that the model does not have are set aside. With `new_head`, heads that the file does not have
    stay as they were initialised, as does a missing pooler, and a classifier for another number of labels.

    Args:
        checkpoint: Checkpoint.
        variables: Keras variables by path.
        new_head: bool.

    Raises:
        ValueError: naming tensors left over, variables not filled, and shapes that differ.
    """
    model_parts, file_parts = {_part(path) for path in variables}, {_part(path) for path in checkpoint.arrays}
    arrays, labels = checkpoint.arrays, _numbers_of_labels(checkpoint, variables)
    absent = (model_parts - file_parts) & _RENEWABLE
    reasons = [f"has no {part}" for part in sorted(absent)]
    reasons += [f"has {labels[0]} labels where the model has {labels[1]}"] if labels else []
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
        cure = "its config is probably of another size or version"
        if not unused and {_part(path) for path in (*missing, *wrong)} <= renewable:
            cure = f"it {' and '.join(reasons)}: pass new_head=True to start that part fresh"
        elif own := sorted(model_parts - _RENEWABLE - {"encoder"}):
            cure = (
                f"`{own[0]}` is a layer of your own, which no such file has: construct the model, then call "
                "model.encoder.set_weights(AlbertEncoder.from_pretrained(path).get_weights())"
            )
        raise ValueError(_misfit(checkpoint, missing, unused, list(wrong.values()), cure))
    for path, variable in variables.items():
        if path in arrays and _part(path) not in fresh:
            variable.assign(arrays[path])


def _numbers_of_labels(checkpoint: Checkpoint, variables: Mapping[str, Any]) -> tuple[int, int] | None:
    """The file's and the model's, where both have a classifier and the two differ."""
    if not {"classifier/kernel", "classifier/bias"} <= set(checkpoint.arrays) & set(variables):
        return None
    found, expected = checkpoint.arrays["classifier/bias"].size, int(variables["classifier/bias"].shape[0])
    return (found, expected) if found != expected else None


def _misfit(checkpoint: Checkpoint, missing: list, unused: list, wrong: list, cure: str) -> str:
    found = [
        *([f"without {_listed(missing)}"] if missing else []),
        *([f"with {_listed(unused)} left over"] if unused else []),
        *([f"with other shapes ({_listed(wrong)})"] if wrong else []),
    ]
    return f"A checkpoint must fit the model. Received: {checkpoint.source} {', '.join(found)}; {cure}."


def _part(path: str) -> str:
    """The unit that a file has wholly or not at all: the encoder, its pooler, or a head."""
    return "pooler" if path.startswith("encoder/pooler/") else path.split("/", 1)[0]


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:4])
    return shown if len(names) <= 4 else f"{shown} and {len(names) - 4} more"
