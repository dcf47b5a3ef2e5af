"""Attention in one operation of the backend, for JAX and PyTorch: cuDNN's flash attention, PyTorch's own kernels.

No tensor [B, N, L, M] is kept where a kernel fits: on GPUs, in bfloat16 or float16 for JAX. Elsewhere JAX computes
logits, softmax and products one by one. On TensorFlow, Keras has two einsums and a softmax, so ours is used there.

Letters: B batch, L sequence (M for the axis of keys), N heads, H head size.
"""

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

    def attend(self, qkv, mask, dropout, training, return_scores=False):
        if return_scores or (training and dropout.rate > 0) or not is_mask(mask):
            return super().attend(qkv, mask, dropout, training, return_scores)
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
