"""Labels of texts and of pairs of texts, and regression.

Letters: B texts, C labels, K labels of a text.
"""

import itertools
from collections.abc import Iterator

import numpy as np

from albert_tf.data.finetuning.encoded import EncodedTexts, encode_texts
from albert_tf.inference.network import Computed, collect
from albert_tf.inference.predictions import ClassPrediction, LabelsPrediction
from albert_tf.inference.tasks.base import (
    NUMBER,
    STRING,
    TensorSpec,
    TextTask,
    as_bytes,
    log_softmax,
    padded_bytes,
    softmax,
)


class TextClassification(TextTask):
    """One prediction for each text or pair, whose end is cut off where it is too long, or which is read in windows."""

    def __init__(self, tokenizer, settings):
        super().__init__(tokenizer, settings)
        self.reads_windows = settings.windows is not None
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
        options = {"windows": self.reads_windows, "doc_stride": self.settings.doc_stride}
        return encode_texts(self.tokenizer, texts[0], pairs, self.settings.max_length, **options)

    def decode(self, encoded, computed):
        logits = logits_of_texts(encoded, computed, self.settings.windows, self.settings.problem)  # [B, C]
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


def logits_of_texts(
    encoded: EncodedTexts, computed: Iterator[Computed], windows: str | None, problem: str
) -> np.ndarray:
    """The logits of B texts, float32 [B, C], from those of their rows.

    Where one label is chosen, the logits of a window are first normalised to logarithms of probabilities, because they
    are only known but for a constant.

    Args:
        encoded: EncodedTexts.
        computed: the outputs of all batches.
        windows: how those of the windows of a text are joined, see Settings; None: each text has one row.
        problem: see Settings.
    """
    logits = collect(computed, "logits", len(encoded))  # [rows, C]
    if windows is None or encoded.text is None:
        return logits
    if problem == "classification":
        logits = log_softmax(logits)
    first = np.flatnonzero(np.diff(encoded.text, prepend=-1))
    if windows == "max":
        return np.maximum.reduceat(logits, first)
    counts = np.diff(first, append=len(logits)).astype(logits.dtype)
    return np.add.reduceat(logits, first) / counts[:, None]


def probabilities_of(logits: np.ndarray, problem: str) -> np.ndarray:
    """The probabilities of labels, float32 [B, C]; they add up to 1 unless a text may have several labels."""
    if problem == "multi_label":
        with np.errstate(over="ignore"):  # of large negative logits
            return 1 / (1 + np.exp(-logits))
    return softmax(logits)
