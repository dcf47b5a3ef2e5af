"""Attention whose costs grow with the length, not with its square: by blocks, and to and from the first token.

Tokens attend to those of their own block, of the two blocks beside it, and to the first token ([CLS]), which attends to
all. This is full attention with a mask [L, L] of these pairs, but no tensor [L, L] is made.

Letters: B batch, L sequence, N heads, H head size, S block size, C blocks.

References:
    Longformer, arXiv 2004.05150, section 3.1; BigBird, arXiv 2007.14062, section 2.
"""

from collections.abc import Callable

from keras import ops

# Added to the logits of pairs outside the sequence, and of the first token among its neighbours, where it is a second
# time. Far below the bias of padding, so that rows of only padding do not attend to these either.
_NEVER = -1e9


def attend_in_blocks(query, key, value, bias, block_size: int, attend: Callable, attend_first: Callable):
    """Block-local attention.

    Args:
        query, key, value: float tensors [B, N, L, H].
        bias: float32 tensor [B, 1, 1, L] added to the logits.
        block_size: int. S.
        attend: full attention, from query, key, value [..., L or M, H] and bias [..., 1, M] to the context
            [..., L, H] and probabilities [..., L, M] or None.
        attend_first: the same for the first token, with dropout of its own.

    Returns:
        Float tensors: the context [B, N, L, H], and the probabilities of the first token [B, N, 1, L]
        or None.

    Raises:
        ValueError: the bias is per token.
    """
    if bias.shape[-2] != 1:
        raise ValueError(
            "The mask must be one per row, not per token, with attention='block_local'. Received: a mask of shape "
            f"{(bias.shape[0], *bias.shape[2:])}; give packed examples rows of their own, or use attention='full'."
        )
    batch, heads, length, size = ops.shape(query)
    if isinstance(length, int) and length <= 2 * block_size:
        context, probabilities = attend(query, key, value, bias)
        return context, None if probabilities is None else probabilities[:, :, :1]
    if ops.is_tensor(length):  # known in the running graph alone; short inputs get a short block
        block_size = ops.minimum(block_size, length)
    count = -(-length // block_size)
    padding = ops.zeros((batch, heads, count * block_size - length, size), query.dtype)
    blocks = ops.reshape(ops.concatenate([query, padding], axis=2), (batch, heads, count, block_size, size))
    keys, values = (_windows(x, block_size, count) for x in (key, value))
    biases = _windows(ops.swapaxes(bias, -1, -2), block_size, count, _NEVER)  # [B, 1, C, 3 S + 1, 1]
    context, _ = attend(blocks, keys, values, ops.swapaxes(biases, -1, -2))  # [B, N, C, S, H]
    context = ops.reshape(context, (batch, heads, count * block_size, size))
    first, probabilities = attend_first(query[:, :, :1], key, value, bias)  # [B, N, 1, H]
    return ops.concatenate([first, context[:, :, 1:length]], axis=2), probabilities


def _windows(x, block_size, count, fill: float = 0.0):
    """What each block attends to: the first token and those of three blocks; `fill` where there is none, or it again.

    Args:
        x: float tensor [B, N, L, H].

    Returns:
        Float tensor [B, N, C, 3 S + 1, H].
    """
    batch, heads, length, size = ops.shape(x)

    def filled(rows):
        return ops.full((batch, heads, rows, size), fill, x.dtype)

    padded = [filled(block_size + 1), x[:, :, 1:], filled((count + 1) * block_size - length)]
    blocks = ops.reshape(ops.concatenate(padded, axis=2), (batch, heads, count + 2, block_size, size))
    first = ops.broadcast_to(x[:, :, None, :1], (batch, heads, count, 1, size))
    return ops.concatenate([first, blocks[:, :, :-2], blocks[:, :, 1:-1], blocks[:, :, 2:]], axis=3)
