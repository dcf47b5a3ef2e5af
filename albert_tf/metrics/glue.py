"""Scores of the GLUE tasks and of multiple choice: accuracy, F1, Matthews, Pearson and Spearman, in float64 NumPy.

Letters: C classes.
"""

import collections
import dataclasses
from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import ArrayLike


@dataclasses.dataclass(frozen=True)
class ClassificationScores:
    """Scores of predicted classes.

    Args:
        accuracy: float. Fraction of correct predictions.
        f1: float or None. F1 of class 1; None if there are more than two classes.
        f1_macro: float. Mean F1 of the classes that occur in labels or predictions.
        matthews: float. Matthews correlation coefficient, in Gorodkin's form for more than two classes; 0 if labels or
            predictions are all of one class.
    """

    accuracy: float
    f1: float | None
    f1_macro: float
    matthews: float


@dataclasses.dataclass(frozen=True)
class RegressionScores:
    """Scores of predicted numbers.

    Args:
        pearson: float. Linear correlation; NaN if labels or predictions are constant.
        spearman: float. Linear correlation of ranks; ties have their mean rank.
        mean_squared_error: float.
    """

    pearson: float
    spearman: float
    mean_squared_error: float


@dataclasses.dataclass(frozen=True)
class MultiLabelScores:
    """Scores of predicted sets of labels.

    Args:
        f1_micro: float. F1 of all decisions together.
        f1_macro: float. Mean F1 of the labels that occur in labels or predictions.
        exact_match: float. Fraction of examples whose labels are all correct.
    """

    f1_micro: float
    f1_macro: float
    exact_match: float


@dataclasses.dataclass(frozen=True)
class ConstantScore:
    """What a prediction that is the same for all examples would reach, as of a model that has learnt nothing.

    Args:
        name: str. The score, and what is predicted.
        value: float. The score.
    """

    name: str
    value: float

    @classmethod
    def of_labels(cls, labels: Iterable[Hashable], name: str = "accuracy of the most frequent label"):
        """The fraction of the most frequent label.

        Example:

        >>> ConstantScore.of_labels(["a", "b", "a"]).value
        0.6666666666666666
        """
        counts = collections.Counter(labels)
        return cls(name, max(counts.values()) / counts.total())


@dataclasses.dataclass(frozen=True)
class ChoiceScores:
    """Scores of chosen answers.

    Args:
        accuracy: float. Fraction of questions that are answered correctly.
        accuracy_by_group: of the questions of each group, such as RACE's middle and high schools.
    """

    accuracy: float
    accuracy_by_group: dict[str, float]


def multi_label_scores(labels: ArrayLike, predictions: ArrayLike) -> MultiLabelScores:
    """Scores predicted sets of labels.

    Args:
        labels: 0 or 1 for each example and label, [N, C].
        predictions: 0 or 1, of the same shape.

    Raises:
        ValueError: there are no examples, or the shapes differ.

    Example:

    >>> multi_label_scores([[1, 0], [1, 1]], [[1, 0], [0, 1]])
    MultiLabelScores(f1_micro=0.8, f1_macro=0.8333333333333333, exact_match=0.5)
    """
    labels, predictions = np.asarray(labels).astype(bool), np.asarray(predictions).astype(bool)
    if labels.ndim != 2 or labels.shape != predictions.shape or not labels.size:
        raise ValueError(
            "`labels` and `predictions` must be non-empty tables of equal size. Received: shapes "
            f"{labels.shape} and {predictions.shape}."
        )
    right, named = (labels & predictions).sum(axis=0), labels.sum(axis=0) + predictions.sum(axis=0)  # [C] each
    occurs = named > 0
    return MultiLabelScores(
        f1_micro=float(2 * right.sum() / max(named.sum(), 1)),
        f1_macro=float((2 * right[occurs] / named[occurs]).mean()) if occurs.any() else 0.0,
        exact_match=float((labels == predictions).all(axis=1).mean()),
    )


def best_threshold(labels: ArrayLike, probabilities: ArrayLike, default: float = 0.5, min_positives: int = 10) -> float:
    """The threshold with the best F1 of decisions whose probabilities are above it.

    Args:
        labels: 0 or 1 for each decision, of any shape.
        probabilities: of the decisions, of the same shape.
        default: returned if none is better, or if fewer than `min_positives` labels are 1, which tell too little.
        min_positives: see `default`.

    Returns:
        A number from 0 to 1, halfway between two probabilities; of equally good ones that next to `default`.

    Example:

    >>> best_threshold([1, 1, 0, 0], [0.9, 0.3, 0.1, 0.2], min_positives=1)
    0.25
    """
    labels = np.asarray(labels, bool).ravel()
    probabilities = np.asarray(probabilities, np.float64).ravel()
    if labels.sum() < min_positives or not np.isfinite(probabilities).all():
        return default
    order = np.argsort(-probabilities)
    ranked = np.append(probabilities[order], 0.0)
    f1 = 2.0 * np.cumsum(labels[order]) / (np.arange(1, len(labels) + 1) + labels.sum())  # of the first 1, 2, ...
    f1[ranked[:-1] == ranked[1:]] = 0.0  # no threshold is between equal probabilities
    count = int((probabilities > default).sum())
    if f1.max() <= (f1[count - 1] if count else 0.0):
        return default
    thresholds = ((ranked[:-1] + ranked[1:]) / 2)[f1 == f1.max()]
    return float(thresholds[np.abs(thresholds - default).argmin()])


