"""Answers of a SavedModel by its own signatures."""

import contextlib
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.files.json import has_file, optional_json
from albert_tf.inference.loading import TOKENIZER_FOLDER, check_saved_precision, check_takes_texts
from albert_tf.inference.saved_model_network import restore
from albert_tf.inference.signatures import Signature, check_names, texts_of
from albert_tf.tasks.base import TextTask
from albert_tf.tasks.outputs import TensorSpec
from albert_tf.tasks.settings import read_settings
from albert_tf.tasks.table import SETTINGS_FILE, task_class
from albert_tf.tokenization import AlbertTokenizer

_DTYPES = ("string", "int32", "float32")


class SavedModelEngine:
    """A SavedModel in memory, see `albert_tf.serving.engine.Engine`."""

    name, precision = "tensorflow", ""

    def __init__(self, restored: Any, task: TextTask | None = None, lengths: Sequence[int] = ()):
        self._restored = restored  # owns the variables
        self._task, self.lengths = task, lengths
        self.reads_windows = task is not None and task.reads_windows
        self.signatures = {
            name: Signature(_specs(function.structured_input_signature[1]), _specs(function.structured_outputs))
            for name, function in restored.signatures.items()
        }

    def run(self, signature: str, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Calls a signature, see `Engine.run`."""
        specs = self.signatures[signature].inputs
        check_names(signature, specs, inputs)
        tensors = {name: tf.constant(inputs[name], spec.dtype) for name, spec in specs.items()}
        try:
            outputs = self._restored.signatures[signature](**tensors)
        except tf.errors.InvalidArgumentError as error:
            raise ValueError(_reason_of_refusal(str(error))) from None
        if signature == "serving_default" and self._task is not None and not self.reads_windows:
            self._task.encode(*(texts_of(inputs[name]) for name in self._task.inputs))  # counts those that are cut
        return {name: tensor.numpy() for name, tensor in outputs.items()}


def load(folder: pathlib.Path, threads: int | None = None, precision: str = "auto") -> SavedModelEngine:
    """Loads a SavedModel.

    Args:
        folder: the folder of a version.
        threads: number of threads of an operation. None: one per core. That of the first model of a process counts.
        precision: must be `"auto"`: that of the export.

    Raises:
        ValueError: the SavedModel is damaged, or has tensors of other types than text and numbers; or another precision
            is given.
    """
    check_saved_precision(folder, None if precision == "auto" else precision)
    if threads is not None:
        with contextlib.suppress(RuntimeError):  # TensorFlow has started
            tf.config.threading.set_intra_op_parallelism_threads(threads)
    restored = restore(folder)
    check_takes_texts(folder, restored.signatures)
    try:
        lengths = optional_json(folder / SETTINGS_FILE).get("lengths", ())  # for which XLA compiles
        return SavedModelEngine(restored, _task_of(folder), lengths)
    except TypeError as error:
        raise ValueError(f"{folder} could not be loaded ({error}); export the model again.") from None


def _task_of(folder: pathlib.Path) -> TextTask | None:
    """What the export makes of texts; None for the SavedModel of another program."""
    if not has_file(folder / SETTINGS_FILE) or not (folder / TOKENIZER_FOLDER).is_dir():
        return None
    settings = read_settings(folder)
    return task_class(settings.task)(AlbertTokenizer.from_pretrained(folder / TOKENIZER_FOLDER), settings)


def _specs(tensors: Mapping[str, Any]) -> dict[str, TensorSpec]:
    for name, tensor in tensors.items():
        if tensor.dtype.name not in _DTYPES or not tensor.shape.rank:
            raise TypeError(f"its tensor {name} is of a type that is not served, {tensor.dtype.name}")
    return {name: TensorSpec(tensor.dtype.name, tuple(tensor.shape)) for name, tensor in tensors.items()}


def _reason_of_refusal(message: str) -> str:
    """The sentence in an error of TensorFlow's graph: of a failed assertion, or of the operation."""
    text = message.partition("\n\t [[")[0]
    _, is_assertion, assertion = text.partition("assertion failed: [")
    if is_assertion:
        return assertion.partition("] [")[0].strip().removesuffix("]")
    text = re.sub(r"^ *\(\d+\) [A-Z_]+: ", "", text.splitlines()[-1])  # one of several errors
    return f"The model refused the input: {text}."
