"""Self-attention with output projection, residual and layer normalisation: the first half of a transformer block.

Letters: B batch, L sequence (M for the axis of keys), D hidden, N heads, H head size (= D / N).
"""

import functools
import math
from typing import Any, NamedTuple

import keras
from keras import ops

from albert_tf.config import AlbertConfig
from albert_tf.layers import fused_attention, fused_inference
from albert_tf.layers.base import AlbertLayer, flat_linear
from albert_tf.layers.block_local import attend_in_blocks


class AttentionWeights(NamedTuple):
    """The weights of one attention block in compute dtype, with query, key and value concatenated."""

    qkv_kernel: Any  # [D, 3 D], query part multiplied by `_scales()[0]`
    qkv_bias: Any  # [3 D]
    output_kernel: Any  # [D, D]
    output_bias: Any  # [D]


class AttentionOutput(NamedTuple):
    """The outputs of an attention block."""

    hidden: Any  # [B, L, D]
    probabilities: Any  # [B, N, L, M], or [B, N, 1, M] with block-local attention; None if not computed


def prepare_mask(attention_mask):
    """What attention blocks take for a mask [B, M], [B, L, M] or None: booleans for `fused_attention`, else a bias."""
    if attention_mask is None:
        return None
    return (fused_attention.boolean_mask if fused_attention.is_available() else mask_to_bias)(attention_mask)


def mask_to_bias(attention_mask):
    """Converts a mask of ones (attend) and zeros to a float32 bias for attention logits.

    A mask [B, M] applies to all tokens and gives [B, 1, 1, M]; a mask [B, L, M] is per token and gives [B, 1, L, M].
    Either may come in the shape that it gives.

    As in the reference, the bias is -10000 instead of minus infinity, so that rows of only padding stay finite.
    """
    mask = ops.cast(attention_mask, "float32")
    if len(mask.shape) < 4:
        mask = mask[:, None, None, :] if len(mask.shape) == 2 else mask[:, None]
    return (1.0 - mask) * -10000.0


