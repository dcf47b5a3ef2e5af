"""Reads checkpoints; the format is detected automatically."""

import dataclasses
import functools
import importlib
import pathlib
import warnings
from collections.abc import Callable

import ml_dtypes
import numpy as np

from albert_tf.checkpoints import huggingface
from albert_tf.checkpoints.checkpoint import Checkpoint
from albert_tf.checkpoints.names import joined
from albert_tf.files.exports import ONNX, export_format, why_not_run
from albert_tf.files.hub import model_folder
from albert_tf.files.json import has_file
from albert_tf.lazy import FIRST_IMPORTS

_MAX_MESSAGE = 1000
_GOOGLE_CONFIG = "albert_config.json"
_KERAS_WEIGHTS = "model.weights.h5"


def read(path: str | pathlib.Path, revision: str | None = None) -> Checkpoint:
    """Reads a checkpoint of any known format.

    Safe for untrusted files: nothing in them is executed, no other file is opened, and memory stays below about twice
    their size. A file made for it can still end the process or keep it busy: TensorFlow aborts at entries of an index
    that are damaged under right checksums.

    Args:
        path: a folder of Hugging Face, the reference, TF Hub or KerasHub, the prefix of a TensorFlow checkpoint, or a
            `.keras` or `.weights.h5` file of KerasHub; or the name of a model on huggingface.co, such as
            "albert/albert-base-v2".
        revision: of a name, its branch, tag or commit. None: the newest.

    Returns:
        Checkpoint with float32 arrays.

    Raises:
        ValueError: there is no checkpoint of a known format, it is damaged, or it is a TensorFlow checkpoint and
            TensorFlow is not installed.
    """
    checkpoint = _read_with_short_errors(model_folder(path, revision))
    for name, array in checkpoint.arrays.items():
        if not np.isfinite(array).all():
            warnings.warn(f"`{name}` in {checkpoint.source} has NaN or infinite values.", stacklevel=2)
    return checkpoint


def holds_weights(path: str | pathlib.Path) -> bool:
    """Whether `read` knows a format for this path; the files may still be damaged."""
    return _find_reader(pathlib.Path(path)) is not None


def _read_with_short_errors(path: pathlib.Path) -> Checkpoint:
    """Keeps errors to one short line: names in a damaged file may be long and contain line breaks."""
    try:
        if (reader := _find_reader(path)) is None:
            raise ValueError(_what_else(path))
        checkpoint = reader()
        arrays = {name: _as_float32(checkpoint.source, name, array) for name, array in checkpoint.arrays.items()}
        return dataclasses.replace(checkpoint, arrays=arrays)
    except ValueError as error:
        message = " ".join(str(error).splitlines())
        if len(message) > _MAX_MESSAGE:
            message = f"{message[: _MAX_MESSAGE // 2]} ... {message[-_MAX_MESSAGE // 2 :]}"
        raise ValueError(message) from None


def _what_else(path: pathlib.Path) -> str:
    """Why a path holds no checkpoint, and what to pass instead."""
    if not path.exists():
        return f"{path} does not exist; check the spelling."
    if why := why_not_run(path):
        return why
    if form := export_format(path):
        kind = "an ONNX folder" if form == ONNX else f"a {form}"
        return (
            f"{path} is {kind}, which only `predict`, `evaluate` and `serve` read; pass the folder that it was "
            "exported from."
        )
    if path.is_dir() and not any(path.iterdir()):
        return f"{path} is empty; pass the folder of a model."
    inside = (child for child in path.glob("*") if holds_weights(child) or (child.is_dir() and export_format(child)))
    if names := sorted(map(str, inside)):
        return f"{path} is a folder of models; give one of them: {joined(names)}."
    return (
        f"`path` must be a folder with {huggingface.CONFIG_FILE} and {huggingface.WEIGHTS_FILES[0]}, a folder with "
        f"{_GOOGLE_CONFIG} and a checkpoint, or the prefix of one. Received: {path}, which is none of these."
    )


def _find_reader(path: pathlib.Path) -> Callable[[], Checkpoint] | None:
    if weights := huggingface.find_weights(path):
        return lambda: huggingface.read_huggingface(path, weights)
    for recognizes, module, name in _FORMATS:
        if recognizes(path):
            return functools.partial(getattr(_format(module), name), path)
    return None


def _format(module: str):
    with FIRST_IMPORTS:
        return importlib.import_module(f"albert_tf.checkpoints.formats.{module}")


def _is_tensorflow(path: pathlib.Path) -> bool:
    has_graph = (path / "saved_model.pb").is_file()
    return has_file(path / _GOOGLE_CONFIG) or (has_graph and _format("tensorflow").is_hub_module(path))


def _is_keras_hub_preset(path: pathlib.Path) -> bool:
    return (path / huggingface.CONFIG_FILE).is_file() and (path / _KERAS_WEIGHTS).is_file()


# Test, module and function of each format; modules are imported on first use.
_FORMATS: tuple[tuple[Callable[[pathlib.Path], bool], str, str], ...] = (
    (_is_tensorflow, "tensorflow", "read_folder"),
    (_is_keras_hub_preset, "keras_archive", "read_preset"),
    (lambda path: path.is_file() and path.suffix == ".keras", "keras_archive", "read_archive"),
    (lambda path: path.is_file() and path.name.endswith(".weights.h5"), "keras_archive", "read_weights"),
    (lambda path: path.parent.joinpath(path.name + ".index").is_file(), "tensorflow", "read_tensorflow"),
)


def _as_float32(source: pathlib.Path, name: str, array: np.ndarray) -> np.ndarray:
    if array.dtype.kind != "f" and array.dtype != ml_dtypes.bfloat16:
        raise ValueError(
            f"`{name}` in {source} is {array.dtype}, but floating-point weights are expected; export the weights as "
            "float32."
        )
    with np.errstate(over="ignore"):  # `read` warns of infinite values
        return array.astype(np.float32, copy=False)
