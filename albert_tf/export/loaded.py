"""Prediction with SavedModels written by `export_saved_model`."""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  # registers the operations that the SavedModel calls

from albert_tf.export.results import SAVED_MODEL_FILE, ExportedModel, newest_first
from albert_tf.tensorflow_errors import reason_of_refusal


@dataclasses.dataclass(frozen=True)
class RestoredModel(ExportedModel):
    """A SavedModel in memory.

    Attributes:
        folder: folder of the version.
        restored: result of `tf.saved_model.load`, which owns the variables.
        batch_size: maximum number of texts that are computed at once.
        engine: what computes its outputs.
    """

    folder: pathlib.Path
    restored: Any
    batch_size: int = 32
    engine: str = "tensorflow"

    def signatures(self):
        """See `ExportedModel.signatures`."""
        return {
            name: (function.structured_input_signature[1], function.structured_outputs)
            for name, function in self.restored.signatures.items()
        }

    def run(self, signature: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """See `ExportedModel.run`."""
        given = {name: tf.constant(array) for name, array in arrays.items()}
        try:
            outputs = self.restored.signatures[signature](**given)
        except tf.errors.InvalidArgumentError as error:
            raise ValueError(reason_of_refusal(str(error))) from None
        return {name: tensor.numpy() for name, tensor in outputs.items()}


def load_saved_model(folder: str | pathlib.Path) -> RestoredModel:
    """Loads a SavedModel. It is a program that may read and write files: only load what you trust.

    Args:
        folder: folder of one version, or of several numbered versions, of which the newest is loaded.

    Raises:
        ValueError: there is no SavedModel, or it cannot be read.
    """
    found = (path for path in newest_first(pathlib.Path(folder)) if (path / SAVED_MODEL_FILE).is_file())
    if (newest := next(found, None)) is None:
        raise ValueError(f"{folder} has no {SAVED_MODEL_FILE}; export a model first.")
    try:
        restored = tf.saved_model.load(str(newest))
    except Exception as error:  # damaged graphs raise almost anything
        reason = (str(error).splitlines() or [type(error).__name__])[0][:300]
        raise ValueError(f"{newest} is not a SavedModel, or is damaged ({reason}); export it again.") from None
    if "serving_default" not in restored.signatures:
        raise ValueError(f"{newest} does not take texts, like modules for TF Hub; export it with --format saved_model.")
    return RestoredModel(newest, restored)
