"""A model that assigns a label or a number to a text or a pair of texts.

Letters: B batch, L sequence.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import keras
from keras import ops

from albert_tf.checkpoints.names import PROBLEM_TYPES
from albert_tf.config import AlbertConfig
from albert_tf.data.finetuning.encoded import IGNORED_LABEL
from albert_tf.layers import ClassificationHead
from albert_tf.models.classifier import NamedClassifier
from albert_tf.models.distillation import Imitation
from albert_tf.models.encoder import AlbertEncoder, with_states
from albert_tf.models.inputs import ENCODER_INPUTS, Field
from albert_tf.models.losses import as_factors, label_loss, weighted_mean

Problem = Literal["classification", "multi_label", "regression"]

_IMITATIONS: dict[str, Imitation] = {"classification": "classes", "multi_label": "decisions", "regression": "numbers"}


@keras.saving.register_keras_serializable("albert_tf")
class AlbertForSequenceClassification(NamedClassifier):
    """The encoder with a head on its pooled output.

    `fit` takes `(inputs, labels)` and minimises the mean loss of the problem; `compile(loss=..., metrics=...)` replaces
    it by losses and metrics on `logits`. With a `preprocessor`, `fit`, `evaluate`, `predict` and methods for one batch
    also take texts or `(texts, pairs)`, in batches of a `tf.data.Dataset` or a PyDataset too, and names of `labels`,
    where a text has several a list of them. `class_weight` takes names or ids, and weighs training alone.

    - `"classification"`, one label per text: labels int [B], cross entropy.
    - `"multi_label"`, any number of labels per text: labels [B, num_labels] of 0 and 1, mean binary cross entropy. The
      reported accuracy is that of the binary decisions.
    - `"regression"`, one number per text: labels float [B], squared error.

    Args:
        config: AlbertConfig.
        num_labels: int. Number of classes, 1 for regression; optional if `labels` is given.
        problem: str. `"classification"`, `"multi_label"` or `"regression"`.
        labels: sequence of str. Class names in order of their ids.
        label_smoothing: float. For classification, the share of a label's probability that the loss spreads evenly
            over all labels, as in `keras.losses.CategoricalCrossentropy`.

    Call arguments:
        inputs: dict as for AlbertEncoder.

    Returns:
        dict: `logits` float32 [B, num_labels].

    Raises:
        ValueError: the problem is unknown, or does not fit the number of labels.

    Example:

    >>> config = AlbertConfig.from_preset("tiny")
    >>> model = AlbertForSequenceClassification(config, labels=["bad", "good"])
    >>> model.num_labels
    2

    References:
        `classifier_utils.py` (create_model) of google-research/albert.
    """

    architecture = "AlbertForSequenceClassification"
    input_fields = ENCODER_INPUTS
    max_columns = 2
    reads_windows = True

    def __init__(
        self,
        config: AlbertConfig,
        num_labels: int | None = None,
        problem: Problem = "classification",
        labels: Sequence[str] | None = None,
        label_smoothing: float = 0.0,
        **kwargs,
    ):
        if problem not in PROBLEM_TYPES:
            raise ValueError(f"`problem` must be one of {tuple(PROBLEM_TYPES)}. Received: problem={problem!r}.")
        if problem == "regression" and num_labels is None and not labels:
            num_labels = 1
        super().__init__(config, num_labels, labels, **kwargs)
        if problem == "regression" and self.num_labels != 1:
            raise ValueError(f"`num_labels` must be 1 for regression. Received: num_labels={self.num_labels}.")
        if problem == "classification" and self.num_labels == 1:
            raise ValueError(
                f"`num_labels` must be at least 2 for classification. Received: labels={list(self.labels)}; pass "
                "problem='regression' to predict a number, or problem='multi_label' for a binary decision."
            )
        if not 0 <= label_smoothing < 1 or (label_smoothing and problem != "classification"):
            raise ValueError(
                "`label_smoothing` must be at least 0 and below 1, and 0 unless problem='classification'. Received: "
                f"label_smoothing={label_smoothing}, problem={problem!r}."
            )
        self.problem, self.label_smoothing = problem, label_smoothing
        self.imitated = {"logits": _IMITATIONS[problem]}
        self.encoder = AlbertEncoder(config, name="encoder", dtype=self.dtype_policy)
        self.classifier = ClassificationHead(
            config, self.num_labels, config.classifier_dropout_prob, name="classifier", dtype=self.dtype_policy
        )
        self.build_parts(self.encoder, self.classifier)

    def label_fields(self):
        if self.problem == "regression":
            return {"labels": Field("B", is_real=True)}
        if self.problem == "multi_label":
            return {"labels": Field("BC", 2)}
        return {"labels": Field("B", "num_labels", ignored=IGNORED_LABEL)}

    def call(self, inputs, training=False, output_hidden_states=False):
        encoded = self.encoder(inputs, training=training, output_hidden_states=output_hidden_states)
        return with_states({"logits": self.classifier(encoded["pooled_output"], training=training)}, encoded)

    def probabilities(self, logits):
        """The probabilities of labels from logits [..., num_labels]; they add up to 1 unless multi_label."""
        return ops.sigmoid(logits) if self.problem == "multi_label" else ops.softmax(logits)

    def loss_terms(self, y, outputs, sample_weight=None):
        logits = outputs["logits"]
        if self.problem == "classification":
            return {"cross_entropy": label_loss(y, logits, sample_weight, self.label_smoothing)}
        if self.problem == "multi_label":
            losses = ops.binary_crossentropy(_decisions(y, logits), logits, from_logits=True)  # [B, C]
            if sample_weight is not None:  # one per row, or one per decision
                losses = losses * as_factors(sample_weight, losses)
            return {"binary_cross_entropy": weighted_mean(ops.mean(losses, axis=-1))}
        error = ops.reshape(logits, (-1,)) - ops.cast(ops.reshape(y, (-1,)), "float32")
        return {"mean_squared_error": weighted_mean(error * error, sample_weight=sample_weight)}

    def reported_terms(self):
        names = {"regression": ("mean_squared_error",), "multi_label": ("binary_cross_entropy", "accuracy")}
        return names.get(self.problem, super().reported_terms())

    def metric_terms(self, y, outputs):
        if self.problem == "classification":
            return super().metric_terms(y, outputs)
        if self.problem == "multi_label":
            right = ops.equal(outputs["logits"] > 0, _decisions(y, outputs["logits"]) > 0.5)  # [B, C]
            return {"accuracy": weighted_mean(ops.mean(ops.cast(right, "float32"), axis=-1))}
        return {}

    def get_config(self):
        return {**super().get_config(), "problem": self.problem, "label_smoothing": self.label_smoothing}

    def head_settings(self) -> dict[str, Any]:
        return {**super().head_settings(), "problem_type": PROBLEM_TYPES[self.problem]}

    @classmethod
    def settings_from_file(cls, settings):
        named, problem = super().settings_from_file(settings), _problem_from_file(settings)
        return {**named, "problem": problem} if named and problem else named

    def other_head(self, checkpoint):
        theirs = _problem_from_file(checkpoint.settings)
        if theirs not in (None, self.problem):
            return f"is for {theirs}, but the model is for {self.problem}"
        return super().other_head(checkpoint)


def _problem_from_file(settings: Mapping[str, Any]) -> str | None:
    """The problem type in a `config.json`, or None."""
    return next((ours for ours, theirs in PROBLEM_TYPES.items() if theirs == settings.get("problem_type")), None)


def _decisions(y, logits):
    """Labels [B, C] of 0 and 1 as float32."""
    if len(y.shape) != 2 or y.shape[1] not in (None, logits.shape[1]):
        raise ValueError(
            f"Labels of a multi_label model must be 0 or 1, of shape [B, {logits.shape[1]}]. Received: "
            f"shape={tuple(y.shape)}."
        )
    return ops.cast(y, "float32")
