"""The transformer block, which ALBERT applies again and again: self-attention, then a feed-forward network.

Letters: B batch, L sequence, D hidden, N heads.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras

from albert_tf.config import AlbertConfig
from albert_tf.layers.attention import AttentionBlock
from albert_tf.layers.base import AlbertLayer
from albert_tf.layers.feed_forward import FeedForwardBlock
from albert_tf.layers.kernels import Plain, for_layers


@keras.saving.register_keras_serializable("albert_tf")
class TransformerBlock(AlbertLayer):
    """Self-attention and a feed-forward network, each followed by dropout, residual and layer normalisation.

    A block called several times has the same weights in all calls, as in ALBERT. Blocks that share one half only are
    given the same one, in a layer or model that makes them all.

    Args:
        config: AlbertConfig. Of its sizes, the block has `hidden_size`, `num_attention_heads`, `intermediate_size`.
        attention: AttentionBlock of another block, or None for a new one.
        ffn: FeedForwardBlock of another block, or None for a new one.

    Call arguments:
        hidden: float tensor [B, L, D].
        mask: None; an `attention_mask` [B, L], or [B, L, L] with a row for each token (1 = attend); or what
            `mask_to_bias` makes of it. By default what Keras passes on from an `Embedding(mask_zero=True)`.
        training: bool. Whether dropout is on.
        return_attention_scores: bool. Whether to return the probabilities of attention too.

    Returns:
        Float tensor [B, L, D]; with `return_attention_scores`, also those of `AttentionBlock`, [B, N, L, L].

    Raises:
        ValueError: `get_config` of a block that was given a half.

    Example:

    >>> config = AlbertConfig(hidden_size=24, num_attention_heads=3, intermediate_size=96)
    >>> block = TransformerBlock(config)
    >>> vectors, mask = keras.Input((None, 24)), keras.Input((None,), dtype="int32")
    >>> hidden = vectors
    >>> for _ in range(4):
    ...     hidden = block(hidden, mask)
    >>> keras.Model([vectors, mask], hidden).count_params() == block.count_params()
    True

    References:
        ALBERT, arXiv 1909.11942, section 3.1; `modeling.py` (attention_ffn_block) of google-research/albert.
    """

    def __init__(
        self,
        config: AlbertConfig,
        attention: AttentionBlock | None = None,
        ffn: FeedForwardBlock | None = None,
        **kwargs,
    ):
        super().__init__(config, **kwargs)
        self.supports_masking = True
        self._shares_a_half = attention is not None or ffn is not None
        self.attention = attention or AttentionBlock(config, name="attention", **self.part_options)
        self.ffn = ffn or FeedForwardBlock(config, name="ffn", **self.part_options)

    @property
    def halves(self) -> tuple[AttentionBlock, FeedForwardBlock]:
        """Both halves in the order of their calls."""
        return self.attention, self.ffn

    def build(self, input_shape=None, **shapes):
        for half in self.halves:
            if not half.built:
                half.build(None)
        self.built = True

    def call(self, hidden, mask=None, training=False, return_attention_scores=False):
        kernels = for_layers()
        if mask is not None and len(mask.shape) != 4:
            mask = kernels.mask(mask)
        weights = tuple(half.prepare(kernels, training) for half in self.halves)
        hidden, scores = self.apply(hidden, mask, weights, kernels, training, return_attention_scores)
        return (hidden, scores) if return_attention_scores else hidden

    def apply(self, hidden, mask, weights, kernels: Plain, training: bool, return_scores: bool = False):
        """As a call, with weights and a mask prepared for these kernels; also returns probabilities or None."""
        of_attention, of_ffn = weights
        with keras.name_scope(self.name):  # which also fixes the order in which TensorFlow adds up gradients
            with keras.name_scope(self.attention.name):
                hidden, scores = self.attention.apply(hidden, mask, of_attention, kernels, training, return_scores)
            with keras.name_scope(self.ffn.name):
                return self.ffn.apply(hidden, of_ffn, kernels, training), scores

    def compute_output_shape(self, *shapes, **named_shapes):
        return None, None, self.config.hidden_size

    def compute_mask(self, inputs, previous_mask):
        """Keras passes on masks [B, L] alone to the layers that follow."""
        return previous_mask if previous_mask is not None and len(previous_mask.shape) == 2 else None

    def get_config(self):
        if self._shares_a_half:
            raise ValueError(
                "A TransformerBlock with a half of another block has no config of its own, because Keras would load it "
                "with a copy. Make such blocks in the `__init__` of one layer or model, as AlbertEncoder does."
            )
        return super().get_config()


def with_prepared_weights(
    blocks: Sequence[TransformerBlock], kernels: Plain, training: bool, after_use: Callable | None = None
) -> Iterator[tuple[TransformerBlock, tuple]]:
    """Each block with its weights, prepared once for halves that blocks share; `after_use` changes them for later."""
    prepared = {half: half.prepare(kernels, training) for half in halves_of(blocks)}
    for block in blocks:
        yield block, tuple(prepared[half] for half in block.halves)
        if after_use is not None:
            prepared |= {half: after_use(prepared[half]) for half in block.halves}


def halves_of(blocks: Sequence[TransformerBlock]) -> list[Any]:
    """The halves of the blocks, each once: first those that attend."""
    return list(dict.fromkeys(half for halves in zip(*(block.halves for block in blocks)) for half in halves))
