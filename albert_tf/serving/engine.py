"""What the server needs of a loaded model.

An engine answers requests for signatures, as TensorFlow Serving does: a SavedModel has its own, an ONNX folder those of
`albert_tf.inference.signatures`.
"""

import contextlib
import importlib.util
import itertools
import logging
import pathlib
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from albert_tf.data.finetuning.few_shapes import power_of_two
from albert_tf.inference.loading import SAVED_MODEL_FILE
from albert_tf.inference.onnx_network import MODEL_FILES
from albert_tf.inference.signatures import OnnxEngine, Signature

_logger = logging.getLogger(__name__)


class Engine(Protocol):
    """A loaded model; may be called from several threads.

    Attributes:
        name: `"tensorflow"`, `"openvino"` or `"onnxruntime"`.
        precision: of the computation of an ONNX model; empty for a SavedModel, which has that of its export.
        reads_windows: whether all tokens of a text are computed, in windows, and not only the first ones.
        signatures: the functions by name; `serving_default` takes raw text.
        lengths: in tokens, of the shapes that it compiles; none if it compiles nothing.
    """

    name: str
    precision: str
    reads_windows: bool
    signatures: dict[str, Signature]
    lengths: Sequence[int]

    def run(self, signature: str, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Calls a signature, see `OnnxEngine.run`."""
        ...


def load_engine(folder: pathlib.Path, engine: str = "auto", precision: str = "auto", max_rows: int = 1) -> Engine:
    """Loads a version and answers a first request, which compiles the model.

    Args:
        folder: a SavedModel, or a folder with `model.json` and `onnx/`.
        engine: `"auto"`, `"tensorflow"` for a SavedModel, `"openvino"` or `"onnxruntime"` for an ONNX model.
        precision: of an ONNX model. `"auto"` is bfloat16 in OpenVINO on a CPU with AMX, where it is as fast as int8,
            and otherwise that of the most exact file.
        max_rows: of the batches that will come.

    Raises:
        ValueError: the engine does not run what is in the folder.
    """
    if engine in ("auto", "tensorflow") and (folder / SAVED_MODEL_FILE).is_file():
        try:
            from albert_tf.serving import saved_model_engine
        except ModuleNotFoundError as error:
            raise ValueError(
                f"{error.name} is not installed, which the SavedModel in {folder} needs; install it, or export the "
                "model with --format onnx."
            ) from None
        loaded: Engine = saved_model_engine.load(folder, precision)
    elif engine != "tensorflow" and (folder / "onnx").is_dir():
        loaded = OnnxEngine(folder, engine, _fast_precision(folder, engine) if precision == "auto" else precision)
    else:
        wanted = "a SavedModel" if engine == "tensorflow" else "an ONNX model"
        raise ValueError(f"--engine {engine} runs {wanted}, but {folder} holds none; use --engine auto.")
    _warm_up(loaded, folder, max_rows)
    return loaded


def _fast_precision(folder: pathlib.Path, engine: str) -> str:
    can_run = engine in ("auto", "openvino") and importlib.util.find_spec("openvino") is not None
    return "bfloat16" if can_run and has_amx() and (folder / MODEL_FILES["float32"]).is_file() else "auto"


def has_amx() -> bool:
    """Whether the CPU multiplies matrices of bfloat16 in units of their own; known on Linux only."""
    with contextlib.suppress(OSError):
        return " amx_bf16" in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    return False


def _warm_up(engine: Engine, folder: pathlib.Path, max_rows: int) -> None:
    """Answers a text, or texts of each shape that is compiled, so that no request waits for it; the largest first."""
    inputs = engine.signatures["serving_default"].inputs
    if any(spec.dtype != "string" for spec in inputs.values()):
        return

    def run(signature: str, words: int, rows: int) -> dict[str, np.ndarray]:
        texts = {name: b"[MASK]" + b" a" * words * (name in ("text", "context")) for name in inputs}
        shapes = {name: [rows] + [1] * (len(spec.shape) - 1) for name, spec in inputs.items()}
        return engine.run(signature, {name: np.full(shapes[name], texts[name], object) for name in inputs})

    samples = [(0, 1)]
    if engine.lengths:
        few, more = (run("tokenize", words, 1)["input_ids"].shape[-1] for words in (1, 2))
        words = [max(0, 1 + (length - few) // max(1, more - few)) for length in engine.lengths]  # that just fit
        powers = [1 << exponent for exponent in range(power_of_two(max_rows).bit_length())]
        samples = sorted(itertools.product(words, powers), reverse=True)
        _logger.info("Compiling %s for %d shapes, up to %d x %d.", folder, len(samples), powers[-1], engine.lengths[-1])
    for sample in samples:
        with contextlib.suppress(ValueError):  # the sample need not be one that the model answers
            run("serving_default", *sample)
