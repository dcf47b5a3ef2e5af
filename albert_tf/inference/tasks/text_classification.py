"""Labels of texts and of pairs of texts, and regression.

Letters: B texts, C labels, K labels of a text.
"""

import itertools

import numpy as np

from albert_tf.data.finetuning.encoded import encode_texts
from albert_tf.inference.network import collect
from albert_tf.inference.predictions import ClassPrediction, LabelsPrediction
from albert_tf.inference.tasks.base import NUMBER, STRING, TensorSpec, TextTask, as_bytes, padded_bytes, softmax


class TextClassification(TextTask):
    """One prediction for each text or pair, whose end is cut off where it is too long."""

    def __init__(self, tokenizer, settings):
        super().__init__(tokenizer, settings)
        self.inputs = ("text", "text_pair") if settings.takes_pairs else ("text",)

    def encode(self, *texts):
        if len(texts) != len(self.inputs):
            if self.settings.takes_pairs:
                raise ValueError(
                    "The classifier was trained on pairs of texts, but received single texts; give the second text of "
                    "each as its pair (`--pair`)."
                )
            raise ValueError("The classifier was trained on single texts, but received pairs; leave out the second.")
        pairs = texts[1] if self.settings.takes_pairs else None
        return encode_texts(self.tokenizer, texts[0], pairs, self.settings.max_length)

    def decode(self, encoded, computed):
        logits = collect(computed, "logits", len(encoded))  # [B, C]
        if self.settings.problem == "regression":
            return [ClassPrediction(None, float(value), {}) for value in logits[:, 0]]
        self.check_labels(logits)
        labels, probabilities = self.settings.labels, probabilities_of(logits, self.settings.problem)
        if self.settings.problem == "multi_label":
            return [
                LabelsPrediction([*itertools.compress(labels, decisions)], dict(zip(labels, row.tolist())))
                for decisions, row in zip(probabilities > self.settings.thresholds, probabilities)
            ]
        return [
            ClassPrediction(labels[row.argmax()], float(row.max()), dict(zip(labels, row.tolist())))
            for row in probabilities
        ]

    def arrays(self, predictions):
        probabilities = np.array([[*prediction.probabilities.values()] for prediction in predictions], np.float32)
        if self.settings.problem == "multi_label":
            return {
                "labels": padded_bytes([prediction.labels for prediction in predictions]),
                "probabilities": probabilities,
            }
        scores = {"score": np.array([prediction.score for prediction in predictions], np.float32)}
        if self.settings.problem == "regression":
            return scores
        labels = as_bytes([prediction.label for prediction in predictions])
        return {"label": labels, **scores, "probabilities": probabilities}

    def specs(self, width):
        score = {"score": TensorSpec(NUMBER, (None,))}
        if self.settings.problem == "regression":
            return score
        probabilities = TensorSpec(NUMBER, (None, len(self.settings.labels)))
        if self.settings.problem == "multi_label":
            return {"labels": TensorSpec(STRING, (None, None)), "probabilities": probabilities}
        return {"label": TensorSpec(STRING, (None,)), **score, "probabilities": probabilities}


def probabilities_of(logits: np.ndarray, problem: str) -> np.ndarray:
    """The probabilities of labels, float32 [B, C]; they add up to 1 unless a text may have several labels."""
    if problem == "multi_label":
        with np.errstate(over="ignore"):  # of large negative logits
            return 1 / (1 + np.exp(-logits))
    return softmax(logits)
