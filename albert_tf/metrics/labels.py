"""Scores of single labels: precision, recall and F1."""

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class LabelScores:
    """How well one label is predicted.

    Args:
        precision: float or None. Fraction of its predictions that are right; None if it is never predicted.
        recall: float or None. Fraction of its examples that are predicted; None if there are none.
        f1: float or None. The harmonic mean of both, 0 if nothing is right; None if both are None.
        examples: int. Number of examples, or entities, that have the label.
    """

    precision: float | None
    recall: float | None
    f1: float | None
    examples: int

    @classmethod
    def of(cls, right: int, predicted: int, examples: int) -> "LabelScores":
        """The scores for the numbers of right predictions, of predictions, and of examples.

        Example:

        >>> LabelScores.of(right=2, predicted=4, examples=2)
        LabelScores(precision=0.5, recall=1.0, f1=0.6666666666666666, examples=2)
        """
        precision, recall = (right / count if count else None for count in (predicted, examples))
        f1 = 2 * right / (predicted + examples) if predicted + examples else None
        return cls(precision, recall, f1, examples)


def most_frequent(by_label: Mapping[str, LabelScores], count: int) -> list[str]:
    """At most `count` labels: all of them in their order, or else those with the most examples.

    Example:

    >>> counts = {"a": 1, "b": 3, "c": 2}
    >>> most_frequent({name: LabelScores.of(0, 0, examples) for name, examples in counts.items()}, 2)
    ['b', 'c']
    """
    if len(by_label) <= count:
        return list(by_label)
    return sorted(by_label, key=lambda name: -by_label[name].examples)[:count]
