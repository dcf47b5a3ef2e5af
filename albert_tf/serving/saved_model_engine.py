"""Answers of a SavedModel by its own signatures."""

import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.files.json import optional_json
from albert_tf.inference.loading import check_saved_precision, check_takes_texts
from albert_tf.inference.saved_model_network import restore
from albert_tf.inference.signatures import Signature
from albert_tf.tasks.outputs import TensorSpec
from albert_tf.tasks.table import SETTINGS_FILE

_DTYPES = ("string", "int32", "float32")


class SavedModelEngine:
    """A SavedModel in memory, see `albert_tf.serving.engine.Engine`."""

    name, precision = "tensorflow", ""

    def __init__(self, restored: Any, reads_windows: bool = False, lengths: Sequence[int] = ()):
        self._restored = restored  # owns the variables
        self.reads_windows, self.lengths = reads_windows, lengths
        self.signatures = {
            name: Signature(_specs(function.structured_input_signature[1]), _specs(function.structured_outputs))
            for name, function in restored.signatures.items()
        }

    def run(self, signature: str, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Calls a signature, see `Engine.run`."""
        specs = self.signatures[signature].inputs
        tensors = {name: tf.constant(inputs[name], spec.dtype) for name, spec in specs.items()}
        try:
            outputs = self._restored.signatures[signature](**tensors)
        except tf.errors.InvalidArgumentError as error:
            raise ValueError(_reason_of_refusal(str(error))) from None
        return {name: tensor.numpy() for name, tensor in outputs.items()}


def load(folder: pathlib.Path, precision: str = "auto") -> SavedModelEngine:
    """Loads a SavedModel.

    Args:
        folder: the folder of a version.
        precision: must be `"auto"`: that of the export.

    Raises:
        ValueError: the SavedModel is damaged, or has tensors of other types than text and numbers; or another precision
            is given.
    """
    check_saved_precision(folder, None if precision == "auto" else precision)
    restored = restore(folder)
    check_takes_texts(folder, restored.signatures)
    settings = optional_json(folder / SETTINGS_FILE)
    try:  # XLA compiles for some lengths
        return SavedModelEngine(restored, settings.get("windows") is not None, settings.get("lengths", ()))
    except TypeError as error:
        raise ValueError(f"{folder} could not be loaded ({error}); export the model again.") from None


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
