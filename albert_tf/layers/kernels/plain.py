"""The parts of a transformer block that have faster forms, as operations of Keras: what each one computes.

The other kernels compute the same faster, up to rounding; `__init__.py` chooses.

Letters: B batch, L sequence (M for the axis of keys), N heads, H head size, D hidden, F intermediate.
"""

import functools
import math
from typing import Any

import keras
from keras import ops

from albert_tf.layers.kernels.activations import ACTIVATIONS, FUSED_ACTIVATIONS
from albert_tf.layers.kernels.block_local import attend_in_blocks


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


def is_mask(mask: Any) -> bool:
    """Whether this is None or booleans, not a bias."""
    return mask is None or keras.backend.standardize_dtype(mask.dtype) == "bool"


class Plain:
    """Attention, activation and normalisation with the operations of Keras."""

    scales_queries = True
    """Whether the weights of queries are multiplied by 1 / sqrt(H), once for all layer calls, or else the logits."""

    def splits_products(self, has_dropout: bool) -> bool:
        """Whether queries, keys and values are three products, or else one, which is then sliced.

        Args:
            has_dropout: bool. Whether there is dropout of probabilities.
        """
        return False

    def mask(self, attention_mask):
        """What `attend` takes for a mask [B, M] or [B, L, M] of ones (attend) and zeros."""
        return mask_to_bias(attention_mask)

    def attend(self, qkv, mask, dropout, training: bool, return_scores: bool = False):
        """Multi-head attention.

        Args:
            qkv: float tensor [B, L, 3, N, H], queries, keys and values, or a list of three tensors [B, L, N, H];
                see `scales_queries` and `splits_products`.
            mask: None; booleans (True = attend) or a bias of the logits, [B, 1, 1 or L, M].
            dropout: Dropout layer of the probabilities.
            training: bool. Whether dropout is on.
            return_scores: bool. Whether probabilities are used; without them, a backend may have a faster way.

        Returns:
            Float tensors: the context [B, L, N, H], and probabilities [B, N, L, M] before dropout, or None.
        """
        context, probabilities = self._attend(*_by_heads(qkv, mask), dropout, training)
        return ops.transpose(context, (0, 2, 1, 3)), probabilities

    def attend_in_blocks(self, qkv, mask, dropouts, training: bool, block_size: int):
        """Attention as in `block_local.py`, with dropouts of the probabilities and of those of the first token.

        Other arguments are those of `attend`; the probabilities are [B, N, 1, M], those of the first token.
        """
        query, key, value, bias = _by_heads(qkv, mask)
        bias = ops.zeros((ops.shape(key)[0], 1, 1, ops.shape(key)[2])) if bias is None else bias
        ways = [functools.partial(self._attend, dropout=dropout, training=training) for dropout in dropouts]
        context, probabilities = attend_in_blocks(query, key, value, bias, block_size, *ways)
        return ops.transpose(context, (0, 2, 1, 3)), probabilities

    def _attend(self, query, key, value, bias, dropout, training):
        """The context [..., L, H] and the probabilities [..., L, M] of full attention."""
        logits = ops.matmul(query, ops.swapaxes(key, -1, -2))  # [..., L, M]
        if not self.scales_queries:
            logits = logits * (1.0 / math.sqrt(query.shape[-1]))
        probabilities = self.softmax(logits, bias)
        return ops.matmul(dropout(probabilities, training=training), value), probabilities

    def softmax(self, logits, bias=None):
        """The probabilities [..., L, M] for logits and their bias, computed in float32."""
        wide = ops.cast(logits, "float32")
        return ops.cast(ops.softmax(wide if bias is None else wide + ops.cast(bias, "float32"), axis=-1), logits.dtype)

    def activate(self, x, bias, activation: str, training: bool):
        """The activation of `x + bias`, [B L, F] and [F]."""
        return (ACTIVATIONS if training else FUSED_ACTIVATIONS)[activation](ops.add(x, bias))

    def add_and_normalize(self, x, residual, layer_norm: keras.layers.LayerNormalization, training: bool):
        """`layer_norm` of `x + residual`, [B L, D] each."""
        return layer_norm(x + residual)  # `ops.add` takes a residual without rows for a bias


def _by_heads(qkv, mask) -> tuple[Any, Any, Any, Any]:
    """Queries, keys and values [B, N, L, H], and the bias of a mask; arguments as in `Plain.attend`."""
    if isinstance(qkv, list):
        query, key, value = (ops.transpose(tensor, (0, 2, 1, 3)) for tensor in qkv)  # [B, L, N, H] each
    else:  # a single transpose for all three; unstacking and its gradient are then free
        query, key, value = ops.unstack(ops.transpose(qkv, (2, 0, 3, 1, 4)), 3)
    return query, key, value, mask_to_bias(mask) if mask is not None and is_mask(mask) else mask
