"""A model that gives one label, or one number, to a text or a pair of texts.

Letters: B batch, L sequence.
"""

from collections.abc import Sequence
from typing import Any, Literal

import keras
from keras import ops

from albert_tf.config import AlbertConfig
from albert_tf.layers import PooledHead
from albert_tf.models.base import AlbertModel
from albert_tf.models.encoder import AlbertEncoder
from albert_tf.models.losses import correct, cross_entropy, weighted_mean

Problem = Literal["classification", "regression"]


@keras.saving.register_keras_serializable("albert_tf")
class AlbertForSequenceClassification(AlbertModel):
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
        super().__init__(config, **kwargs)
        self.problem = _checked_problem(problem)
        self.num_labels = _count_labels(num_labels, labels, problem)
        self.labels = tuple(labels) if labels else tuple(f"LABEL_{i}" for i in range(self.num_labels))
        self.encoder = AlbertEncoder(config, name="encoder", dtype=self.dtype_policy)
        self.classifier = PooledHead(
            config, self.num_labels, config.classifier_dropout_prob, name="classifier", dtype=self.dtype_policy
        )
        self.build_parts(self.encoder, self.classifier)

    def call(self, inputs, training=False):
        pooled_output = self.encoder(inputs, training=training)["pooled_output"]
        return {"logits": self.classifier(pooled_output, training=training)}

    def loss_terms(self, y, outputs, sample_weight=None):
        if self.problem == "regression":
            error = ops.reshape(outputs["logits"], (-1,)) - ops.cast(ops.reshape(y, (-1,)), "float32")
            return {"mean_squared_error": weighted_mean(error * error, sample_weight)}
        losses = cross_entropy(ops.reshape(y, (-1,)), outputs["logits"])
        return {"cross_entropy": weighted_mean(losses, sample_weight)}

    def reported_terms(self):
        return ("mean_squared_error",) if self.problem == "regression" else ("cross_entropy", "accuracy")

    def metric_terms(self, y, outputs, sample_weight=None):
        if self.problem == "regression":
            return {}
        return {"accuracy": weighted_mean(correct(ops.reshape(y, (-1,)), outputs["logits"]), sample_weight)}

    def get_config(self):
        own = {"num_labels": self.num_labels, "problem": self.problem, "labels": list(self.labels)}
        return {**super().get_config(), **own}

    def head_settings(self) -> dict[str, Any]:
        kind = "regression" if self.problem == "regression" else "single_label_classification"
        id2label = {str(number): label for number, label in enumerate(self.labels)}
        label2id = {label: number for number, label in enumerate(self.labels)}
        return {"id2label": id2label, "label2id": label2id, "problem_type": kind}

    @classmethod
    def settings_from_file(cls, settings):
        labels = [settings["id2label"][key] for key in sorted(settings.get("id2label", {}), key=int)]
        problem = "regression" if settings.get("problem_type") == "regression" else "classification"
        return {"labels": labels, "problem": problem} if labels else {}


def _checked_problem(problem: str) -> Problem:
    if problem not in ("classification", "regression"):
        raise ValueError(f"`problem` must be 'classification' or 'regression'. Received: problem={problem!r}.")
    return problem


def _count_labels(num_labels: int | None, labels: Sequence[str] | None, problem: str) -> int:
    count = num_labels if num_labels is not None else len(labels or ()) or (1 if problem == "regression" else None)
    if count is None:
        raise ValueError("`num_labels` or `labels` must be given. Received: neither; say how many classes there are.")
    if labels and len(labels) != count:
        raise ValueError(
            f"`labels` must name `num_labels` classes. Received: num_labels={num_labels}, labels={list(labels)}."
        )
    if problem == "regression" and count != 1:
        raise ValueError(f"`num_labels` must be 1 for regression. Received: num_labels={count}.")
    return count
