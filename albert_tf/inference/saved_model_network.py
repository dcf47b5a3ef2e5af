"""A SavedModel that computes batches with its signature `tokens`."""

import pathlib
import weakref
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  # registers the operations that the SavedModel calls

from albert_tf.inference.network import INPUTS, at_positions

SIGNATURE = "tokens"


class SavedModelNetwork:
    """A SavedModel in memory.

    Args:
        restored: result of `tf.saved_model.load`, which owns the variables.
        settings: of the export.
        precision: of the export.
    """

    name = "tensorflow"

    def __init__(self, restored: Any, settings: Any, precision: str):
        self.restored, self.precision, self._settings = restored, precision, settings

    def compute(self, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """See `Network.compute`."""
        tensors = self.restored.signatures[SIGNATURE](**{name: tf.constant(batch[name], tf.int32) for name in INPUTS})
        outputs = {name: tensor.numpy() for name, tensor in tensors.items()}
        if self._settings.task == "masked_lm":
            return at_positions({"masked_lm_logits": outputs["logits"]}, batch)
        if self._settings.task == "sequence_classification" or self._settings.task == "multiple_choice":
            return {"logits": outputs["logits"]}
        return at_positions(outputs, batch)


def restore(folder: pathlib.Path) -> Any:
    """Loads a SavedModel, which is a program that may read and write files: only load what you trust.

    Its tables are freed with it, which TensorFlow does not do: some megabytes for a vocabulary.

    Raises:
        ValueError: it cannot be read.
    """
    try:
        restored = tf.saved_model.load(str(folder))
        captured = [tensor for one in restored.signatures.values() for tensor in one.captured_inputs]
        weakref.finalize(restored, _free, [tensor for tensor in captured if tensor.dtype == tf.resource]).atexit = False
        return restored
    except Exception as error:  # damaged graphs raise almost anything
        reason = (str(error).splitlines() or [type(error).__name__])[0][:300]
        raise ValueError(f"{folder} is not a SavedModel, or is damaged ({reason}); export it again.") from None


def _free(handles: Iterable[tf.Tensor]) -> None:
    with tf.init_scope():  # at once, also if garbage is found while a function is traced
        for handle in handles:
            tf.raw_ops.DestroyResourceOp(resource=handle, ignore_lookup_error=True)