@keras.saving.register_keras_serializable("albert_tf")
class AttentionBlock(AlbertLayer):
    """Multi-head self-attention, projection, dropout, residual, layer normalisation.

    Query, key and value are separate variables, because LAMB treats each variable as a layer. `prepare` concatenates
    them once for all calls with shared weights.

    Args:
        config: AlbertConfig.

    Call arguments:
        hidden: float tensor [B, L, D].
        bias: float32 tensor [B, 1, 1, M] or [B, 1, L, M] added to the logits, see `mask_to_bias`; or booleans of these
            shapes (True = attend); or None, if all tokens attend to all. Block-local attention takes the first shape.
        weights: AttentionWeights from `prepare`, or None to prepare them here.
        use_islands: bool. Whether to use the gradients and XLA programs of `islands.py`.
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
        self.probability_dropout = self.make_dropout(config.attention_probs_dropout_prob, "probability_dropout")
        if config.attention == "block_local":
            self.first_dropout = self.make_dropout(config.attention_probs_dropout_prob, "first_dropout")
        self.output_dropout = self.make_dropout(config.hidden_dropout_prob, "output_dropout")

    def build(self, input_shape=None, **shapes):
        for layer in (self.query, self.key, self.value, self.output_projection, self.layer_norm):
            layer.build((None, self.config.hidden_size))  # of the rank that the layer normalisation is called with
        self.built = True

    def prepare(self) -> AttentionWeights:
        """Casts, scales and concatenates the weights, once per step."""
        scale, _ = self._scales()
        kernels = (self.query.kernel * scale, self.key.kernel, self.value.kernel)
        biases = (self.query.bias * scale, self.key.bias, self.value.bias)
        return AttentionWeights(
            self.in_compute_dtype(ops.concatenate(kernels, axis=1)),
            self.in_compute_dtype(ops.concatenate(biases, axis=0)),
            self.in_compute_dtype(self.output_projection.kernel),
            self.in_compute_dtype(self.output_projection.bias),
        )

    def _scales(self) -> tuple[float, float]:
        """Factors of queries and of logits; their product is 1 / sqrt(H)."""
        scale = 1.0 / math.sqrt(self.config.head_size)
        return (1.0, scale) if fused_inference.is_used("logits") else (scale, 1.0)

    def call(
        self,
        hidden,
        bias=None,
        weights: AttentionWeights | None = None,
        training=False,
        use_islands=False,
        return_attention_scores=True,
    ):
        weights = weights or self.prepare()
        heads, size = self.config.num_attention_heads, self.config.head_size
        joined = flat_linear(hidden, weights.qkv_kernel, weights.qkv_bias)  # [B L, 3 D]
        joined = ops.reshape(joined, (*ops.shape(hidden)[:2], 3, heads, size))
        is_fused = not return_attention_scores and self._can_be_fused(bias, training)
        if is_fused and self.config.attention == "full":
            query, key, value = ops.unstack(joined, 3, axis=2)  # [B, L, N, H] each
            context = fused_attention.attend(query, key, value, bias, training)
            probabilities = None
        else:
            # A single transpose for all three; unstacking and its gradient are then free.
            query, key, value = ops.unstack(ops.transpose(joined, (2, 0, 3, 1, 4)), 3)  # [B, N, L, H] each
            context, probabilities = self._attend_by_heads(query, key, value, bias, training, is_fused, use_islands)
            context = ops.transpose(context, (0, 2, 1, 3))
        context = ops.reshape(context, (-1, heads * size))  # [B L, D]
        projected = flat_linear(context, weights.output_kernel, weights.output_bias)
        projected = self.output_dropout(projected, training=training)
        attended = self.add_and_normalize(projected, ops.reshape(hidden, (-1, heads * size)), use_islands)
        return AttentionOutput(ops.reshape(attended, ops.shape(hidden)), probabilities)

    def _can_be_fused(self, bias, training) -> bool:
        """Whether `fused_attention` can compute this."""
        is_mask = bias is None or keras.backend.standardize_dtype(bias.dtype) == "bool"
        has_dropout = training and self.config.attention_probs_dropout_prob > 0
        return fused_attention.is_available() and is_mask and not has_dropout

    def _attend_by_heads(self, query, key, value, bias, training, is_fused, use_islands):
        """The context [B, N, L, H] and the probabilities."""
        if bias is not None and keras.backend.standardize_dtype(bias.dtype) == "bool":
            bias = mask_to_bias(bias)
        if self.config.attention == "full":
            return self._attend(query, key, value, bias, self.probability_dropout, training, use_islands)
        if bias is None:
            bias = ops.zeros((ops.shape(key)[0], 1, 1, ops.shape(key)[2]))
        return self._attend_in_blocks(query, key, value, bias, training, is_fused)

    def _attend(self, query, key, value, bias, dropout, training, use_islands=False):
        """The context [..., L, H] and the probabilities [..., L, M] of full attention."""
        logits = ops.matmul(query, ops.swapaxes(key, -1, -2))  # [..., L, M]
        if use_islands and self.compute_dtype == "bfloat16" and fused_inference.fast_forms():
            from albert_tf.layers import islands

            probabilities = islands.softmax(logits, bias)
        else:
            probabilities = self._probabilities(logits, bias)
        return ops.matmul(dropout(probabilities, training=training), value), probabilities

    def _probabilities(self, logits, bias):
        dtype = "float32"
        if fused_inference.is_used("logits"):  # one operation of oneDNN, with the addition of a bias
            dtype, logits = self.compute_dtype, logits * self._scales()[1]
        logits = ops.cast(logits, dtype)
        if bias is not None:
            logits = logits + ops.cast(bias, dtype)
        return ops.cast(ops.softmax(logits, axis=-1), self.compute_dtype)

    def _attend_in_blocks(self, query, key, value, bias, training, is_fused):
        if is_fused:
            ways = [functools.partial(fused_attention.attend_by_heads, training=training)] * 2
        else:
            # Two dropout layers, because a generator must be used once in a call, see `recomputed`.
            dropouts = self.probability_dropout, self.first_dropout
            ways = [functools.partial(self._attend, dropout=dropout, training=training) for dropout in dropouts]
        return attend_in_blocks(query, key, value, bias, self.config.block_size, *ways)
