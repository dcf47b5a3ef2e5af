"""A model that gives one label, or one number, to a text or a pair of texts.

Letters: B batch, L sequence.
"""

from collections.abc import Sequence
from typing import Any, Literal

import keras
from keras import ops

from albert_tf.config import AlbertConfig
from albert_tf.layers import ClassificationHead
from albert_tf.models.classifier import NamedClassifier
from albert_tf.models.encoder import AlbertEncoder
from albert_tf.models.losses import weighted_mean

Problem = Literal["classification", "regression"]


@keras.saving.register_keras_serializable("albert_tf")
class AlbertForSequenceClassification(NamedClassifier):
    """The encoder with a head on its pooled output.

    `fit` takes `(inputs, labels)`, labels int [B], or float [B] for regression, and minimises mean cross entropy, or
    mean squared error; `compile(loss=..., metrics=...)` replaces that by losses and metrics on `logits`.

    Args:
        config: AlbertConfig.
        num_labels: int. How many classes; 1 for regression. May be left out where `labels` are given.
        problem: str. `"classification"` or `"regression"`.
        labels: sequence of str. Names of the classes in order of their ids.

    Call arguments:
        inputs: dict as for AlbertEncoder.

    Returns:
        dict: `logits` float32 [B, num_labels].

    Example:

    >>> config = AlbertConfig.from_preset("tiny")
    >>> model = AlbertForSequenceClassification(config, labels=["bad", "good"])
    >>> model.num_labels
    2

    References:
        `classifier_utils.py` (create_model) of google-research/albert.
    """

    architecture = "AlbertForSequenceClassification"

    def __init__(
        self,
        config: AlbertConfig,
        num_labels: int | None = None,
        problem: Problem = "classification",
        labels: Sequence[str] | None = None,
        **kwargs,
    ):
        if _checked_problem(problem) == "regression" and num_labels is None and not labels:
            num_labels = 1
        super().__init__(config, num_labels, labels, **kwargs)
        if problem == "regression" and self.num_labels != 1:
            raise ValueError(f"`num_labels` must be 1 for regression. Received: num_labels={self.num_labels}.")
        self.problem = problem
        self.encoder = AlbertEncoder(config, name="encoder", dtype=self.dtype_policy)
        self.classifier = ClassificationHead(
            config, self.num_labels, config.classifier_dropout_prob, name="classifier", dtype=self.dtype_policy
        )
        self.build_parts(self.encoder, self.classifier)

    def call(self, inputs, training=False):
        pooled_output = self.encoder(inputs, training=training)["pooled_output"]
        return {"logits": self.classifier(pooled_output, training=training)}

    def loss_terms(self, y, outputs, sample_weight=None):
        if self.problem != "regression":
            return super().loss_terms(y, outputs, sample_weight)
        error = ops.reshape(outputs["logits"], (-1,)) - ops.cast(ops.reshape(y, (-1,)), "float32")
        return {"mean_squared_error": weighted_mean(error * error, sample_weight)}

    def reported_terms(self):
        return ("mean_squared_error",) if self.problem == "regression" else super().reported_terms()

    def metric_terms(self, y, outputs, sample_weight=None):
        return {} if self.problem == "regression" else super().metric_terms(y, outputs, sample_weight)

    def get_config(self):
        return {**super().get_config(), "problem": self.problem}

    def head_settings(self) -> dict[str, Any]:
        kind = "regression" if self.problem == "regression" else "single_label_classification"
        return {**super().head_settings(), "problem_type": kind}

    @classmethod
    def settings_from_file(cls, settings):
        named = super().settings_from_file(settings)
        problem = "regression" if settings.get("problem_type") == "regression" else "classification"
        return {**named, "problem": problem} if named else {}


def _checked_problem(problem: str) -> Problem:
    if problem not in ("classification", "regression"):
        raise ValueError(f"`problem` must be 'classification' or 'regression'. Received: problem={problem!r}.")
    return problem
