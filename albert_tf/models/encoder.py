"""The ALBERT encoder: embeddings, projection, shared transformer blocks, pooler.

Letters: B batch, L sequence, E embedding, D hidden, N heads, S examples of a row.
"""

from typing import Any

import keras
from keras import ops

from albert_tf.config import AlbertConfig
from albert_tf.keras_internals import track
from albert_tf.layers import AlbertEmbeddings, AttentionBlock, FeedForwardBlock, TransformerBlock
from albert_tf.layers.heads import gather_positions
from albert_tf.layers.kernels import for_layers
from albert_tf.layers.transformer_block import with_prepared_weights
from albert_tf.models.base import AlbertBase
from albert_tf.models.inputs import ENCODER_INPUTS
from albert_tf.models.layer_calls import call_in_loop, call_recomputed


@keras.saving.register_keras_serializable("albert_tf")
class AlbertEncoder(AlbertBase):
    """The ALBERT encoder: turns token ids into vectors.

    Args:
        config: AlbertConfig.
        add_pooling_layer: bool. Whether to compute `pooled_output`.

    Call arguments:
        inputs: dict of `input_ids` int [B, L], and optionally `attention_mask` int [B, L] (1 = attend, default all 1)
            and `token_type_ids` int [B, L] (default all 0); or `input_ids` alone. For packed rows of several examples,
            also `example_ids` int [B, L] (tokens attend to those of the same example), `position_ids` int [B, L] and
            `cls_positions` int [B, S] (the first position of each example).
        training: bool. Whether dropout is on.
        output_hidden_states, output_attentions: bool. Whether to return these; block-local attention has no attentions.

    Returns:
        dict: `sequence_output` [B, L, D]; `pooled_output` [B, D], or [B, S, D] with `cls_positions`; if requested,
        `hidden_states`, a tuple of [B, L, D], the projected embeddings and the output of each layer call, and
        `attentions`, a tuple of [B, N, L, L].

    Example:

    >>> import numpy as np
    >>> config = AlbertConfig.from_preset("tiny")
    >>> outputs = AlbertEncoder(config)({"input_ids": np.array([[2, 17, 35, 3]])})
    >>> tuple(outputs["sequence_output"].shape)
    (1, 4, 128)

    References:
        ALBERT, arXiv 1909.11942; `modeling.py` (AlbertModel) of google-research/albert.
    """

    architecture = "AlbertModel"
    root = "encoder/"
    input_fields = ENCODER_INPUTS

    def __init__(self, config: AlbertConfig, add_pooling_layer: bool = True, **kwargs):
        super().__init__(config, **kwargs)
        dtype = self.dtype_policy
        self.add_pooling_layer = add_pooling_layer
        self.remat_span, self.scan_layers = 0, False  # set by `compile`
        self.training_kernels = self.inference_kernels = for_layers()  # the former is set by `compile`, too
        self.embeddings = AlbertEmbeddings(config, name="embeddings", dtype=dtype)
        self.projection = self.pooler = None
        if config.has_projection:
            self.projection = self.embeddings.make_dense(config.hidden_size, "projection")
        self.attention_blocks, self.ffn_blocks, self.transformer_blocks = shared_blocks(config, dtype)
        halves = [half for group in self.attention_blocks + self.ffn_blocks for half in group]
        for half in halves:
            track(self, half)
        if add_pooling_layer:
            self.pooler = self.embeddings.make_dense(config.hidden_size, "pooler", activation="tanh")
        with keras.name_scope(self.name):  # so that an optimizer can tell two encoders apart
            self.build_parts(self.embeddings, *halves, *self.transformer_blocks)
            if self.projection is not None:
                self.projection.build((None, None, config.embedding_size))
            if self.pooler is not None:
                self.pooler.build((None, config.hidden_size))

    @property
    def layers(self):
        """The layers of this model; halves of blocks are in their blocks."""
        return [layer for layer in super().layers if not isinstance(layer, AttentionBlock | FeedForwardBlock)]

    def call(self, inputs, training=False, output_hidden_states=False, output_attentions=False):
        if output_attentions and self.config.attention != "full":
            raise ValueError(
                "`output_attentions` must be False with attention='block_local', which makes no tensor [L, L]. "
                "Received: output_attentions=True; load the model with attention='full'."
            )
        ids = (inputs.get(name) for name in ("input_ids", "token_type_ids", "position_ids"))
        hidden = self.embeddings(*ids, training=training)  # [B, L, E]
        if self.projection is not None:
            hidden = self.projection(hidden)  # [B, L, D]
        kernels = self.training_kernels if training else self.inference_kernels
        if (mask := _attention_mask(inputs)) is not None:
            mask = kernels.mask(mask)
        states, attentions = [hidden], []
        is_last_alone = not (output_hidden_states or output_attentions)
        if is_last_alone and self.scan_layers:
            hidden = call_in_loop(self.transformer_blocks, hidden, mask, kernels, training)
        elif is_last_alone and self.remat_span and training:
            hidden = call_recomputed(self.transformer_blocks, hidden, mask, kernels, self.remat_span)
        else:
            for block, weights in with_prepared_weights(self.transformer_blocks, kernels, training):
                hidden, scores = block.apply(hidden, mask, weights, kernels, training, output_attentions)
                states.append(hidden)
                attentions.append(scores)
        outputs: dict[str, Any] = {"sequence_output": hidden}
        if self.pooler is not None:
            positions = inputs.get("cls_positions")
            first = hidden[:, 0] if positions is None else gather_positions(hidden, positions)  # [B, D] or [B, S, D]
            outputs["pooled_output"] = self.pooler(first)
        if output_hidden_states:
            outputs["hidden_states"] = tuple(states)
        if output_attentions:
            outputs["attentions"] = tuple(attentions)
        return outputs

    def compute_output_shape(self, *shapes, **named_shapes):
        tokens = {"sequence_output": (None, None, self.config.hidden_size)}
        return tokens if self.pooler is None else {**tokens, "pooled_output": (None, self.config.hidden_size)}

    def get_config(self):
        return {**super().get_config(), "add_pooling_layer": self.add_pooling_layer}


