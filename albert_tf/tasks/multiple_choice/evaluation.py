"""Scores of chosen answers.

Letters: N questions, C choices.
"""

import dataclasses

import numpy as np

from albert_tf.metrics import ChoiceScores, ConstantScore


@dataclasses.dataclass(frozen=True)
class ChoiceEvaluation:
    """Labels and scores of questions.

    Attributes:
        groups: name of the group of each question.
        labels: int32 [N].
        logits: float32 [N, C].
    """

    groups: list[str]
    labels: np.ndarray
    logits: np.ndarray

    @property
    def scores(self) -> ChoiceScores:
        """Accuracy of all questions and of each group."""
        is_right = self.logits.argmax(axis=1) == self.labels
        groups = sorted({group for group in self.groups if group})
        accuracies = {group: float(np.mean(is_right[[other == group for other in self.groups]])) for group in groups}
        return ChoiceScores(float(is_right.mean()), accuracies)

    @property
    def main_score(self) -> float:
        """Accuracy."""
        return self.scores.accuracy

    @property
    def is_constant(self) -> bool:
        """Whether the same place is chosen for all questions."""
        return len(set(self.logits.argmax(axis=1).tolist())) == 1

    @property
    def notes(self) -> list[str]:
        """Whether the position of the right answer is always the same."""
        if self.constant_score.value < 1:
            return []
        return ["All questions have the right answer at the same position, so that the scores tell little."]

    @property
    def constant_score(self) -> ConstantScore:
        """Accuracy of the most frequent position of the right answer."""
        return ConstantScore.of_labels(self.labels.tolist(), "accuracy of the most frequent position")
