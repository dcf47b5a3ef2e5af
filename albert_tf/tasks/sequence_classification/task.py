"""Labels of texts and of pairs of texts, and regression.

Letters: N examples, B texts, C labels, K labels of a text, L sequence.
"""

import dataclasses
import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from albert_tf.data.finetuning.classification import LabelledTexts, read_texts
from albert_tf.data.finetuning.encoded import EncodedTexts, check_pairs, encode_texts
from albert_tf.files.origins import name_of
from albert_tf.metrics.glue import best_threshold, f1_label
from albert_tf.tasks.learned import LabelledRows, LearnedTask
from albert_tf.tasks.outputs import NUMBER, STRING, Computed, TensorSpec, as_bytes, check_labels, collect, padded_bytes
from albert_tf.tasks.predictions import ClassPrediction, LabelsPrediction
from albert_tf.tasks.sequence_classification.evaluation import (
    SCORES,
    LabelEvaluation,
    probabilities_of,
    write_predictions,
)
from albert_tf.tasks.sequence_classification.settings import DEFAULT_THRESHOLD, ClassificationSettings, thresholds_of


class TextClassification(LearnedTask[ClassificationSettings]):
    """One prediction for each text or pair, whose end is cut off where it is too long, or which is read in windows."""

    settings_class = ClassificationSettings
    predictions_file = "dev_predictions.tsv"

    def __init__(self, tokenizer, settings):
        super().__init__(tokenizer, settings)
        self.reads_windows = settings.windows is not None
        self.inputs = ("text", "text_pair") if settings.takes_pairs else ("text",)

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes in order of their ids."""
        return self.settings.labels or ()

    def encode(self, *texts):
        check_pairs(self.settings.takes_pairs, len(texts) > 1)
        first, second = texts if len(texts) > 1 else (*texts, None)
        if second is not None:
            self.settings.changed(pair_column="text_pair")  # raises with `windows`
        return self._encode(first, second)

    def rows(self, data: LabelledTexts) -> EncodedTexts:
        return self._encode(data.texts, data.pairs)

    def _encode(self, texts: Any, pairs: Any) -> EncodedTexts:
        options = {"windows": self.reads_windows, "doc_stride": self.settings.doc_stride}
        return encode_texts(self.tokenizer, texts, pairs, self.max_length, **options)

    def decode(self, encoded, computed):
        logits = self._logits(encoded, computed)  # [B, C]
        if self.settings.problem == "regression":
            return [ClassPrediction(None, float(value), {}) for value in logits[:, 0]]
        labels, probabilities = self.labels, probabilities_of(logits, self.settings.problem)
        check_labels(labels, logits)
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
        probabilities = TensorSpec(NUMBER, (None, len(self.labels)))
        if self.settings.problem == "multi_label":
            return {"labels": TensorSpec(STRING, (None, None)), "probabilities": probabilities}
        return {"label": TensorSpec(STRING, (None,)), **score, "probabilities": probabilities}

    @property
    def main_score(self) -> str:
        """The score that decides which weights are kept; by default accuracy, micro F1 or Pearson's correlation.

        Raises:
            ValueError: the problem has no such score.
        """
        name, problem = self.settings.main_score, self.settings.problem
        kind, default = SCORES[problem]
        if name is None:
            return default
        known = [field.name for field in dataclasses.fields(kind) if field.type in (float, float | None)]
        if name not in known:
            raise ValueError(f"`main_score` must be one of {', '.join(known)} for {problem}. Received: {name!r}.")
        return name

    def read(self, path):
        return read_texts(path, self.settings.columns, self.settings.table)

    def keys(self, data):
        return zip(data.texts, data.texts if data.pairs is None else data.pairs)

    def model_arguments(self, train):
        name = self.main_score
        if self.settings.problem == "regression":
            return {"num_labels": 1, "problem": "regression", "labels": None}
        names = train.label_names() if self.settings.labels is None else self.settings.labels
        if isinstance(self.settings.threshold, dict):
            thresholds_of(self.settings.threshold, names)  # raises
        if len(names) < (1 if self.settings.problem == "multi_label" else 2):
            raise ValueError(f"A classifier must have at least two labels. Received: {list(names)} for {train.source}.")
        if self.settings.problem == "classification" and len(names) > max(20, len(train) // 2):
            warnings.warn(
                f"{name_of(train.source)} has {len(names):,} different labels in {len(train):,} rows; "
                f"{self.settings.label_column!r} looks like the wrong column: set `label_column` (--label-column).",
                stacklevel=2,
            )
        if name == "f1" and len(names) != 2:
            raise ValueError(f"`main_score` must not be 'f1' for {len(names)} classes; use 'f1_macro'. Received: 'f1'.")
        f1_label(names, self.settings.positive_label)  # raises an error if it is not one of two
        return {"problem": self.settings.problem, "labels": names, "label_smoothing": self.settings.label_smoothing}

    def training_examples(self, train: LabelledTexts) -> LabelledRows:
        """Tokenizes texts; each window of a long one is an example."""
        encoded, targets, weights = self.rows(train), self._targets(train), None
        targets = targets if encoded.text is None else targets[encoded.text]
        labels, by_class = self.labels, self.settings.class_weights
        if isinstance(by_class, dict):
            if unknown := sorted(by_class.keys() - set(labels)):
                raise ValueError(
                    f"`class_weights` must be of labels of the model, {', '.join(map(repr, labels))}. Received: "
                    f"{', '.join(map(repr, unknown))}."
                )
            weights = np.array([by_class.get(label, 1.0) for label in labels], np.float32)[targets]
        elif by_class == "balanced":
            counts = np.bincount(targets, minlength=len(labels))
            weights = (len(targets) / (np.count_nonzero(counts) * np.maximum(counts, 1))).astype(np.float32)[targets]
        return LabelledRows(encoded, targets, weights)

    def _targets(self, texts: LabelledTexts) -> np.ndarray:
        """The labels as targets: class ids int32 [N], decisions float32 [N, C], or float32 [N] for regression."""
        if self.settings.problem == "multi_label":
            return texts.label_decisions(self.labels)
        return texts.label_values() if self.settings.problem == "regression" else texts.label_ids(self.labels)

    def evaluator(self, compute, data):
        targets = self._targets(data)
        f1_label(self.labels, self.settings.positive_label)  # raises an error before texts are computed
        encoded = self.rows(data)

        def evaluate() -> LabelEvaluation:
            return self._evaluation(targets, self._logits(encoded, compute(encoded, shows_progress=True)))

        return evaluate

    def _logits(self, encoded: EncodedTexts, computed: Iterator[Computed]) -> np.ndarray:
        logits = collect(computed, "logits", len(encoded))  # [rows, C]
        return encoded.joined(logits, self.settings.windows, self.settings.problem)

    def _evaluation(self, targets: np.ndarray, logits: np.ndarray) -> LabelEvaluation:
        """The evaluation, of any number of labels with the threshold of the settings or the best one."""
        problem, labels = self.settings.problem, self.labels
        threshold: Any = self.settings.threshold if problem == "multi_label" else None
        if problem == "multi_label" and threshold in (None, "per_label"):
            probabilities = probabilities_of(logits, problem)
            best = best_threshold(targets, probabilities, DEFAULT_THRESHOLD)
            by_label = zip(labels, targets.T, probabilities.T)
            is_one = threshold is None
            threshold = best if is_one else {name: best_threshold(a, b, best) for name, a, b in by_label}
        positive = self.settings.positive_label
        return LabelEvaluation(problem, labels, targets, logits, self.main_score, threshold, positive)

    def write_predictions(self, path, data, evaluation):
        write_predictions(path, data, evaluation)