def classification_scores(labels: ArrayLike, predictions: ArrayLike) -> ClassificationScores:
    """Scores predicted classes.

    Args:
        labels: integers, one per example; classes are 0 to C - 1.
        predictions: integers of the same shape.

    Raises:
        ValueError: there are no examples, the shapes differ, or a class is not a non-negative integer.

    Example:

    >>> classification_scores([0, 0, 1, 1], [0, 1, 1, 1])
    ClassificationScores(accuracy=0.75, f1=0.8, f1_macro=0.7333333333333334, matthews=0.5773502691896258)
    """
    confusion = _confusion(*_check_pair(labels, predictions))
    right, labelled, predicted = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)  # [C] each
    occurs = labelled + predicted > 0
    f1 = 2.0 * right / np.maximum(labelled + predicted, 1)
    binary = len(confusion) <= 2
    return ClassificationScores(
        accuracy=float(right.sum() / confusion.sum()),
        f1=float(f1[1]) if binary else None,
        f1_macro=float(f1[occurs].mean()),
        matthews=_matthews(confusion),
    )


def regression_scores(labels: ArrayLike, predictions: ArrayLike) -> RegressionScores:
    """Scores predicted numbers.

    Args:
        labels: numbers, one per example.
        predictions: numbers of the same shape.

    Raises:
        ValueError: there are no examples, or the shapes differ.

    Example:

    >>> scores = regression_scores([1.0, 2.0, 3.0], [1.0, 4.0, 9.0])
    >>> round(scores.pearson, 4), round(scores.spearman, 4), round(scores.mean_squared_error, 4)
    (0.9897, 1.0, 13.3333)
    """
    labels, predictions = (array.astype(np.float64) for array in _check_pair(labels, predictions))
    return RegressionScores(
        pearson=_pearson(labels, predictions),
        spearman=_pearson(_ranks(labels), _ranks(predictions)),
        mean_squared_error=float(np.mean(np.square(predictions - labels))),
    )


def _check_pair(labels: ArrayLike, predictions: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    if labels.ndim != 1 or labels.shape != predictions.shape or not labels.size:
        raise ValueError(
            "`labels` and `predictions` must be non-empty lists of equal length. Received: shapes "
            f"{labels.shape} and {predictions.shape}."
        )
    return labels, predictions


def _confusion(labels: np.ndarray, predictions: np.ndarray) -> np.ndarray:
    for name, array in (("labels", labels), ("predictions", predictions)):
        if array.dtype.kind not in "iu" or array.min() < 0:
            raise ValueError(
                f"`{name}` must be classes, integers of at least 0. Received: dtype={array.dtype}, minimum "
                f"{array.min()}; take the argmax of logits first."
            )
    size = max(int(labels.max()), int(predictions.max()), 1) + 1
    counts = np.bincount(labels.astype(np.int64) * size + predictions.astype(np.int64), minlength=size * size)
    return counts.reshape(size, size)  # [C labelled, C predicted]


def _matthews(confusion: np.ndarray) -> float:
    total, right = confusion.sum(), np.trace(confusion)
    labelled, predicted = confusion.sum(axis=1), confusion.sum(axis=0)
    spread = float(total**2 - predicted @ predicted) * float(total**2 - labelled @ labelled)
    return float(right * total - labelled @ predicted) / spread**0.5 if spread else 0.0


def _pearson(left: np.ndarray, right: np.ndarray) -> float:
    if np.ptp(left) == 0 or np.ptp(right) == 0:
        return float("nan")
    left, right = left - left.mean(), right - right.mean()
    # Normalised separately, so that very small and very large values neither underflow nor overflow.
    return float((left / np.linalg.norm(left)) @ (right / np.linalg.norm(right)))


def _ranks(values: np.ndarray) -> np.ndarray:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2.0)[inverse]


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Cosine similarities of embeddings float [B, D]: [B], from -1 to 1; 0 where one is zero."""
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return (first * second).sum(axis=1) / np.maximum(lengths, 1e-12)
