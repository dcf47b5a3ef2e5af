"""Classification of texts and pairs of texts, and regression.

Letters: N examples, C classes, B batch, L sequence.
"""

import dataclasses
import itertools
import math
import pathlib
import warnings
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from albert_tf.data.finetuning.classification import LabelledTexts, join_labels, read_texts
from albert_tf.data.finetuning.encoded import EncodedTexts, encode_texts
from albert_tf.data.finetuning.tables import listed
from albert_tf.files.origins import name_of
from albert_tf.inference.predictor import Predictor
from albert_tf.inference.settings import DEFAULT_THRESHOLD, Settings, Threshold, thresholds_of
from albert_tf.inference.tasks.text_classification import logits_of_texts, probabilities_of
from albert_tf.metrics import (
    ClassificationScores,
    ConstantScore,
    MultiLabelScores,
    RegressionScores,
    best_threshold,
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
        known = [field.name for field in dataclasses.fields(kind) if field.type in (float, float | None)]
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
        if isinstance(self.options.threshold, dict):
            thresholds_of(self.options.threshold, names)  # raises
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
        smoothing = getattr(self.options, "label_smoothing", 0.0)
        return {
            "problem": self.options.problem,
            "labels": names,
            **({"label_smoothing": smoothing} if smoothing else {}),
        }

    def training_examples(
        self, model: "AlbertBase", tokenizer: AlbertTokenizer, train: LabelledTexts
    ) -> "_LabelledExamples":
        """Tokenizes texts; each window of a long one is an example."""
        encoded = self._encode(tokenizer, train)
        targets, weights = targets_of(model, train), None
        targets = targets if encoded.text is None else targets[encoded.text]
        by_class = getattr(self.options, "class_weights", "none")
        if isinstance(by_class, dict):
            if unknown := sorted(by_class.keys() - set(model.labels)):
                raise ValueError(
                    f"`class_weights` must be of labels of the model, {', '.join(map(repr, model.labels))}. Received: "
                    f"{', '.join(map(repr, unknown))}."
                )
            weights = np.array([by_class.get(label, 1.0) for label in model.labels], np.float32)[targets]
        elif by_class == "balanced":
            counts = np.bincount(targets, minlength=model.num_labels)
            weights = (len(targets) / (np.count_nonzero(counts) * np.maximum(counts, 1))).astype(np.float32)[targets]
        return _LabelledExamples(encoded, targets, weights)

    def evaluator(self, model: Predictor, data: LabelledTexts) -> Callable[[], "LabelEvaluation"]:
        """Evaluates texts."""
        problem, labels = model.settings.problem, model.settings.labels
        targets = targets_of(model.settings, data)
        f1_label(labels, self.options.positive_label)  # raises an error before texts are computed
        encoded, windows = self._encode(model.tokenizer, data), self.options.windows

        def evaluate() -> LabelEvaluation:
            logits = logits_of_texts(encoded, model.compute(encoded, shows_progress=True), windows, problem)
            return self._evaluation(problem, labels, targets, logits)

        return evaluate

    def baseline_score(self, train: LabelledTexts, dev: LabelledTexts, model: "AlbertBase") -> float:
        """The main score of a linear model on TF-IDF features."""
        problem = self.options.problem
        outputs = tfidf_outputs(train, targets_of(model, train), dev, problem)
        return self._evaluation(problem, model.labels, targets_of(model, dev), outputs).main_score

    def _evaluation(
        self, problem: str, labels: tuple[str, ...], targets: np.ndarray, logits: np.ndarray
    ) -> "LabelEvaluation":
        """The evaluation, of any number of labels with the threshold of the options or the best one."""
        threshold: Any = self.options.threshold if problem == "multi_label" else None
        if problem == "multi_label" and threshold in (None, "per_label"):
            probabilities = probabilities_of(logits, problem)
            best = best_threshold(targets, probabilities, DEFAULT_THRESHOLD)
            by_label = zip(labels, targets.T, probabilities.T)
            is_one = threshold is None
            threshold = best if is_one else {name: best_threshold(a, b, best) for name, a, b in by_label}
        positive = self.options.positive_label
        return LabelEvaluation(problem, labels, targets, logits, self.main_score, threshold, positive)

    def write_predictions(self, path: pathlib.Path, data: LabelledTexts, evaluation: "LabelEvaluation") -> None:
        """Writes TSV, see `write_predictions`."""
        write_predictions(path, data, evaluation)

    def _encode(self, tokenizer: AlbertTokenizer, data: LabelledTexts) -> EncodedTexts:
        options = {"windows": self.options.windows is not None, "doc_stride": self.options.doc_stride}
        return encode_texts(tokenizer, data.texts, data.pairs, self.max_length, self.stored_ids, **options)


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
        threshold: of the probabilities of labels, where a text may have any number of them.
        positive_label: the one of two class names that `f1` is of; None: the second.
    """

    problem: str
    names: tuple[str, ...]
    targets: np.ndarray
    logits: np.ndarray
    main: str
    threshold: Threshold | None = None
    positive_label: str | None = None

    @property
    def decisions(self) -> np.ndarray:
        """Whether each text has each label, of which it may have any number, bool [N, C]."""
        threshold = DEFAULT_THRESHOLD if self.threshold is None else self.threshold
        return probabilities_of(self.logits, self.problem) > thresholds_of(threshold, self.names)

    @property
    def scores(self) -> Scores:
        """All scores defined for the problem."""
        if self.problem == "regression":
            return regression_scores(self.targets, self.logits[:, 0])
        if self.problem == "multi_label":
            return multi_label_scores(self.targets, self.decisions, self.names)
        return classification_scores(self.targets, self.logits.argmax(axis=1), self.names, self.positive_label)

    def predictions(self, separator: str | None) -> list[str]:
        """The predicted label of each example, or its labels with the separator between them."""
        if self.problem == "multi_label":
            return [join_labels([*itertools.compress(self.names, row)], separator) for row in self.decisions]
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
            return len(np.unique(self.decisions, axis=0)) == 1
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
        path: the file to write. Its columns are `line` (of the table), `label`, `prediction` (several labels of
            a text are written as they are read, see `join_labels`), and the probability of each class.
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
            for prediction, row in zip(evaluation.predictions(texts.separator), probabilities)
        ]
    write_table(path, header, ([line, label, *row] for line, label, row in zip(texts.lines, texts.labels, columns)))
