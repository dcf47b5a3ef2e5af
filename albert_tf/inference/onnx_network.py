"""An ONNX file that OpenVINO or onnxruntime computes, without TensorFlow and Keras."""

import functools
import pathlib
import queue
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from albert_tf.files.installation import install_command
from albert_tf.files.json import has_file
from albert_tf.inference.network import P_MASK, at_positions
from albert_tf.tasks.table import SETTINGS_FILE

RuntimeName = Literal["auto", "openvino", "onnxruntime"]
RuntimePrecision = Literal["auto", "float32", "bfloat16", "float16", "int8"]
# From int64 arrays by name to the outputs of the file by name. Several threads may call it.
Compute = Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]
# The names that transformers.js knows, in the subfolder where it looks.
MODEL_FILES = {
    "float32": "onnx/model.onnx",
    "float16": "onnx/model_fp16.onnx",
    "int8": "onnx/model_quantized.onnx",
}
# The names that a Network gives to the outputs of a task's file, where they differ.
OUTPUT_NAMES = {
    "masked_lm": {"logits": "masked_lm_logits"},
    "pretraining": {"logits": "masked_lm_logits", "sop_logits": "sentence_order_logits"},
    "sentence_embedding": {"last_hidden_state": "sequence_output", "pooler_output": "pooled_output"},
}
_OUTPUTS = (
    *("logits", "sop_logits", "start_logits", "end_logits", "last_hidden_state", "pooler_output", "cls_logits"),
    *("start_top_log_probs", "start_top_index", "end_top_log_probs", "end_top_index"),
)
_EXTRAS = {"openvino": "openvino", "onnxruntime": "onnx"}


class OnnxNetwork:
    """An ONNX file in memory.

    Args:
        folder: folder of one version, written by `export_onnx`.
        task: as in its settings.
        engine: `"auto"` is OpenVINO if it is installed, else onnxruntime.
        precision: of the file to load. `"auto"` is the most exact one. `"bfloat16"` computes with the float32 file in
            bfloat16 where the processor can, in OpenVINO.

    Raises:
        ValueError: the file is missing or damaged, or the engine is not installed.
    """

    def __init__(
        self, folder: pathlib.Path, task: str, engine: RuntimeName = "auto", precision: RuntimePrecision = "auto"
    ):
        in_bfloat16 = precision == "bfloat16"
        if in_bfloat16 and engine == "onnxruntime":
            raise ValueError("`engine` must be 'openvino' for precision='bfloat16'. Received: engine='onnxruntime'.")
        file, file_precision = _find_file(folder, "float32" if in_bfloat16 else precision)
        self.precision = precision if in_bfloat16 else file_precision
        self.name, self._compute = _start(file, "openvino" if in_bfloat16 else engine, in_bfloat16)
        self._task, self._names = task, OUTPUT_NAMES.get(task, {})

    def compute(self, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """See `Network.compute`."""
        needs_mask = self._task == "question_answering" and P_MASK not in batch
        inputs = {**batch, P_MASK: p_mask_of(batch)} if needs_mask else batch
        outputs = self._compute({name: array.astype(np.int64) for name, array in inputs.items()})
        return at_positions({self._names.get(name, name): array for name, array in outputs.items()}, batch)


def p_mask_of(batch: Mapping[str, np.ndarray]) -> np.ndarray:
    """Where no answer can start or end, if nothing else is known: everywhere but at [CLS] and in the second text."""
    mask, types = batch["attention_mask"], batch["token_type_ids"]
    positions, length = np.arange(mask.shape[-1]), mask.sum(axis=-1, keepdims=True)
    return ((positions > 0) & ((types == 0) | (positions >= length - 1))).astype(mask.dtype)


def is_onnx_folder(folder: pathlib.Path) -> bool:
    """Whether `export_onnx` wrote the folder."""
    return has_file(folder / SETTINGS_FILE) and (folder / "onnx").is_dir()


def _find_file(folder: pathlib.Path, precision: str) -> tuple[pathlib.Path, str]:
    """The file to load, and its precision."""
    there = [name for name, file in MODEL_FILES.items() if (folder / file).is_file()]
    chosen = next(iter(there), "") if precision == "auto" else precision
    if chosen not in there:
        raise ValueError(
            f"{folder} has no ONNX file in {precision}, only in {', '.join(there) or 'no precision'}; choose another, "
            "or export the model again."
        )
    return folder / MODEL_FILES[chosen], chosen


def _start(file: pathlib.Path, engine: str, in_bfloat16: bool) -> tuple[str, Compute]:
    """Loads a file with the engine, or the first one that is installed; returns its name too."""
    if engine not in ("auto", *_ENGINES):
        raise ValueError(f"`engine` must be one of auto, {', '.join(_ENGINES)}. Received: engine={engine!r}.")
    for name, start in _ENGINES.items():
        if engine in ("auto", name):
            try:
                return name, start(file, in_bfloat16)
            except ImportError:
                continue
            except Exception as error:  # each engine has exceptions of its own for damaged files
                reason = (str(error).strip().splitlines() or [type(error).__name__])[-1][:200]
                raise ValueError(f"{file} cannot be loaded by {name} ({reason}); export the model again.") from None
    names = list(_ENGINES) if engine == "auto" else [engine]
    missing = f"{' nor '.join(names)} is installed" if len(names) > 1 else f"{engine} is not installed"
    commands = ", or ".join(install_command(_EXTRAS[name]) for name in names)
    raise ValueError(f"{'Neither ' if len(names) > 1 else ''}{missing}; {commands}.")


@functools.cache
def _core() -> Any:
    """One for the process: releasing several leaves signals a freed stack, and the next signal ends the process."""
    import openvino

    return openvino.Core()


def _start_openvino(file: pathlib.Path, in_bfloat16: bool) -> Compute:
    import openvino

    # Some CPUs would compute in bfloat16 by default.
    hint = {"INFERENCE_PRECISION_HINT": "bf16" if in_bfloat16 else "f32"}
    model = _core().compile_model(file, "CPU", hint)
    names = [_openvino_name(output.get_names()) for output in model.outputs]
    taken = [node.any_name for node in model.inputs]
    idle: queue.SimpleQueue[Any] = queue.SimpleQueue()  # a request serves one thread at a time

    def compute(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        try:
            request = idle.get_nowait()
        except queue.Empty:
            request = model.create_infer_request()
        try:
            # Tensors of its own: changing the shape of the request's may wait for ever if several threads do.
            for name in taken:
                request.set_tensor(name, openvino.Tensor(inputs[name]))
            request.infer()
            return {name: request.get_output_tensor(i).data.copy() for i, name in enumerate(names)}
        finally:
            idle.put(request)

    return compute


def _openvino_name(names: set[str]) -> str:
    """The name of an output, which OpenVINO joins with those of tensors that are equal to it."""
    return next(name for name in names if name in _OUTPUTS)


def _start_onnxruntime(file: pathlib.Path, in_bfloat16: bool) -> Compute:
    del in_bfloat16  # refused by OnnxNetwork
    import onnxruntime

    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    names, taken = ([node.name for node in nodes] for nodes in (session.get_outputs(), session.get_inputs()))

    def compute(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        outputs = session.run(names, {name: inputs[name] for name in taken})
        return dict(zip(names, map(np.asarray, outputs)))

    return compute


_ENGINES: dict[str, Callable[[pathlib.Path, bool], Compute]] = {
    "openvino": _start_openvino,
    "onnxruntime": _start_onnxruntime,
}
