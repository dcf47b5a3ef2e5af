"""Models for ALBERT's pretraining objectives: masked language modelling and sentence order.

Letters: B batch, L sequence, P predictions, S examples of a row, V vocabulary.
"""

from typing import Literal

import keras
from keras import ops

from albert_tf.config import AlbertConfig
from albert_tf.layers import ClassificationHead, MaskedLMHead
from albert_tf.models.base import AlbertBase
from albert_tf.models.encoder import AlbertEncoder, with_states
from albert_tf.models.inputs import ENCODER_INPUTS, Field, only
from albert_tf.models.losses import MASKED_LM_EPSILON, correct, cross_entropy, weighted_mean, weights_for

_OBJECTIVES = ("sentence_order", "next_sentence", "none")
_INPUTS = {**ENCODER_INPUTS, "masked_lm_positions": Field("BP", "L", optional=True)}
_LABELS = {"masked_lm_ids": Field("BP", "vocab_size"), "masked_lm_weights": Field("BP", is_real=True)}


@keras.saving.register_keras_serializable("albert_tf")
class AlbertForPreTraining(AlbertBase):
    """The encoder with both pretraining heads: masked language modelling and sentence order.

    `fit` takes `(inputs, labels)`, labels being a dict of `masked_lm_ids` int [B, P], `masked_lm_weights` float [B, P]
    and `sentence_order_labels` int [B] (0 = in order, 1 = swapped), and minimises the sum of the two mean losses.

    Args:
        config: AlbertConfig.
        objective: the objective of the second head: `"sentence_order"`; `"next_sentence"`, with `next_sentence_labels`
            (0 = in order, 1 = from another document); or `"none"`. Losses and accuracies are named after it.

    Call arguments:
        inputs: dict as for AlbertEncoder, and optionally `masked_lm_positions` int [B, P].

    Returns:
        dict: `masked_lm_logits` float32 [B, P, V], or [B, L, V] without positions, and `sentence_order_logits` float32
        [B, 2].

    With packed rows (inputs `example_ids`, `position_ids` and `cls_positions`), sentence-order labels and logits are
    [B, S] and [B, S, 2], and `sentence_order_weights` float [B, S] is 1 for examples and 0 for padding.

    To read the model in the order of a step: `call` below; `AlbertEncoder` (`encoder.py`), which calls
    `AlbertEmbeddings` and the `TransformerBlock`s with their halves `AttentionBlock` and `FeedForwardBlock`, whose
    arithmetic is in `kernels/plain.py`; `heads.py`; and `loss_terms`, the sum of whose means (`losses.py`) is the loss.

    References:
        ALBERT sections 3.1 and 4.1; `run_pretraining.py` of google-research/albert.
    """

    architecture = "AlbertForPreTraining"
    input_fields = _INPUTS

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
            return _LABELS
        labels, weights = f"{self.objective}_labels", f"{self.objective}_weights"
        return {**_LABELS, labels: Field("BS", 2), weights: Field("BS", is_real=True, optional=True)}

    def call(self, inputs, training=False, output_hidden_states=False):
        encoded = self.encoder(
            only(ENCODER_INPUTS, inputs), training=training, output_hidden_states=output_hidden_states
        )
        table, positions = self.encoder.embeddings.word_embeddings, inputs.get("masked_lm_positions")
        outputs = {
            "masked_lm_logits": self.masked_lm(encoded["sequence_output"], table, positions),
            "sentence_order_logits": self.sentence_order(encoded["pooled_output"], training=training),
        }
        return with_states(outputs, encoded)

    def loss_terms(self, y, outputs, sample_weight=None):
        return self._terms("loss", cross_entropy, y, outputs, sample_weight, MASKED_LM_EPSILON)

    def metric_terms(self, y, outputs):
        return self._terms("accuracy", correct, y, outputs)

    def _terms(self, name, value_of, y, outputs, sample_weight=None, epsilon=0.0):
        """The means of `value_of(labels, logits)` over masked tokens and over sentence labels, by name."""
        means = {f"masked_lm_{name}": _masked_lm(value_of, y, outputs["masked_lm_logits"], sample_weight, epsilon)}
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


def _masked_lm(value_of, y, logits, sample_weight=None, epsilon=0.0):
    """The mean of `value_of(labels, logits)` over the masked tokens, by `masked_lm_weights`, not yet divided."""
    values, sample_weight = value_of(y["masked_lm_ids"], logits), weights_for("masked_lm_ids", sample_weight)
    return weighted_mean(values, y["masked_lm_weights"], epsilon, sample_weight)


@keras.saving.register_keras_serializable("albert_tf")
class AlbertForMaskedLM(AlbertBase):
    """The encoder with only the masked-LM head.

    `fit` takes `(inputs, labels)`, labels being a dict of `masked_lm_ids` and `masked_lm_weights` with the shape of
    `masked_lm_positions` [B, P], or [B, L] without positions.

    Args:
        config: AlbertConfig.

    Call arguments:
        inputs: dict as for AlbertEncoder, and optionally `masked_lm_positions` int [B, P].

    Returns:
        dict: `logits` float32 [B, P, V], or [B, L, V] without positions.
    """

    architecture = "AlbertForMaskedLM"
    input_fields = _INPUTS

    def __init__(self, config: AlbertConfig, **kwargs):
        super().__init__(config, **kwargs)
        self.encoder = AlbertEncoder(config, add_pooling_layer=False, name="encoder", dtype=self.dtype_policy)
        self.masked_lm = MaskedLMHead(config, name="masked_lm", dtype=self.dtype_policy)
        self.build_parts(self.encoder, self.masked_lm)

    def label_fields(self):
        return _LABELS

    def call(self, inputs, training=False, output_hidden_states=False):
        encoded = self.encoder(
            only(ENCODER_INPUTS, inputs), training=training, output_hidden_states=output_hidden_states
        )
        table, positions = self.encoder.embeddings.word_embeddings, inputs.get("masked_lm_positions")
        return with_states({"logits": self.masked_lm(encoded["sequence_output"], table, positions)}, encoded)

    def loss_terms(self, y, outputs, sample_weight=None):
        loss = _masked_lm(cross_entropy, y, outputs["logits"], sample_weight, MASKED_LM_EPSILON)
        return {"masked_lm_loss": loss}

    def reported_terms(self):
        return ("masked_lm_loss", "masked_lm_accuracy")

    def metric_terms(self, y, outputs):
        return {"masked_lm_accuracy": _masked_lm(correct, y, outputs["logits"])}
