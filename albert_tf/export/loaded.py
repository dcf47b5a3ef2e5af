"""Prediction with SavedModels written by `export_saved_model`.

Letters: B batch, C classes, K best pieces.
"""

import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  # registers the operations that the SavedModel calls

from albert_tf import checkpoints
from albert_tf.export.prediction import ClassPrediction, MaskPrediction
from albert_tf.export.spans import AnswerPrediction, Entity

_FILE = "saved_model.pb"
# Outputs of `serving_default` by which a task is known.
_TASK_OF_OUTPUT = {
    "answer": "question_answering",
    "choice": "multiple_choice",
    "entity_label": "token_classification",
    "pieces": "masked_lm",
    "sentence_embedding": "sentence_embedding",
}


@dataclasses.dataclass(frozen=True)
class RestoredModel:
    """A SavedModel in memory.

    Attributes:
        folder: folder of the version.
        restored: result of `tf.saved_model.load`, which owns the variables.
    """

    folder: pathlib.Path
    restored: Any

    @property
    def task(self) -> str:
        """As `ModelFolder.task`."""
        outputs = self.restored.signatures["serving_default"].structured_outputs
        return next((task for name, task in _TASK_OF_OUTPUT.items() if name in outputs), "sequence_classification")

    def classify(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> list[ClassPrediction]:
        """As `albert_tf.export.classify`."""
        outputs = self._call("serving_default", text=texts, text_pair=pairs)
        scores = outputs["score"].numpy().tolist()
        if "probabilities" not in outputs:
            return [ClassPrediction(None, score, {}) for score in scores]
        names = [name.decode() for name in self._call("labels")["labels"].numpy()]
        probabilities = outputs["probabilities"].numpy().tolist()  # [B, C]
        labels = [label.decode() for label in outputs["label"].numpy()]
        return [
            ClassPrediction(label, score, dict(zip(names, row)))
            for label, score, row in zip(labels, scores, probabilities)
        ]

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """As `albert_tf.export.embed`."""
        return self._call("serving_default", text=texts)["sentence_embedding"].numpy()

    def fill_mask(self, texts: Sequence[str]) -> list[tuple[MaskPrediction, ...]]:
        """As `albert_tf.export.fill_mask`, with the number of pieces fixed at export."""
        try:
            outputs = self._call("serving_default", text=texts)
        except tf.errors.InvalidArgumentError:
            raise ValueError(f"Each text must contain [MASK]. Received: {list(texts)}.") from None
        pieces, probabilities = outputs["pieces"].numpy(), outputs["probabilities"].numpy()  # [B, M, K]
        return [
            tuple(
                MaskPrediction(tuple(piece.decode() for piece in mask), tuple(values.tolist()))
                for mask, values in zip(*row)
                if mask[0]
            )
            for row in zip(pieces, probabilities)
        ]

    def answer_questions(self, questions: Sequence[str], contexts: Sequence[str]) -> list[AnswerPrediction]:
        """As `albert_tf.export.answer_questions`."""
        outputs = self._call("serving_default", question=questions, context=contexts)
        names = ("start", "end", "score", "null_odds")
        columns = (outputs[name].numpy().tolist() for name in names)
        return [AnswerPrediction(text.decode(), *row) for text, *row in zip(outputs["answer"].numpy(), *columns)]

    def find_entities(self, texts: Sequence[str]) -> list[list[Entity]]:
        """As `albert_tf.export.find_entities`."""
        outputs = self._call("serving_default", text=texts)
        names = ("entity_label", "entity_text", "entity_start", "entity_end", "entity_score")
        return [
            [
                Entity(label.decode(), text.decode(), *(value.item() for value in values))
                for label, text, *values in zip(*row)
                if label
            ]
            for row in zip(*(outputs[name].numpy() for name in names))
        ]

    def sentence_order(self, texts: Sequence[str], pairs: Sequence[str]) -> list[float]:
        """As `albert_tf.export.sentence_order`."""
        return self._call("sentence_order", text=texts, text_pair=pairs)["in_order"].numpy().tolist()

    def _call(self, name: str, **texts: Sequence[str] | None) -> dict:
        if name not in self.restored.signatures:
            raise ValueError(
                f"{self.folder} has no signature {name!r}, only {', '.join(sorted(self.restored.signatures))}; export "
                "a model for this task."
            )
        signature = self.restored.signatures[name]
        given = {key: tf.constant(list(value)) for key, value in texts.items() if value is not None}
        expected = set(signature.structured_input_signature[1])
        if set(given) != expected:
            raise ValueError(
                f"The model was trained on {' and '.join(sorted(expected))}, but received {' and '.join(given)}."
            )
        return signature(**given)


def is_saved_model(folder: str | pathlib.Path) -> bool:
    """Whether `folder` is a SavedModel or a folder of its numbered versions.

    A folder with a checkpoint is not, even if it also has a SavedModel, because loading a SavedModel may run code.
    """
    return _newest(pathlib.Path(folder)) is not None and not checkpoints.holds_weights(folder)


def load_saved_model(folder: str | pathlib.Path) -> RestoredModel:
    """Loads a SavedModel. It is a program that may read and write files: only load what you trust.

    Args:
        folder: folder of one version, or of several numbered versions, of which the newest is loaded.

    Raises:
        ValueError: there is no SavedModel, or it cannot be read.
    """
    newest = _newest(pathlib.Path(folder))
    if newest is None:
        raise ValueError(f"{folder} has no {_FILE}; export a model first.")
    try:
        restored = tf.saved_model.load(str(newest))
    except Exception as error:  # damaged graphs raise almost anything
        reason = (str(error).splitlines() or [type(error).__name__])[0][:300]
        raise ValueError(f"{newest} is not a SavedModel, or is damaged ({reason}); export it again.") from None
    if "serving_default" not in restored.signatures:
        raise ValueError(f"{newest} does not take texts, like modules for TF Hub; export it with --format saved_model.")
    return RestoredModel(newest, restored)


def _newest(folder: pathlib.Path) -> pathlib.Path | None:
    versions = sorted((path for path in folder.glob("*") if path.name.isdecimal()), key=lambda path: int(path.name))
    candidates = [path for path in [folder, *reversed(versions)] if (path / _FILE).is_file()]
    return candidates[0] if candidates else None
