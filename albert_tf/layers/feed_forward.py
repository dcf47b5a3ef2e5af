"""Feed-forward layers with residual and layer normalisation: the second half of a transformer block.

Letters: B batch, L sequence, D hidden, F intermediate.
"""

from typing import Any, NamedTuple

import keras
from keras import ops

from albert_tf.config import AlbertConfig
from albert_tf.layers.activations import ACTIVATIONS, FUSED_ACTIVATIONS
from albert_tf.layers.base import AlbertLayer, flat_linear


class FeedForwardWeights(NamedTuple):
    """The weights of one feed-forward block in compute dtype."""

    intermediate_kernel: Any  # [D, F]
    intermediate_bias: Any  # [F]
    output_kernel: Any  # [F, D]
    output_bias: Any  # [D]


@keras.saving.register_keras_serializable("albert_tf")
class FeedForwardBlock(AlbertLayer):
    """Two dense layers with an activation in between, dropout, residual, layer normalisation.

    Args:
        config: AlbertConfig.

    Call arguments:
        hidden: float tensor [B, L, D].
        weights: FeedForwardWeights from `prepare`, or None to prepare them here.
        use_islands: bool. Whether to use the gradients and XLA programs of `islands.py`.

    Returns:
        Float tensor [B, L, D].

    References:
        `modeling.py` (attention_ffn_block) of google-research/albert.
    """

    def __init__(self, config: AlbertConfig, **kwargs):
        super().__init__(config, **kwargs)
        self.supports_masking = True
        self.intermediate = self.make_dense(config.intermediate_size, "intermediate")
        self.output_projection = self.make_dense(config.hidden_size, "output")
        self.layer_norm = self.make_layer_norm()
        self.dropout = self.make_dropout(config.hidden_dropout_prob)

    def build(self, input_shape=None, **shapes):
        self.intermediate.build((None, self.config.hidden_size))
        self.output_projection.build((None, self.config.intermediate_size))
        self.layer_norm.build((None, self.config.hidden_size))  # of the rank that it is called with
        self.built = True

    def prepare(self) -> FeedForwardWeights:
        """Casts the weights, once per step."""
        return FeedForwardWeights(
            self.in_compute_dtype(self.intermediate.kernel),
            self.in_compute_dtype(self.intermediate.bias),
            self.in_compute_dtype(self.output_projection.kernel),
            self.in_compute_dtype(self.output_projection.bias),
        )

    def call(self, hidden, weights: FeedForwardWeights | None = None, training=False, use_islands=False):
        weights = weights or self.prepare()
        flat = ops.reshape(hidden, (-1, self.config.hidden_size))  # [B L, D]
        if use_islands and self.config.hidden_act == "gelu_new":
            from albert_tf.layers import islands

            inner = islands.bias_gelu(ops.matmul(flat, weights.intermediate_kernel), weights.intermediate_bias)
        else:
            activation = (ACTIVATIONS if training else FUSED_ACTIVATIONS)[self.config.hidden_act]
            inner = activation(flat_linear(flat, weights.intermediate_kernel, weights.intermediate_bias))  # [B L, F]
        outer = self.dropout(flat_linear(inner, weights.output_kernel, weights.output_bias), training=training)
        return ops.reshape(self.add_and_normalize(outer, flat, use_islands), ops.shape(hidden))
