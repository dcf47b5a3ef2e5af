"""The best of several choices, as in RACE.

Letters: N questions, B questions of a batch, C choices.
"""

import sys
from collections.abc import Sequence

import numpy as np

from albert_tf.tasks.learned import LearnedTask, write_table
from albert_tf.tasks.multiple_choice.choices import ChoiceQuestion, EncodedChoices, encode_choices
from albert_tf.tasks.multiple_choice.evaluation import ChoiceEvaluation
from albert_tf.tasks.multiple_choice.files import read_choices
from albert_tf.tasks.multiple_choice.settings import ChoiceSettings
from albert_tf.tasks.outputs import INTEGER, NUMBER, TensorSpec, collect, softmax


class MultipleChoice(LearnedTask[ChoiceSettings]):
    """Probabilities of the choices that complete each passage, float32 [C]; a choice is a whole statement."""

    settings_class = ChoiceSettings
    inputs = ("context", "choices")
    predictions_file = "dev_predictions.tsv"

    def encode(self, *texts):
        contexts, choices = texts
        if len({len(row) for row in choices}) != 1:
            counts = ", ".join(str(len(row)) for row in choices[:5])
            raise ValueError(f"Rows of `choices` must be of the same length. Received: rows of {counts} choices.")
        return self.rows([ChoiceQuestion("", context, "_", tuple(row), -1) for context, row in zip(contexts, choices)])

    def rows(self, data: Sequence[ChoiceQuestion]) -> EncodedChoices:
        return encode_choices(self.tokenizer, data, self.max_length, self.settings.max_question_length)

    def decode(self, encoded, computed):
        return list(softmax(collect(computed, "logits", len(encoded.lengths))))

    def arrays(self, predictions):
        probabilities = np.array(predictions, np.float32)  # [B, C]
        choices = probabilities.argmax(axis=1).astype(np.int32)
        return {"choice": choices, "score": probabilities.max(axis=1), "probabilities": probabilities}

    def specs(self, width):
        return {
            "choice": TensorSpec(INTEGER, (None,)),
            "score": TensorSpec(NUMBER, (None,)),
            "probabilities": TensorSpec(NUMBER, (None, None)),
        }

    @property
    def main_score(self):
        return "accuracy"

    def read(self, path):
        return read_choices(path, True, self.settings.table)

    def read_unlabelled(self, path):
        return read_choices(path, False, self.settings.table)

    def keys(self, data):
        return ((question.context, question.question) for question in data)

    def model_arguments(self, train):
        return {}  # the number of choices follows from the inputs

    def evaluator(self, compute, data):
        encoded, groups = self.rows(data), [sys.intern(question.group) for question in data]

        def evaluate() -> ChoiceEvaluation:
            logits = collect(compute(encoded, shows_progress=True), "logits", len(data))
            return ChoiceEvaluation(groups, encoded.labels, logits)

        return evaluate

    def write_predictions(self, path, data, evaluation):
        """Writes TSV with the columns `question`, `label` if it is known, `prediction` and a logit per choice."""
        header = ["question", "label", "prediction", *(f"logit {n}" for n in range(len(data[0].choices)))]
        labels = ("" if question.label < 0 else question.label for question in data)
        rows = (
            [question.id, label, int(logits.argmax()), *(f"{logit:.6f}" for logit in logits)]
            for question, label, logits in zip(data, labels, evaluation.logits)
        )
        write_table(path, header, rows)
