"""Attention in one operation of the backend, for JAX and PyTorch: cuDNN's flash attention, PyTorch's own kernels.

No tensor [B, N, L, M] is kept where a kernel fits: on GPUs, in bfloat16 or float16 for JAX. Elsewhere JAX computes
logits, softmax and products one by one. On TensorFlow, Keras has two einsums and a softmax, so ours is used there.

Letters: B batch, L sequence (M for the axis of keys), N heads, H head size, C blocks.
"""

import functools

import keras
from keras import ops

from albert_tf.layers.kernels.plain import Plain, is_mask


class Fused(Plain):
    """`Plain`, but for attention without dropout whose probabilities are not asked for."""

    def mask(self, attention_mask):
        """Booleans [B, 1, 1, M] or [B, 1, L, M].

        Tokens that may attend to none attend to all, as they do with the same bias on all logits.
        """
        mask = ops.cast(attention_mask, "bool")
        return _all_if_none(mask[:, None, None, :] if len(mask.shape) == 2 else mask[:, None])

    def attend(self, qkv, mask, dropouts, training, block_size=None, return_scores=False):
        has_dropout = training and dropouts[0].rate > 0
        if return_scores or has_dropout or not is_mask(mask):
            return super().attend(qkv, mask, dropouts, training, block_size, return_scores)
        if block_size is not None:
            return self._by_heads(qkv, mask, block_size, [functools.partial(_attend_in_rows, training=training)] * 2)
        query, key, value = qkv if isinstance(qkv, list) else ops.unstack(qkv, 3, axis=2)  # [B, L, N, H] each
        return _attend(query, key, value, mask, training), None


def _all_if_none(mask):
    return ops.logical_or(mask, ops.logical_not(ops.any(mask, axis=-1, keepdims=True)))


def _attend(query, key, value, mask, training: bool):
    """The context of full attention.

    Args:
        query, key, value: float tensors [B, L or M, N, H]; the query is scaled.
        mask: None or bool tensor [B, 1, 1 or L, M].
        training: bool. Whether gradients may be taken.

    Returns:
        Float tensor [B, L, N, H].
    """
    flash = keras.config.is_flash_attention_enabled()  # None: where it can be used
    if keras.backend.backend() == "torch":
        flash = False  # PyTorch chooses among its kernels itself, flash attention being one of them
    else:
        length, keys = query.shape[1], key.shape[1]
        if mask is not None:
            mask = ops.broadcast_to(mask, (query.shape[0], 1, length, keys))  # cuDNN needs both axes
        if training and (length % 2 or keys % 2):
            flash = False  # cuDNN has no gradient of these
    return ops.dot_product_attention(query, key, value, mask=mask, scale=1.0, flash_attention=flash)


def _attend_in_rows(query, key, value, bias, training: bool):
    """As `_attend`, in the form that `attend_in_blocks` calls: blocks become rows of a batch.

    Args:
        query, key, value: float tensors [B, N, L or M, H], or [B, N, C, L or M, H] for blocks that attend on their own.
        bias: float tensor [B, 1, 1, M] or [B, 1, C, 1, M], 0 where tokens are attended to and far below otherwise.
        training: bool. Whether gradients may be taken.

    Returns:
        Float tensor [B, N, L, H] or [B, N, C, L, H], and None for probabilities.
    """
    mask = _all_if_none(bias > -1.0)
    if len(query.shape) == 4:
        query, key, value = (ops.swapaxes(x, 1, 2) for x in (query, key, value))
        return ops.swapaxes(_attend(query, key, value, mask, training), 1, 2), None
    batch, heads, count, length, size = ops.shape(query)

    def as_rows(x):
        """[B, 1 or N, C, rows, columns] as [B C, rows, 1 or N, columns]."""
        x = ops.transpose(x, (0, 2, 3, 1, 4))
        return ops.reshape(x, (batch * count, *ops.shape(x)[2:]))

    context = _attend(as_rows(query), as_rows(key), as_rows(value), as_rows(mask), training)  # [B C, L, N, H]
    context = ops.reshape(context, (batch, count, length, heads, size))
    return ops.transpose(context, (0, 3, 1, 2, 4)), None
