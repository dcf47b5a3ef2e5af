"""The model for ALBERT's pretraining objectives: masked language modelling and sentence order.

Letters: B batch, L sequence, P predictions, S examples of a row, V vocabulary.
"""

from typing import Literal

import keras
from keras import ops

from albert_tf.config import AlbertConfig
from albert_tf.layers import ClassificationHead, MaskedLMHead
from albert_tf.models.base import AlbertBase
from albert_tf.models.encoder import AlbertEncoder, with_states
from albert_tf.models.inputs import ENCODER_INPUTS, MASKED_LM_INPUTS, MASKED_LM_LABELS, Field, only
from albert_tf.models.losses import (
    MASKED_LM_EPSILON,
    correct,
    cross_entropy,
    masked_lm_mean,
    weighted_mean,
    weights_for,
)

_OBJECTIVES = ("sentence_order", "next_sentence", "none")


@keras.saving.register_keras_serializable("albert_tf")
class AlbertForPreTraining(AlbertBase):
    """The encoder with both pretraining heads: masked language modelling and sentence order.

    `fit` takes `(inputs, labels)`, labels being a dict of `masked_lm_ids` int [B, P], `masked_lm_weights` float [B, P]
    and `sentence_order_labels` int [B] (0 = in order, 1 = swapped), and minimises the sum of the two mean losses.

    Args:
        config: AlbertConfig.
        objective: the objective of the second head: `"sentence_order"`; `"next_sentence"`, with `next_sentence_labels`
            (0 = in order, 1 = from another document); or `"none"`. Labels, losses and accuracies are named after it,
            logits are always `sentence_order_logits`.

    Call arguments:
        inputs: dict as for AlbertEncoder, and optionally `masked_lm_positions` int [B, P].

    Returns:
        dict: `masked_lm_logits` float32 [B, P, V], or [B, L, V] without positions, and `sentence_order_logits` float32
        [B, 2].

    With packed rows (inputs `example_ids`, `position_ids` and `cls_positions`), sentence-order labels and logits are
    [B, S] and [B, S, 2], and `sentence_order_weights` float [B, S] is 1 for examples and 0 for padding.

    To read the model in the order of a step: `call` below; `models/encoder.py`; of `layers`, `embeddings.py`,
    `transformer_block.py` with its halves in `attention.py` and `feed_forward.py`, `kernels/plain.py` for their
    arithmetic, and `heads.py`; `loss_terms` below, with the means of `models/losses.py`; and `_forward_and_backward` of
    `training_step/step.py`, which adds these up and trains.

    References:
        ALBERT sections 3.1 and 4.1; `run_pretraining.py` of google-research/albert.
    """

    architecture = "AlbertForPreTraining"
    input_fields = MASKED_LM_INPUTS

    def __init__(
        self,
        config: AlbertConfig,
        objective: Literal["sentence_order", "next_sentence", "none"] = "sentence_order",
        **kwargs,
    ):
        super().__init__(config, **kwargs)
        if objective not in _OBJECTIVES:
            raise ValueError(f"`objective` must be one of {_OBJECTIVES}. Received: objective={objective!r}.")
        self.objective = objective
        self.encoder = AlbertEncoder(config, name="encoder", dtype=self.dtype_policy)
        self.masked_lm = MaskedLMHead(config, name="masked_lm", dtype=self.dtype_policy)
        self.sentence_order = ClassificationHead(config, num_outputs=2, name="sentence_order", dtype=self.dtype_policy)
        self.build_parts(self.encoder, self.masked_lm, self.sentence_order)

    def label_fields(self):
        if self.objective == "none":
            return MASKED_LM_LABELS
        labels, weights = f"{self.objective}_labels", f"{self.objective}_weights"
        return {**MASKED_LM_LABELS, labels: Field("BS", 2), weights: Field("BS", is_real=True, optional=True)}

    def call(self, inputs, training=False, output_hidden_states=False):
        encoded = self.encoder(
            only(ENCODER_INPUTS, inputs), training=training, output_hidden_states=output_hidden_states
        )
        table, positions = self.encoder.embeddings.word_embeddings, inputs.get("masked_lm_positions")
        outputs = {
            "masked_lm_logits": self.masked_lm(encoded["sequence_output"], table, positions),
            "sentence_order_logits": self.sentence_order(encoded["pooled_output"]),
        }
        return with_states(outputs, encoded)

    def loss_terms(self, y, outputs, sample_weight=None):
        return self._terms("loss", cross_entropy, y, outputs, sample_weight, MASKED_LM_EPSILON)

    def metric_terms(self, y, outputs):
        return self._terms("accuracy", correct, y, outputs)

    def _terms(self, name, value_of, y, outputs, sample_weight=None, epsilon=0.0):
        """The means of `value_of(labels, logits)` over masked tokens and over sentence labels, by name."""
        means = {f"masked_lm_{name}": masked_lm_mean(value_of, y, outputs["masked_lm_logits"], sample_weight, epsilon)}
        if self.objective == "none":
            return means
        label, logits = f"{self.objective}_labels", outputs["sentence_order_logits"]
        values = value_of(ops.reshape(y[label], ops.shape(logits)[:-1]), logits)  # the reference's labels are [B, 1]
        weights, sample_weight = y.get(f"{self.objective}_weights"), weights_for(label, sample_weight)
        return {**means, f"{self.objective}_{name}": weighted_mean(values, weights, sample_weight=sample_weight)}

    def reported_terms(self):
        heads = ("masked_lm",) if self.objective == "none" else ("masked_lm", self.objective)
        return tuple(f"{head}_{term}" for term in ("loss", "accuracy") for head in heads)

    def get_config(self):
        return {**super().get_config(), "objective": self.objective}

    def head_settings(self):
        return {} if self.objective == _OBJECTIVES[0] else {"objective": self.objective}

    @classmethod
    def settings_from_file(cls, settings):
        return {"objective": settings.get("objective", _OBJECTIVES[0])}
