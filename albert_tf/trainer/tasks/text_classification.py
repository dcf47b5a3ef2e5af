"""Classification of texts and pairs of texts, and regression.

Letters: N examples, C classes, B batch, L sequence.
"""

import dataclasses
import math
import pathlib
import warnings
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from albert_tf.data.finetuning.classification import LabelledTexts, read_texts
from albert_tf.data.finetuning.encoded import EncodedTexts, encode_texts
from albert_tf.data.finetuning.tables import listed
from albert_tf.files.origins import name_of
from albert_tf.inference.network import collect
from albert_tf.inference.predictor import Predictor
from albert_tf.inference.settings import Settings
from albert_tf.inference.tasks.text_classification import probabilities_of
from albert_tf.metrics import (
    ClassificationScores,
    ConstantScore,
    MultiLabelScores,
    RegressionScores,
    classification_scores,
    f1_label,
    multi_label_scores,
    regression_scores,
    undefined_correlation,
)
from albert_tf.tokenization import AlbertTokenizer
from albert_tf.trainer.tasks.base import FinetuneTask, label_notes, write_table
from albert_tf.trainer.tasks.baseline import tfidf_outputs

if TYPE_CHECKING:
    # Examples are predicted without Keras and TensorFlow where the model is an ONNX folder.
    from albert_tf.models import AlbertForSequenceClassification
    from albert_tf.models.base import AlbertBase

Scores = ClassificationScores | MultiLabelScores | RegressionScores

# Scores of each problem, and the one that decides by default.
_SCORES = {
    "classification": (ClassificationScores, "accuracy"),
    "multi_label": (MultiLabelScores, "f1_micro"),
    "regression": (RegressionScores, "pearson"),
}


