"""Multiple-choice questions about passages, as in RACE.

Letters: N questions, C choices, B batch, L sequence.
"""

import dataclasses
import pathlib
import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from albert_tf.data.finetuning.choice_files import read_choices
from albert_tf.data.finetuning.choices import ChoiceQuestion, EncodedChoices, encode_choices
from albert_tf.inference.network import collect
from albert_tf.inference.predictor import Predictor
from albert_tf.metrics import ChoiceScores, ConstantScore
from albert_tf.tokenization import AlbertTokenizer
from albert_tf.trainer.tasks.base import FinetuneTask, write_table

if TYPE_CHECKING:
    # Examples are predicted without Keras and TensorFlow where the model is an ONNX folder.
    from albert_tf.models.base import AlbertBase


class MultipleChoice(FinetuneTask):
    """Questions in RACE's folders or in JSON lines; see `read_choices`."""

    predictions_file = "dev_predictions.tsv"

    @property
    def main_score(self) -> str:
        """Accuracy."""
        return "accuracy"

    def read(self, path: pathlib.Path) -> Sequence[ChoiceQuestion]:
        """Reads a folder or a file."""
        return read_choices(path, True, self.options.table)

    def read_unlabelled(self, path: pathlib.Path) -> Sequence[ChoiceQuestion]:
        """Reads a folder or a file, which may have no labels."""
        return read_choices(path, False, self.options.table)

    def keys(self, data: Sequence[ChoiceQuestion]) -> Iterator[Hashable]:
        """What identifies each example."""
        return ((question.context, question.question) for question in data)

    def model_arguments(self, train: Sequence[ChoiceQuestion]) -> dict[str, Any]:
        """None: the number of choices follows from the inputs."""
        return {}

    def training_examples(
        self, model: "AlbertBase", tokenizer: AlbertTokenizer, train: Sequence[ChoiceQuestion]
    ) -> EncodedChoices:
        """Tokenizes questions."""
        return self._encode(tokenizer, train)

    def evaluator(self, model: Predictor, data: Sequence[ChoiceQuestion]) -> Callable[[], "ChoiceEvaluation"]:
        """Evaluates questions."""
        encoded, groups = self._encode(model.tokenizer, data), [sys.intern(question.group) for question in data]

        def evaluate() -> ChoiceEvaluation:
            logits = collect(model.compute(encoded, shows_progress=True), "logits", len(data))
            return ChoiceEvaluation(groups, encoded.labels, logits)

        return evaluate

    def write_predictions(
        self, path: pathlib.Path, data: Sequence[ChoiceQuestion], evaluation: "ChoiceEvaluation"
    ) -> None:
        """Writes TSV with the columns `question`, `label` if it is known, `prediction` and a logit per choice.

        A SavedModel returns probabilities alone, whose logarithms are written: the logits but for a constant per row.
        """
        header = ["question", "label", "prediction", *(f"logit {n}" for n in range(len(data[0].choices)))]
        labels = ("" if question.label < 0 else question.label for question in data)
        rows = (
            [question.id, label, int(logits.argmax()), *(f"{logit:.6f}" for logit in logits)]
            for question, label, logits in zip(data, labels, evaluation.logits)
        )
        write_table(path, header, rows)

    def _encode(self, tokenizer: AlbertTokenizer, data: Sequence[ChoiceQuestion]) -> EncodedChoices:
        return encode_choices(tokenizer, data, self.max_length, self.options.max_question_length, self.stored_ids)


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
