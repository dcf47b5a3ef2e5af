"""Logits and probabilities of labels of texts, their scores, and the file of predictions.

Letters: N examples, B texts, C classes.
"""

import dataclasses
import itertools
import math
import pathlib

import numpy as np

from albert_tf.data.finetuning.classification import LabelledTexts, join_labels
from albert_tf.data.finetuning.tables import listed
from albert_tf.metrics import (
    ClassificationScores,
    ConstantScore,
    MultiLabelScores,
    RegressionScores,
    classification_scores,
    multi_label_scores,
    regression_scores,
)
from albert_tf.metrics.glue import undefined_correlation
from albert_tf.tasks.learned import label_notes, write_table
from albert_tf.tasks.outputs import softmax
from albert_tf.tasks.sequence_classification.settings import DEFAULT_THRESHOLD, Threshold, thresholds_of

Scores = ClassificationScores | MultiLabelScores | RegressionScores

# Scores of each problem, and the one that decides by default.
SCORES = {
    "classification": (ClassificationScores, "accuracy"),
    "multi_label": (MultiLabelScores, "f1_micro"),
    "regression": (RegressionScores, "pearson"),
}


@dataclasses.dataclass(frozen=True)
class LabelEvaluation:
    """Labels and predictions of some examples.

    Attributes:
        problem: `"classification"`, `"multi_label"` or `"regression"`.
        names: class names.
        targets: the labels: class ids int32 [N], decisions float32 [N, C], or numbers float32 [N].
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


def probabilities_of(logits: np.ndarray, problem: str) -> np.ndarray:
    """The probabilities of labels, float32 [B, C]; they add up to 1 unless a text may have several labels."""
    if problem == "multi_label":
        with np.errstate(over="ignore"):  # of large negative logits
            return 1 / (1 + np.exp(-logits))
    return softmax(logits)
