"""Self-attention with output projection, residual and layer normalisation: the first half of a transformer block.

Letters: B batch, L sequence (M for the axis of keys), D hidden, N heads, H head size (= D / N).
"""

import math
from typing import Any, NamedTuple

import keras
from keras import ops

from albert_tf.config import AlbertConfig
from albert_tf.layers.base import AlbertLayer, DenseWeights, flat_linear
from albert_tf.layers.kernels import Plain, for_layers


class AttentionOutput(NamedTuple):
    """The outputs of an attention block."""

    hidden: Any  # [B, L, D]
    probabilities: Any  # [B, N, L, M], or [B, N, 1, M] with block-local attention; None if not computed


@keras.saving.register_keras_serializable("albert_tf")
class AttentionBlock(AlbertLayer):
    """Multi-head self-attention, projection, dropout, residual, layer normalisation.

    Query, key and value are separate variables, because LAMB treats each variable as a layer.

    Args:
        config: AlbertConfig.

    Call arguments:
        hidden: float tensor [B, L, D].
        bias: float32 tensor [B, 1, 1, M] or [B, 1, L, M] added to the logits, see `mask_to_bias`; or booleans of these
            shapes (True = attend); or None, if all tokens attend to all. Block-local attention takes the first shape.
        return_attention_scores: bool. Whether probabilities are used; without them, a backend may have a faster way.

    Returns:
        AttentionOutput: hidden [B, L, D], probabilities [B, N, L, M] (before dropout) or None. With block-local
            attention, probabilities are those of the first token, [B, N, 1, M].

    Raises:
        ValueError: block-local attention got a mask per token.

    References:
        `modeling.py` (attention_layer, attention_ffn_block) of google-research/albert.
    """

    def __init__(self, config: AlbertConfig, **kwargs):
        super().__init__(config, **kwargs)
        self.supports_masking = True
        self.query = self.make_dense(config.hidden_size, "query")
        self.key = self.make_dense(config.hidden_size, "key")
        self.value = self.make_dense(config.hidden_size, "value")
        self.output_projection = self.make_dense(config.hidden_size, "output")
        self.layer_norm = self.make_layer_norm()
        self.is_block_local = config.attention == "block_local"
        self.probability_dropout = self.make_dropout(config.attention_probs_dropout_prob, "probability_dropout")
        if self.is_block_local:  # another one, because a generator must be used once in a call
            self.first_dropout = self.make_dropout(config.attention_probs_dropout_prob, "first_dropout")
        self.output_dropout = self.make_dropout(config.hidden_dropout_prob, "output_dropout")

    def build(self, input_shape=None, **shapes):
        for layer in (self.query, self.key, self.value, self.output_projection, self.layer_norm):
            layer.build((None, self.config.hidden_size))  # of the rank that the layer normalisation is called with
        self.built = True

    def prepare(self, kernels: Plain, training: bool) -> tuple[tuple[DenseWeights, ...], DenseWeights]:
        """The weights of query, key and value, concatenated or not, and of the output, once for all calls of a step."""
        scale = 1.0 / math.sqrt(self.config.head_size) if kernels.scales_queries else 1.0
        matrices = [self.query.kernel * scale, self.key.kernel, self.value.kernel]
        biases = [self.query.bias * scale, self.key.bias, self.value.bias]
        if not kernels.splits_products(training and self.probability_dropout.rate > 0):
            matrices, biases = [ops.concatenate(matrices, axis=1)], [ops.concatenate(biases, axis=0)]  # [D, 3 D], [3 D]
        qkv = [DenseWeights(*map(self.in_compute_dtype, weights)) for weights in zip(matrices, biases, strict=True)]
        return tuple(qkv), self.weights_of(self.output_projection)

    def call(self, hidden, bias=None, training=False, return_attention_scores=True):
        kernels = for_layers()
        return self.apply(hidden, bias, self.prepare(kernels, training), kernels, training, return_attention_scores)

    def apply(self, hidden, mask, weights, kernels: Plain, training: bool, return_scores: bool) -> AttentionOutput:
        """As a call, with weights that were prepared for these kernels."""
        (qkv_weights, output_weights), width, shape = weights, self.config.hidden_size, ops.shape(hidden)
        heads = (self.config.num_attention_heads, self.config.head_size)
        qkv = [flat_linear(hidden, part) for part in qkv_weights]  # [B L, 3 D], or [B L, D] each
        if len(qkv) > 1:
            qkv = [ops.reshape(part, (*shape[:2], *heads)) for part in qkv]
        else:
            qkv = ops.reshape(qkv[0], (*shape[:2], 3, *heads))
        if self.is_block_local:
            dropouts = (self.probability_dropout, self.first_dropout)
            context, probabilities = kernels.attend_in_blocks(qkv, mask, dropouts, training, self.config.block_size)
        else:
            context, probabilities = kernels.attend(qkv, mask, self.probability_dropout, training, return_scores)
        projected = flat_linear(ops.reshape(context, (-1, width)), output_weights)  # [B L, D]
        projected = self.output_dropout(projected, training=training)
        attended = kernels.add_and_normalize(projected, ops.reshape(hidden, (-1, width)), self.layer_norm, training)
        return AttentionOutput(ops.reshape(attended, shape), probabilities)
