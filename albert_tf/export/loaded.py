"""A SavedModel that `export_saved_model` wrote, asked through its signatures.

Letters: B batch, C classes, K best pieces.
"""

import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
import tensorflow_text  # noqa: F401  # registers the operations that the SavedModel calls

from albert_tf import checkpoints
from albert_tf.export.prediction import ClassPrediction, MaskPrediction

_FILE = "saved_model.pb"


@dataclasses.dataclass(frozen=True)
class RestoredModel:
    """What was read from disk.

    Attributes:
        folder: the version's folder.
        restored: what `tf.saved_model.load` gave; it owns the variables.
    """

    folder: pathlib.Path
    restored: Any

    @property
    def is_classifier(self) -> bool:
        """Whether it labels texts; otherwise it fills in masks."""
        return "token_ids" in self.restored.signatures

    def classify(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> list[ClassPrediction]:
        """As `albert_tf.export.classify`."""
        outputs = self._ask("serving_default", texts, pairs)
        scores = outputs["score"].numpy().tolist()
        if "probabilities" not in outputs:
            return [ClassPrediction(None, score, {}) for score in scores]
        names = [name.decode() for name in self._ask("labels")["labels"].numpy()]
        probabilities = outputs["probabilities"].numpy().tolist()  # [B, C]
        labels = [label.decode() for label in outputs["label"].numpy()]
        return [
            ClassPrediction(label, score, dict(zip(names, row)))
            for label, score, row in zip(labels, scores, probabilities)
        ]

    def fill_mask(self, texts: Sequence[str]) -> list[MaskPrediction]:
        """As `albert_tf.export.fill_mask`, with the number of pieces that was fixed by the export."""
        try:
            outputs = self._ask("serving_default", texts)
        except tf.errors.InvalidArgumentError:
            raise ValueError(
                f"Each text must hold [MASK] exactly once. Received: {list(texts)}; write it for one piece."
            ) from None
        pieces, probabilities = outputs["pieces"].numpy(), outputs["probabilities"].numpy().tolist()  # [B, K]
        return [
            MaskPrediction(tuple(piece.decode() for piece in row), tuple(values))
            for row, values in zip(pieces, probabilities)
        ]

    def sentence_order(self, texts: Sequence[str], pairs: Sequence[str]) -> list[float]:
        """As `albert_tf.export.sentence_order`."""
        return self._ask("sentence_order", texts, pairs)["in_order"].numpy().tolist()

    def _ask(self, name: str, texts: Sequence[str] | None = None, pairs: Sequence[str] | None = None) -> dict:
        if name not in self.restored.signatures:
            raise ValueError(
                f"The SavedModel must have the signature {name!r}. Received: {self.folder}, which has "
                f"{', '.join(sorted(self.restored.signatures))}; export a model for this task."
            )
        signature = self.restored.signatures[name]
        given = {"text": texts, "text_pair": pairs}
        given = {key: tf.constant(list(value)) for key, value in given.items() if value is not None}
        wanted = set(signature.structured_input_signature[1])
        if set(given) != wanted:
            raise ValueError(
                f"The model must get {' and '.join(sorted(wanted))}, as in training. Received: {' and '.join(given)}."
            )
        return signature(**given)


def is_saved_model(folder: str | pathlib.Path) -> bool:
    """Whether this is a SavedModel or a folder of numbered versions of one.

    A folder that holds weights is none, whatever lies beside them: a SavedModel is a program, weights are numbers.
    """
    return _newest(pathlib.Path(folder)) is not None and not checkpoints.holds_weights(folder)


def load_saved_model(folder: str | pathlib.Path) -> RestoredModel:
    """Reads a SavedModel. It is a program that may read and write files: load only what you trust.

    Args:
        folder: of one version, or of a model's versions, of which the newest is taken.

    Returns:
        RestoredModel.

    Raises:
        ValueError: there is none, or it cannot be read.
    """
    newest = _newest(pathlib.Path(folder))
    if newest is None:
        raise ValueError(f"{folder} holds no {_FILE}; export a model first.")
    try:
        return RestoredModel(newest, tf.saved_model.load(str(newest)))
    except Exception as error:  # whatever TensorFlow comes to in a damaged graph
        reason = (str(error).splitlines() or [type(error).__name__])[0][:300]
        raise ValueError(f"{newest} is not a SavedModel, or is damaged ({reason}); export it again.") from None


def _newest(folder: pathlib.Path) -> pathlib.Path | None:
    versions = sorted((path for path in folder.glob("*") if path.name.isdecimal()), key=lambda path: int(path.name))
    candidates = [path for path in [folder, *reversed(versions)] if (path / _FILE).is_file()]
    return candidates[0] if candidates else None
