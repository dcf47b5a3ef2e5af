"""The model for masked language modelling alone.

Letters: B batch, L sequence, P predictions, V vocabulary.
"""

import keras

from albert_tf.config import AlbertConfig
from albert_tf.layers import MaskedLMHead
from albert_tf.models.base import AlbertBase
from albert_tf.models.encoder import AlbertEncoder, with_states
from albert_tf.models.inputs import ENCODER_INPUTS, MASKED_LM_INPUTS, MASKED_LM_LABELS, only
from albert_tf.models.losses import MASKED_LM_EPSILON, correct, cross_entropy, masked_lm_mean


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
    input_fields = MASKED_LM_INPUTS

    def __init__(self, config: AlbertConfig, **kwargs):
        super().__init__(config, **kwargs)
        self.encoder = AlbertEncoder(config, add_pooling_layer=False, name="encoder", dtype=self.dtype_policy)
        self.masked_lm = MaskedLMHead(config, name="masked_lm", dtype=self.dtype_policy)
        self.build_parts(self.encoder, self.masked_lm)

    def label_fields(self):
        return MASKED_LM_LABELS

    def call(self, inputs, training=False, output_hidden_states=False):
        encoded = self.encoder(
            only(ENCODER_INPUTS, inputs), training=training, output_hidden_states=output_hidden_states
        )
        table, positions = self.encoder.embeddings.word_embeddings, inputs.get("masked_lm_positions")
        return with_states({"logits": self.masked_lm(encoded["sequence_output"], table, positions)}, encoded)

    def loss_terms(self, y, outputs, sample_weight=None):
        loss = masked_lm_mean(cross_entropy, y, outputs["logits"], sample_weight, MASKED_LM_EPSILON)
        return {"masked_lm_loss": loss}

    def reported_terms(self):
        return ("masked_lm_loss", "masked_lm_accuracy")

    def metric_terms(self, y, outputs):
        return {"masked_lm_accuracy": masked_lm_mean(correct, y, outputs["logits"])}
