"""Predictions, and how they are read from the outputs of an export; needs neither TensorFlow nor Keras.

Letters: B batch, C classes, D hidden, M masks of a text, K best pieces.
"""

import abc
import dataclasses
import pathlib
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from albert_tf import checkpoints
from albert_tf.data.finetuning.answers import AnswerPrediction
from albert_tf.data.finetuning.encoded import BYTES_PER_TOKEN, MAX_TOKENS, rows_by_length
from albert_tf.data.finetuning.tagged import Entity

SAVED_MODEL_FILE = "saved_model.pb"
# Outputs of `serving_default` by which a task is known.
_TASK_OF_OUTPUT = {
    "answer": "question_answering",
    "choice": "multiple_choice",
    "entity_label": "token_classification",
    "pieces": "masked_lm",
    "sentence_embedding": "sentence_embedding",
}


@dataclasses.dataclass(frozen=True)
class ClassPrediction:
    """Prediction of a classifier for one text.

    Attributes:
        label: the most probable label; None for regression.
        score: its probability, or the predicted number.
        probabilities: by name of the label; empty for regression.
    """

    label: str | None
    score: float
    probabilities: dict[str, float]


@dataclasses.dataclass(frozen=True)
class MaskPrediction:
    """Candidates for one [MASK], most probable first: pieces ("▁" begins a word) and their probabilities."""

    pieces: tuple[str, ...]
    probabilities: tuple[float, ...]


class ExportedModel(abc.ABC):
    """A model that is called by signatures, from texts to arrays by name.

    Attributes:
        folder: folder of the version.
        engine: what computes its outputs, such as `"tensorflow"`.
        batch_size: maximum number of texts that are computed at once.
        makes_batches: whether `run` divides its rows into batches of similar length.
    """

    folder: pathlib.Path
    engine: str
    batch_size: int
    makes_batches: bool = False

    @abc.abstractmethod
    def signatures(self) -> Mapping[str, tuple[Collection[str], Collection[str]]]:
        """The names of the inputs and outputs of each signature."""

    @abc.abstractmethod
    def run(self, signature: str, arrays: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Calls a signature; strings are UTF-8 bytes."""

    @property
    def task(self) -> str:
        """As `ModelFolder.task`; a pretrained model is a masked LM."""
        _, outputs = self.signatures()["serving_default"]
        return next((task for name, task in _TASK_OF_OUTPUT.items() if name in outputs), "sequence_classification")

    def classify(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> list[ClassPrediction]:
        """As `albert_tf.export.classify`."""
        outputs = self._call("serving_default", text=texts, text_pair=pairs)
        scores = [float(score) for score in outputs["score"]]
        if "probabilities" not in outputs:
            return [ClassPrediction(None, score, {}) for score in scores]
        names = [name.decode() for name in self._call("labels")["labels"]]
        labels = [label.decode() for label in outputs["label"]]
        return [
            ClassPrediction(label, score, dict(zip(names, row)))
            for label, score, row in zip(labels, scores, (row.tolist() for row in outputs["probabilities"]))
        ]

    def choose(self, contexts: Sequence[str], choices: Sequence[Sequence[str]]) -> np.ndarray:
        """As `albert_tf.export.choose`."""
        return np.array(self._call("serving_default", context=contexts, choices=choices)["probabilities"])

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """As `albert_tf.export.embed`."""
        return np.array(self._call("serving_default", text=texts)["sentence_embedding"])

    def fill_mask(self, texts: Sequence[str], top: int = 5) -> list[tuple[MaskPrediction, ...]]:
        """As `albert_tf.export.fill_mask`, with at most the number of pieces fixed at export."""
        outputs = self._call("serving_default", text=texts)
        return [
            tuple(
                MaskPrediction(tuple(piece.decode() for piece in mask[:top]), tuple(values[:top].tolist()))
                for mask, values in zip(*row)
                if mask[0]
            )
            for row in zip(outputs["pieces"], outputs["probabilities"])  # [B, M, K]
        ]

    def answer_questions(self, questions: Sequence[str], contexts: Sequence[str]) -> list[AnswerPrediction]:
        """As `albert_tf.export.answer_questions`."""
        outputs = self._call("serving_default", question=questions, context=contexts)
        columns = ([value.item() for value in outputs[name]] for name in ("start", "end", "score", "null_odds"))
        return [AnswerPrediction(text.decode(), *row) for text, *row in zip(outputs["answer"], *columns)]

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
            for row in zip(*(outputs[name] for name in names))
        ]

    def sentence_order(self, texts: Sequence[str], pairs: Sequence[str]) -> list[float]:
        """As `albert_tf.export.sentence_order`."""
        return [float(share) for share in self._call("sentence_order", text=texts, text_pair=pairs)["in_order"]]

    def _call(self, signature: str, **texts: Sequence | None) -> Mapping[str, Sequence | np.ndarray]:
        """The outputs of a signature, in the order of the texts, of which a few of similar length run at once."""
        signatures = self.signatures()
        if signature not in signatures:
            raise ValueError(
                f"{self.folder} has no signature {signature!r}, only {', '.join(sorted(signatures))}; export a model "
                "for this task."
            )
        given = {name: _as_bytes(values) for name, values in texts.items() if values is not None}
        expected = set(signatures[signature][0])
        if set(given) != expected:
            raise ValueError(
                f"The model was trained on {' and '.join(sorted(expected))}, but received {' and '.join(given)}."
            )
        columns = list(given.values())
        if len(counts := {len(column) for column in columns}) > 1:
            raise ValueError(f"There must be one of {' and '.join(given)} for each row. Received: {sorted(counts)}.")
        if not columns or len(columns[0]) <= 1 or self.makes_batches:
            return self.run(signature, given)
        # Longer texts are mostly cut, or read in windows.
        lengths = np.array([min(sum(map(len, row)), BYTES_PER_TOKEN * 512) for row in zip(*columns)])
        found: dict[str, list] = {}
        for rows in rows_by_length(lengths, self.batch_size, BYTES_PER_TOKEN * MAX_TOKENS):
            for name, values in self.run(signature, {name: column[rows] for name, column in given.items()}).items():
                for row, value in zip(rows, values, strict=True):
                    found.setdefault(name, [None] * len(lengths))[row] = value
        return found


def _as_bytes(values: Sequence) -> np.ndarray:
    """Texts [B] or choices [B, C] as an object array of bytes."""
    try:
        encoded = [value.encode() if isinstance(value, str) else [text.encode() for text in value] for value in values]
    except UnicodeEncodeError as error:
        raise ValueError(
            f"Texts must be valid Unicode. Received: {error.object[:60]!r}, whose character {error.start} is half of a "
            "surrogate pair; read its bytes with errors='replace'."
        ) from None
    return np.array(encoded, object)


def newest_first(folder: pathlib.Path) -> list[pathlib.Path]:
    """The folder itself and its numbered versions, in the order in which an export is looked for."""
    versions = (path for path in folder.glob("*") if path.name.isdecimal())
    return [folder, *sorted(versions, key=lambda path: -int(path.name))]


def is_saved_model(folder: str | pathlib.Path) -> bool:
    """Whether `folder` is a SavedModel or a folder of its numbered versions.

    A folder with a checkpoint is not, even if it also has a SavedModel, because loading a SavedModel may run code.
    """
    folders = newest_first(pathlib.Path(folder))
    return any((path / SAVED_MODEL_FILE).is_file() for path in folders) and not checkpoints.holds_weights(folder)
