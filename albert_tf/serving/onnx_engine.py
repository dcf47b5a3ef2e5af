"""Serves an exported ONNX folder with OpenVINO or onnxruntime, without TensorFlow and Keras.

Letters: B rows, C choices or labels, L sequence.
"""

import contextlib
import dataclasses
import pathlib
import queue
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from albert_tf.config import AlbertConfig
from albert_tf.export.onnx_manifest import MANIFEST_FILE, MODEL_FILES, OnnxManifest
from albert_tf.files.atomic import sha256
from albert_tf.serving import onnx_answers
from albert_tf.serving.engine import Signature
from albert_tf.tokenization import AlbertTokenizer

EngineName = Literal["auto", "openvino", "onnxruntime"]
Precision = Literal["auto", "float32", "bfloat16", "float16", "int8"]
# From int64 arrays by name, of which the model takes its inputs, to outputs by name. Several threads may call it.
Compute = Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]


@dataclasses.dataclass(frozen=True)
class OnnxEngine:
    """A loaded ONNX folder; an `albert_tf.serving.engine.Engine`.

    Attributes:
        name: `"openvino"` or `"onnxruntime"`.
        precision: of the loaded file.
        signatures: the functions by name.
        answers: onnx_answers.Answers.
    """

    name: str
    precision: str
    signatures: Mapping[str, Signature]
    answers: onnx_answers.Answers

    def run(self, signature: str, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Calls a signature; see `Engine.run`."""
        if signature not in self.signatures:
            raise ValueError(f"`signature` must be one of {', '.join(self.signatures)}. Received: {signature!r}.")
        expected = self.signatures[signature].inputs
        if set(inputs) != set(expected):
            raise ValueError(f"{signature} takes {', '.join(expected) or 'nothing'}. Received: {', '.join(inputs)}.")
        arrays = {name: np.asarray(inputs[name]) for name in expected}
        for name, array in arrays.items():
            shape = [len(next(iter(arrays.values()))), *array.shape[1:]] if array.ndim else []
            if array.ndim != len(expected[name].shape) or not array.size or list(array.shape) != shape:
                raise ValueError(
                    f"`{name}` must have {len(expected[name].shape)} axes and as many rows as the other inputs, at "
                    f"least one. Received: shape={array.shape}."
                )
        return self.answers.run(signature, arrays)


def is_onnx_folder(folder: pathlib.Path) -> bool:
    """Whether `export_onnx` wrote the folder."""
    return (folder / MANIFEST_FILE).is_file() and (folder / "onnx").is_dir()


def load(
    folder: str | pathlib.Path,
    engine: EngineName = "auto",
    precision: Precision = "auto",
    batch_size: int = onnx_answers.LARGEST_BATCH,
    max_tokens: int = onnx_answers.LARGEST_BATCH,
) -> OnnxEngine:
    """Loads a folder written by `export_onnx`.

    Args:
        folder: folder of one version.
        engine: `"auto"` is OpenVINO if it is installed, else onnxruntime.
        precision: of the file to load. `"auto"` is the most exact one. `"bfloat16"` computes with the float32 file in
            bfloat16 where the processor can, in OpenVINO.
        batch_size, max_tokens: maximum numbers of rows and of tokens that are computed at once.

    Raises:
        ValueError: the folder is incomplete or damaged, has no file of this precision, or the engine is not installed.
    """
    folder = pathlib.Path(folder)
    manifest = OnnxManifest.read(folder)
    in_bfloat16 = precision == "bfloat16"
    if in_bfloat16 and engine == "onnxruntime":
        raise ValueError("`engine` must be 'openvino' for precision='bfloat16'. Received: engine='onnxruntime'.")
    file, found = _find_file(folder, manifest, "float32" if in_bfloat16 else precision)
    started, compute = _start(file, "openvino" if in_bfloat16 else engine, in_bfloat16)
    tokenizer = AlbertTokenizer.from_pretrained(folder)
    config = AlbertConfig.from_json(folder / "config.json")
    answers = onnx_answers.Answers(manifest, config, tokenizer, compute, batch_size, max_tokens)
    return OnnxEngine(started, precision if in_bfloat16 else found, answers.signatures(), answers)


def _find_file(folder: pathlib.Path, manifest: OnnxManifest, precision: str) -> tuple[pathlib.Path, str]:
    """The file to load, after its checksum was verified, and its precision."""
    there = [name for name, file in MODEL_FILES.items() if file in manifest.files and (folder / file).is_file()]
    chosen = next(iter(there), "") if precision == "auto" else precision
    if chosen not in there:
        raise ValueError(
            f"{folder} has no ONNX file in {precision}, only in {', '.join(there) or 'no precision'}; choose another, "
            "or export the model again."
        )
    file = folder / MODEL_FILES[chosen]
    if sha256(file) != manifest.files[MODEL_FILES[chosen]]["sha256"]:
        raise ValueError(f"{file} was changed after it was written (its checksum differs); export the model again.")
    return file, chosen


def _start(file: pathlib.Path, engine: str, in_bfloat16: bool) -> tuple[str, Compute]:
    """Loads a file with the engine, or the first one that is installed; returns its name too."""
    if engine not in ("auto", *_ENGINES):
        raise ValueError(f"`engine` must be one of auto, {', '.join(_ENGINES)}. Received: engine={engine!r}.")
    for name, start in _ENGINES.items():
        if engine in ("auto", name):
            with contextlib.suppress(ImportError):
                return name, start(file, in_bfloat16)
    name = "openvino" if engine == "auto" else engine
    raise ValueError(f"{name} is not installed; pip install 'albert-tf[{_EXTRAS[name]}]'.")


def _start_openvino(file: pathlib.Path, in_bfloat16: bool) -> Compute:
    import openvino

    # Some CPUs would compute in bfloat16 by default.
    hint = {"INFERENCE_PRECISION_HINT": "bf16" if in_bfloat16 else "f32"}
    model = openvino.Core().compile_model(file, "CPU", hint)
    names = [_openvino_name(output.get_names()) for output in model.outputs]
    taken = [node.any_name for node in model.inputs]
    idle: queue.SimpleQueue[Any] = queue.SimpleQueue()  # a request serves one thread at a time

    def compute(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        try:
            request = idle.get_nowait()
        except queue.Empty:
            request = model.create_infer_request()
        try:
            request.infer({name: inputs[name] for name in taken})
            return {name: request.get_output_tensor(i).data.copy() for i, name in enumerate(names)}
        finally:
            idle.put(request)

    return compute


def _openvino_name(names: set[str]) -> str:
    """The name of an output, which OpenVINO joins with those of tensors that are equal to it."""
    return next(name for name in names if name in onnx_answers.OUTPUTS)


def _start_onnxruntime(file: pathlib.Path, in_bfloat16: bool) -> Compute:
    del in_bfloat16  # refused by `load`
    import onnxruntime

    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    names, taken = ([node.name for node in nodes] for nodes in (session.get_outputs(), session.get_inputs()))

    def compute(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        found = session.run(names, {name: inputs[name] for name in taken})
        return dict(zip(names, map(np.asarray, found)))

    return compute


_ENGINES: dict[str, Callable[[pathlib.Path, bool], Compute]] = {
    "openvino": _start_openvino,
    "onnxruntime": _start_onnxruntime,
}
_EXTRAS = {"openvino": "openvino", "onnxruntime": "onnx"}