def shared_blocks(config: AlbertConfig, dtype) -> tuple[list, list, list[TransformerBlock]]:
    """Attention and feed-forward halves, by group of layers that share them, and the block of each layer call.

    Where layers share both halves, they call the same block.
    """

    def groups(kind, name: str, count: int) -> list[list]:
        inner = range(config.inner_group_num)
        return [[kind(config, name=f"{name}_{group}_{i}", dtype=dtype) for i in inner] for group in range(count)]

    attention = groups(AttentionBlock, "attention", config.num_attention_groups)
    ffn = groups(FeedForwardBlock, "ffn", config.num_ffn_groups)
    blocks, calls = {}, []
    for layer in range(config.num_hidden_layers):
        shared = (half[config.group_of_layer(layer, len(half))] for half in (attention, ffn))
        for halves in zip(*shared, strict=True):
            if halves not in blocks:
                blocks[halves] = TransformerBlock(config, *halves, name=f"block_{len(blocks)}", dtype=dtype)
            calls.append(blocks[halves])
    return attention, ffn, calls


def with_states(outputs: dict[str, Any], encoded: dict[str, Any]) -> dict[str, Any]:
    """A task's outputs with the hidden states of the encoder, if these were requested."""
    return {**outputs, "hidden_states": encoded["hidden_states"]} if "hidden_states" in encoded else outputs


def _attention_mask(inputs: dict[str, Any]):
    """None or a mask [B, L], or [B, L, L] for packed rows, whose tokens attend to those of the same example."""
    mask, examples = inputs.get("attention_mask"), inputs.get("example_ids")
    if examples is None:
        return mask
    same = ops.equal(examples[:, :, None], examples[:, None, :])  # [B, L, L]
    return same if mask is None else ops.logical_and(same, ops.cast(mask, "bool")[:, None])
