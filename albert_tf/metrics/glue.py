"""Scores of the GLUE tasks and of multiple choice: accuracy, F1, Matthews, Pearson and Spearman, in float64 NumPy.

Letters: C classes.
"""

import collections
import dataclasses
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from albert_tf.metrics.labels import LabelScores


@dataclasses.dataclass(frozen=True)
class ClassificationScores:
    """Scores of predicted classes.

    Args:
        accuracy: float. Fraction of correct predictions.
        f1: float or None. F1 of `positive_label`; None if there are more than two classes.
        f1_macro: float. Mean F1 of the classes that occur in labels or predictions.
        matthews: float. Matthews correlation coefficient, in Gorodkin's form for more than two classes; 0 if labels or
            predictions are all of one class.
        positive_label: str or None. Name of the class that `f1` is of.
        by_label: scores of each class by its name.
        confusion: for the name of each class that has examples, how many of them are predicted as which class.
    """

    accuracy: float
    f1: float | None
    f1_macro: float
    matthews: float
    positive_label: str | None = None
    by_label: dict[str, LabelScores] = dataclasses.field(default_factory=dict)
    confusion: dict[str, dict[str, int]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class RegressionScores:
    """Scores of predicted numbers.

    Args:
        pearson: float. Linear correlation; NaN if labels or predictions are constant, or one is not finite.
        spearman: float. Linear correlation of ranks; ties have their mean rank. NaN if labels or predictions are
            constant, or one is NaN.
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
        by_label: scores of each label by its name.
    """

    f1_micro: float
    f1_macro: float
    exact_match: float
    by_label: dict[str, LabelScores] = dataclasses.field(default_factory=dict)


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


def multi_label_scores(
    labels: ArrayLike, predictions: ArrayLike, names: Sequence[str] | None = None
) -> MultiLabelScores:
    """Scores predicted sets of labels.

    Args:
        labels: 0 or 1 for each example and label, [N, C].
        predictions: 0 or 1, of the same shape.
        names: of the labels; None: their numbers.

    Raises:
        ValueError: there are no examples, or the shapes differ.

    Example:

    >>> scores = multi_label_scores([[1, 0], [1, 1]], [[1, 0], [0, 1]], ["law", "war"])
    >>> scores.f1_micro, scores.exact_match, scores.by_label["law"].recall
    (0.8, 0.5, 0.5)
    """
    labels, predictions = np.asarray(labels).astype(bool), np.asarray(predictions).astype(bool)
    if labels.ndim != 2 or labels.shape != predictions.shape or not labels.size:
        raise ValueError(
            "`labels` and `predictions` must be non-empty tables of equal size. Received: shapes "
            f"{labels.shape} and {predictions.shape}."
        )
    right, predicted, labelled = (table.sum(axis=0) for table in (labels & predictions, predictions, labels))
    named = labelled + predicted  # [C], as the others
    occurs = named > 0
    return MultiLabelScores(
        f1_micro=float(2 * right.sum() / max(named.sum(), 1)),
        f1_macro=float((2 * right[occurs] / named[occurs]).mean()) if occurs.any() else 0.0,
        exact_match=float((labels == predictions).all(axis=1).mean()),
        by_label=_by_label(_names(names, labels.shape[1]), right, predicted, labelled),
    )


def best_threshold(labels: ArrayLike, probabilities: ArrayLike, default: float = 0.5, min_positives: int = 10) -> float:
    """The threshold with the best F1 of decisions whose probabilities are above it.

    Args:
        labels: 0 or 1 for each decision, of any shape.
        probabilities: of the decisions, of the same shape.
        default: returned if none is better, or if fewer than `min_positives` labels are 1, which tell too little.
        min_positives: see `default`.

    Returns:
        A number from 0 to 1, halfway between two probabilities, or the lower one of two float32 neighbours; of equally
        good ones that next to `default`.

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
    above, below = ranked[:-1][f1 == f1.max()], ranked[1:][f1 == f1.max()]
    thresholds = (above + below) / 2
    # Decisions are made in float32, where half a number more may be the next one.
    thresholds = np.where(thresholds.astype(np.float32) < above, thresholds, below)
    return float(thresholds[np.abs(thresholds - default).argmin()])


def classification_scores(
    labels: ArrayLike, predictions: ArrayLike, names: Sequence[str] | None = None, positive_label: str | None = None
) -> ClassificationScores:
    """Scores predicted classes.

    Args:
        labels: integers, one per example; classes are 0 to C - 1.
        predictions: integers of the same shape.
        names: of the C classes; None: their numbers, up to the largest of labels and predictions and at least 1.
        positive_label: name of the class that `f1` is of, see `f1_label`.

    Raises:
        ValueError: there are no examples, the shapes differ, a class is not a non-negative integer or has no name, or
            `positive_label` is not the name of one of two classes.

    Example:

    >>> scores = classification_scores([0, 0, 1, 1], [0, 1, 1, 1], ["bad", "good"])
    >>> scores.accuracy, scores.f1, scores.positive_label, scores.f1_macro, scores.matthews
    (0.75, 0.8, 'good', 0.7333333333333334, 0.5773502691896258)
    >>> scores.by_label["bad"]
    LabelScores(precision=1.0, recall=0.5, f1=0.6666666666666666, examples=2)
    >>> scores.confusion
    {'bad': {'bad': 1, 'good': 1}, 'good': {'good': 2}}
    """
    labels, predictions = _check_classes(labels, predictions)
    size = int(max(labels.max(), predictions.max(), 1)) + 1
    names = _names(names, size)
    positive_label = f1_label(names, positive_label)
    right, labelled, predicted = (
        np.bincount(array, minlength=len(names)) for array in (labels[labels == predictions], labels, predictions)
    )  # [C] each
    occurs = labelled + predicted > 0
    f1 = 2.0 * right / np.maximum(labelled + predicted, 1)
    return ClassificationScores(
        accuracy=float(right.sum() / len(labels)),
        f1=None if positive_label is None else float(f1[names.index(positive_label)]),
        f1_macro=float(f1[occurs].mean()),
        matthews=_matthews(right, labelled, predicted),
        positive_label=positive_label,
        by_label=_by_label(names, right, predicted, labelled),
        confusion=_confusion(names, labels, predictions),
    )


def f1_label(names: Sequence[str], positive_label: str | None = None) -> str | None:
    """The label that F1 is of: by default the second of two; None if there are more.

    Raises:
        ValueError: `positive_label` is not one of two labels.

    Example:

    >>> f1_label(["bad", "good"]), f1_label(["bad", "good"], "bad"), f1_label(["bad", "fair", "good"])
    ('good', 'bad', None)
    """
    if positive_label is None:
        return names[1] if len(names) == 2 else None
    if len(names) != 2 or positive_label not in names:
        received = f"Received: {positive_label!r} for {len(names)} labels, {', '.join(map(repr, names[:8]))}."
        raise ValueError(f"`positive_label` must be one of two labels. {received}")
    return positive_label


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


def _check_classes(labels: ArrayLike, predictions: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    labels, predictions = _check_pair(labels, predictions)
    for name, array in (("labels", labels), ("predictions", predictions)):
        if array.dtype.kind not in "iu" or array.min() < 0:
            raise ValueError(
                f"`{name}` must be classes, integers of at least 0. Received: dtype={array.dtype}, minimum "
                f"{array.min()}; take the argmax of logits first."
            )
    return labels.astype(np.int64), predictions.astype(np.int64)


def _names(names: Sequence[str] | None, size: int) -> list[str]:
    if names is None:
        return [str(number) for number in range(size)]
    if len(names) < size:
        raise ValueError(f"`names` must have a name for each of {size} classes. Received: {len(names)} names.")
    return list(names)


def _by_label(
    names: Sequence[str], right: np.ndarray, predicted: np.ndarray, labelled: np.ndarray
) -> dict[str, LabelScores]:
    counts = zip(right.tolist(), predicted.tolist(), labelled.tolist())
    return {name: LabelScores.of(*each) for name, each in zip(names, counts)}


def _confusion(names: Sequence[str], labels: np.ndarray, predictions: np.ndarray) -> dict[str, dict[str, int]]:
    """Only pairs that occur: there may be thousands of classes."""
    pairs, counts = np.unique(labels * len(names) + predictions, return_counts=True)
    confusion: dict[str, dict[str, int]] = {}
    for pair, count in zip(map(int, pairs), counts.tolist()):
        label, prediction = divmod(pair, len(names))
        confusion.setdefault(names[label], {})[names[prediction]] = count
    return confusion


def _matthews(right: np.ndarray, labelled: np.ndarray, predicted: np.ndarray) -> float:
    total = labelled.sum()
    spread = float(total**2 - predicted @ predicted) * float(total**2 - labelled @ labelled)
    return float(right.sum() * total - labelled @ predicted) / spread**0.5 if spread else 0.0


def undefined_correlation(labels: np.ndarray, predictions: np.ndarray) -> str | None:
    """Why predictions have no correlation with labels, a part of a sentence; None if they have one.

    Example:

    >>> undefined_correlation(np.array([3.0, 3.0]), np.array([1.0, 2.0]))
    'all labels are 3'
    """
    for name, values in (("labels", labels), ("predictions", predictions)):
        if bad := int(np.count_nonzero(~np.isfinite(values))):
            return f"{bad:,} of {len(values):,} {name} are not finite"
        if np.ptp(values) == 0:
            return f"all {name} are {values[0]:g}"
    return None


def _pearson(left: np.ndarray, right: np.ndarray) -> float:
    if undefined_correlation(left, right):
        return float("nan")
    left, right = left - left.mean(), right - right.mean()
    # Normalised separately, so that very small and very large values neither underflow nor overflow.
    return float((left / np.linalg.norm(left)) @ (right / np.linalg.norm(right)))


def _ranks(values: np.ndarray) -> np.ndarray:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2.0)[inverse]
    return np.where(np.isnan(values), np.nan, ranks)


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Cosine similarities of embeddings float [B, D]: [B], from -1 to 1; 0 where one is zero."""
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return (first * second).sum(axis=1) / np.maximum(lengths, 1e-12)
