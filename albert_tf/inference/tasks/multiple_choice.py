"""The best of several choices.

Letters: B questions, C choices.
"""

import numpy as np

from albert_tf.data.finetuning.choices import ChoiceQuestion, encode_choices
from albert_tf.inference.network import collect
from albert_tf.inference.tasks.base import INTEGER, NUMBER, TensorSpec, TextTask, softmax


class MultipleChoice(TextTask):
    """Probabilities of the choices that complete each passage, float32 [C]; a choice is a whole statement."""

    inputs = ("context", "choices")

    def encode(self, *texts):
        contexts, choices = texts
        if len({len(row) for row in choices}) != 1:
            counts = ", ".join(str(len(row)) for row in choices[:5])
            raise ValueError(f"Rows of `choices` must be of the same length. Received: rows of {counts} choices.")
        questions = [ChoiceQuestion("", context, "_", tuple(row), -1) for context, row in zip(contexts, choices)]
        options = self.settings.options("max_question_length")
        return encode_choices(self.tokenizer, questions, self.settings.max_length, **options)

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
