"""Answers of a SavedModel, computed by TensorFlow."""

import pathlib
from collections.abc import Mapping

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  # registers the operations that the SavedModel calls

from albert_tf.serving.engine import Signature, TensorSpec


class TensorFlowEngine:
    """A SavedModel in memory, see `Engine`."""

    name = "tensorflow"

    def __init__(self, folder: pathlib.Path):
        self._restored = tf.saved_model.load(str(folder))  # owns the variables
        self._functions = dict(self._restored.signatures)
        self.signatures = {name: _signature(function) for name, function in self._functions.items()}

    def run(self, signature: str, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Calls a signature, see `Engine.run`."""
        try:
            outputs = self._functions[signature](**{name: tf.constant(array) for name, array in inputs.items()})
        except tf.errors.InvalidArgumentError as error:
            raise ValueError(_reason(error)) from None
        return {name: tensor.numpy() for name, tensor in outputs.items()}


def load(folder: pathlib.Path, threads: int | None = None) -> TensorFlowEngine:
    """Loads a SavedModel.

    Args:
        folder: the folder of a version.
        threads: number of threads of an operation. None: one per core. It is set when TensorFlow starts.

    Raises:
        ValueError: the SavedModel is damaged, or was written by something that this TensorFlow cannot read.
    """
    if threads is not None and tf.config.threading.get_intra_op_parallelism_threads() != threads:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
    try:
        return TensorFlowEngine(folder)
    except (OSError, KeyError, tf.errors.OpError) as error:
        raise ValueError(f"{folder} could not be loaded as a SavedModel ({error}); export the model again.") from None


def _signature(function) -> Signature:
    _, inputs = function.structured_input_signature
    specs = (inputs, function.structured_outputs)
    return Signature(*({name: _spec(spec) for name, spec in by_name.items()} for by_name in specs))


def _spec(spec) -> TensorSpec:
    if spec.dtype.name not in ("string", "int32", "float32") or not spec.shape.rank:
        raise ValueError(f"The SavedModel has the tensor {spec}, which this server does not know.")
    return TensorSpec(spec.dtype.name, tuple(spec.shape))


def _reason(error: tf.errors.OpError) -> str:
    """The sentence in an error of the graph: of a failed assertion, or of the operation."""
    text = str(error.message).partition("\n\t [[")[0]
    _, is_assertion, assertion = text.partition("assertion failed: [")
    if is_assertion:
        return assertion.partition("] [")[0].strip().removesuffix("]")
    return f"The model refused the input: {text.splitlines()[-1]}."
