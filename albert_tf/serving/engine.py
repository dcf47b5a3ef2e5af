"""The interface of the engines that compute a served model: TensorFlow, OpenVINO or ONNX Runtime."""

import contextlib
import dataclasses
import importlib
import pathlib
from collections.abc import Mapping
from typing import Protocol

import numpy as np


@dataclasses.dataclass(frozen=True)
class TensorSpec:
    """An input or output of a signature.

    Attributes:
        dtype: `"string"`, `"int32"` or `"float32"`.
        shape: None for dimensions of any size; the first is the batch.
    """

    dtype: str
    shape: tuple[int | None, ...]


@dataclasses.dataclass(frozen=True)
class Signature:
    """A function of a model.

    Attributes:
        inputs, outputs: TensorSpecs by name. A signature without inputs returns constants.
    """

    inputs: Mapping[str, TensorSpec]
    outputs: Mapping[str, TensorSpec]


class Engine(Protocol):
    """A loaded model; may be called from several threads."""

    @property
    def name(self) -> str:
        """`"tensorflow"`, `"openvino"` or `"onnxruntime"`."""
        ...

    @property
    def signatures(self) -> Mapping[str, Signature]:
        """The functions by name; `serving_default` takes raw text."""
        ...

    def run(self, signature: str, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Calls a signature.

        Args:
            signature: a name in `signatures`.
            inputs: arrays by name, all with the same first dimension; strings are object arrays of UTF-8 bytes.

        Returns:
            Arrays by name, in the order of the rows; strings are object arrays of bytes.

        Raises:
            ValueError: a row cannot be answered, such as a text without `[MASK]`.
        """
        ...


def load_engine(
    folder: pathlib.Path, engine: str = "auto", precision: str = "auto", threads: int | None = None
) -> Engine:
    """Loads a version and answers a first request, which compiles the model.

    Args:
        folder: a SavedModel, or a folder with `model.json` and `onnx/`.
        engine: `"auto"`, `"tensorflow"` for a SavedModel, `"openvino"` or `"onnxruntime"` for an ONNX model.
        precision: of an ONNX model.
        threads: number of threads of TensorFlow. None: one per core.

    Raises:
        ValueError: the engine does not run what is in the folder.
    """
    if engine in ("auto", "tensorflow") and (folder / "saved_model.pb").is_file():
        try:
            loaded = importlib.import_module("albert_tf.serving.tensorflow_engine").load(folder, threads, precision)
        except ModuleNotFoundError as error:
            raise ValueError(
                f"{error.name} is not installed, which the SavedModel in {folder} needs; install it, or export the "
                "model with --format onnx."
            ) from None
    elif engine != "tensorflow" and (folder / "onnx").is_dir():
        loaded = importlib.import_module("albert_tf.serving.onnx_engine").load(folder, engine, precision)
    else:
        wanted = "a SavedModel" if engine == "tensorflow" else "an ONNX model"
        raise ValueError(f"--engine {engine} runs {wanted}, but {folder} holds none; use --engine auto.")
    _warm_up(loaded)
    return loaded


def _warm_up(engine: Engine) -> None:
    if "serving_default" not in engine.signatures:
        raise ValueError("The model has no signature serving_default; export it with `albert-tf export`.")
    inputs = engine.signatures["serving_default"].inputs
    if any(spec.dtype != "string" for spec in inputs.values()):
        return
    sample = {name: np.full([1] * len(spec.shape), b"[MASK]", object) for name, spec in inputs.items()}
    with contextlib.suppress(ValueError):  # the sample need not be one that the model answers
        engine.run("serving_default", sample)
