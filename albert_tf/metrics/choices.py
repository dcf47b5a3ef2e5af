"""Scores of multiple-choice questions."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class ChoiceScores:
    """Scores of chosen answers.

    Args:
        accuracy: float. Fraction of questions that are answered correctly.
        accuracy_by_group: of the questions of each group, such as RACE's middle and high schools.
    """

    accuracy: float
    accuracy_by_group: dict[str, float]
