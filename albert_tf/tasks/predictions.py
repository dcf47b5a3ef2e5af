"""Predictions for texts.

Letters: K best pieces.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class ClassPrediction:
    """Prediction of a classifier for one text, which has one label or a number.

    Attributes:
        label: the most probable label; None for regression.
        score: its probability, or the predicted number.
        probabilities: by name of the label; empty for regression.
    """

    label: str | None
    score: float
    probabilities: dict[str, float]


@dataclasses.dataclass(frozen=True)
class LabelsPrediction:
    """Prediction of a classifier for one text, which may have any number of labels.

    Attributes:
        labels: those whose probability is above their threshold, in the order of the model's labels; may be empty.
        probabilities: of all labels by name, which do not add up to 1.
    """

    labels: list[str]
    probabilities: dict[str, float]


@dataclasses.dataclass(frozen=True)
class MaskPrediction:
    """Candidates for one [MASK], most probable first: K pieces ("▁" begins a word) and their probabilities."""

    pieces: tuple[str, ...]
    probabilities: tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class AnswerPrediction:
    """The answer to a question.

    Attributes:
        text: the text in the passage; "" if the model finds no answer there.
        start, end: where it is in the passage, in characters, `end` exclusive; -1 without an answer.
        score: probability of the best answer's start times that of its end.
        null_odds: high if the passage has no answer; only differences between questions count.
    """

    text: str
    start: int
    end: int
    score: float
    null_odds: float


@dataclasses.dataclass(frozen=True)
class Entity:
    """A labelled span of a text: start and exclusive end in characters, and the mean probability of its tags."""

    label: str
    text: str
    start: int
    end: int
    score: float