class TextClassification(FinetuneTask):
    """Labelled texts from tables; see `albert_tf.data.finetuning.tables` for the file formats."""

    predictions_file = "dev_predictions.tsv"

    @property
    def main_score(self) -> str:
        """The score that decides which weights are kept; by default accuracy, micro F1 or Pearson's correlation.

        Raises:
            ValueError: the problem has no such score.
        """
        name, problem = self.options.main_score, self.options.problem
        kind, default = _SCORES[problem]
        if name is None:
            return default
        known = [field.name for field in dataclasses.fields(kind)]
        if name not in known:
            raise ValueError(f"`main_score` must be one of {', '.join(known)} for {problem}. Received: {name!r}.")
        return name

    def read(self, path: pathlib.Path) -> LabelledTexts:
        """Reads a table."""
        return read_texts(path, self.options.columns, self.options.table)

    def keys(self, data: LabelledTexts) -> Iterable[Hashable]:
        """What identifies each example."""
        return zip(data.texts, data.texts if data.pairs is None else data.pairs)

    def model_arguments(self, train: LabelledTexts) -> dict[str, Any]:
        """The labels, or one number to predict."""
        name = self.main_score
        if self.options.problem == "regression":
            return {"num_labels": 1, "problem": "regression", "labels": None}
        names = train.label_names() if self.options.labels is None else self.options.labels
        if len(names) < (1 if self.options.problem == "multi_label" else 2):
            raise ValueError(f"A classifier must have at least two labels. Received: {list(names)} for {train.source}.")
        if self.options.problem == "classification" and len(names) > max(20, len(train) // 2):
            warnings.warn(
                f"{name_of(train.source)} has {len(names):,} different labels in {len(train):,} rows; "
                f"{self.options.label_column!r} looks like the wrong column: set `label_column` (--label-column).",
                stacklevel=2,
            )
        if name == "f1" and len(names) != 2:
            raise ValueError(f"`main_score` must not be 'f1' for {len(names)} classes; use 'f1_macro'. Received: 'f1'.")
        f1_label(names, self.options.positive_label)  # raises an error if it is not one of two
        return {"problem": self.options.problem, "labels": names}

    def training_examples(
        self, model: "AlbertBase", tokenizer: AlbertTokenizer, train: LabelledTexts
    ) -> "_LabelledExamples":
        """Tokenizes texts."""
        targets, weights = targets_of(model, train), None
        if getattr(self.options, "class_weights", "none") == "balanced":
            counts = np.bincount(targets, minlength=model.num_labels)
            weights = (len(targets) / (np.count_nonzero(counts) * np.maximum(counts, 1))).astype(np.float32)[targets]
        encoded = encode_texts(tokenizer, train.texts, train.pairs, self.max_length, self.stored_ids)
        return _LabelledExamples(encoded, targets, weights)

    def evaluator(self, model: Predictor, data: LabelledTexts) -> Callable[[], "LabelEvaluation"]:
        """Evaluates texts."""
        problem, labels = model.settings.problem, model.settings.labels
        targets, main, positive = targets_of(model.settings, data), self.main_score, self.options.positive_label
        f1_label(labels, positive)  # raises an error before texts are computed
        encoded = encode_texts(model.tokenizer, data.texts, data.pairs, self.max_length, self.stored_ids)

        def evaluate() -> LabelEvaluation:
            logits = collect(model.compute(encoded, shows_progress=True), "logits", len(encoded))
            return LabelEvaluation(problem, labels, targets, logits, main, positive)

        return evaluate

    def baseline_score(self, train: LabelledTexts, dev: LabelledTexts, model: "AlbertBase") -> float:
        """The main score of a linear model on TF-IDF features."""
        problem, positive = self.options.problem, self.options.positive_label
        outputs = tfidf_outputs(train, targets_of(model, train), dev, problem)
        targets = targets_of(model, dev)
        return LabelEvaluation(problem, model.labels, targets, outputs, self.main_score, positive).main_score

    def write_predictions(self, path: pathlib.Path, data: LabelledTexts, evaluation: "LabelEvaluation") -> None:
        """Writes TSV, see `write_predictions`."""
        write_predictions(path, data, evaluation)


@dataclasses.dataclass(frozen=True)
class _LabelledExamples:
    encoded: EncodedTexts
    targets: np.ndarray
    weights: np.ndarray | None

    @property
    def lengths(self) -> np.ndarray:
        return self.encoded.lengths

    def training_batch(self, rows: np.ndarray) -> tuple[Any, ...]:
        labelled = self.encoded.batch(rows), self.targets[rows]
        return labelled if self.weights is None else (*labelled, self.weights[rows])


@dataclasses.dataclass(frozen=True)
class LabelEvaluation:
    """Labels and predictions of some examples.

    Attributes:
        problem: `"classification"`, `"multi_label"` or `"regression"`.
        names: class names.
        targets: the labels, see `targets_of`.
        logits: float32 [N, C].
        main: name of the main score.
        positive_label: the one of two class names that `f1` is of; None: the second.
    """

    problem: str
    names: tuple[str, ...]
    targets: np.ndarray
    logits: np.ndarray
    main: str
    positive_label: str | None = None

    @property
    def scores(self) -> Scores:
        """All scores defined for the problem."""
        if self.problem == "regression":
            return regression_scores(self.targets, self.logits[:, 0])
        if self.problem == "multi_label":
            return multi_label_scores(self.targets, self.logits > 0, self.names)
        return classification_scores(self.targets, self.logits.argmax(axis=1), self.names, self.positive_label)

    @property
    def predictions(self) -> list[str]:
        """The predicted label of each example, or its labels, separated by commas."""
        if self.problem == "multi_label":
            return [",".join(name for name, logit in zip(self.names, row) if logit > 0) for row in self.logits]
        return [self.names[index] for index in self.logits.argmax(axis=1)]

    @property
    def main_score(self) -> float:
        """The score that decides which of two models is better; raises ValueError if it is undefined."""
        score = getattr(self.scores, self.main)
        if score is None:  # F1 of more than two classes
            raise ValueError(f"`{self.main}` is not defined for {len(self.names)} classes; choose another main_score.")
        return score

    @property
    def is_constant(self) -> bool:
        """Whether all predictions are the same, or nearly the same number."""
        if self.problem == "regression":
            return float(np.ptp(self.logits)) < 1e-3
        if self.problem == "multi_label":
            return len(np.unique(self.logits > 0, axis=0)) == 1
        return len(set(self.logits.argmax(axis=1).tolist())) == 1

    @property
    def constant_score(self) -> ConstantScore | None:
        """Score of the most frequent label, of the most frequent labels together, or of the mean."""
        if self.problem == "regression":
            return ConstantScore("mean squared error of the mean", float(np.var(self.targets, dtype=np.float64)))
        if self.problem == "multi_label":
            sets = map(tuple, self.targets.tolist())
            return ConstantScore.of_labels(sets, "exact match of the most frequent labels")
        return ConstantScore.of_labels(self.targets.tolist())

    @property
    def notes(self) -> list[str]:
        """Why a score is undefined, and whether all examples have the same label."""
        scores = self.scores
        if not isinstance(scores, RegressionScores):
            notes = list(label_notes(scores.by_label))
            if len(rows := np.unique(self.targets, axis=0)) == 1:
                labels = [self.names[index] for index in (np.flatnonzero(rows[0]) if rows.ndim > 1 else rows)]
                which = f"the same label, {listed(labels)}," if labels else "no label,"
                notes.insert(0, f"All examples have {which} so that the scores tell little.")
            return notes
        undefined = [name.replace("_", " ") for name, score in vars(scores).items() if math.isnan(score)]
        reason = undefined_correlation(self.targets, self.logits[:, 0])
        return [f"The scores {', '.join(undefined)} are undefined, because {reason}."] if undefined else []


def targets_of(model: "AlbertForSequenceClassification | Settings", texts: LabelledTexts) -> np.ndarray:
    """The labels as targets: class ids int32 [N], decisions float32 [N, C], or float32 [N] for regression."""
    if model.problem == "multi_label":
        return texts.label_decisions(model.labels)
    return texts.label_values() if model.problem == "regression" else texts.label_ids(model.labels)


def write_predictions(path: pathlib.Path, texts: LabelledTexts, evaluation: LabelEvaluation) -> None:
    """Writes the label and prediction of each example as TSV.

    Args:
        path: the file to write. Its columns are `line` (of the table), `label`, `prediction` (labels of a text are
            separated by commas), and the probability of each class.
        texts: the examples.
        evaluation: LabelEvaluation of these examples.
    """
    names, logits = evaluation.names, evaluation.logits
    header = ["line", "label", "prediction"]
    if evaluation.problem == "regression":
        columns = [[f"{value:.6g}"] for value in logits[:, 0]]
    else:
        header += [f"probability of {name}" for name in names]
        probabilities = probabilities_of(logits, evaluation.problem)
        columns = [
            [prediction, *(f"{probability:.6f}" for probability in row)]
            for prediction, row in zip(evaluation.predictions, probabilities)
        ]
    write_table(path, header, ([line, label, *row] for line, label, row in zip(texts.lines, texts.labels, columns)))
