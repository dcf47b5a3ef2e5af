"""The ALBERT encoder: embeddings, projection, shared transformer blocks, pooler.

Letters: B batch, L sequence, E embedding, D hidden, N heads, S examples of a row.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import keras
from keras import ops

from albert_tf.config import AlbertConfig
from albert_tf.layers import AlbertEmbeddings, AttentionBlock, FeedForwardBlock, mask_to_bias
from albert_tf.layers.attention import AttentionWeights
from albert_tf.layers.base import Dense
from albert_tf.layers.feed_forward import FeedForwardWeights
from albert_tf.layers.heads import gather_positions
from albert_tf.models.base import AlbertBase
from albert_tf.models.inputs import ENCODER_INPUTS
from albert_tf.models.remat import recomputed


@keras.saving.register_keras_serializable("albert_tf")
class AlbertEncoder(AlbertBase):
    """Turns ids into vectors.

    Args:
        config: AlbertConfig.
        add_pooling_layer: bool. Whether to compute `pooled_output`.

    Call arguments:
        inputs: dict of `input_ids` int [B, L], and optionally `attention_mask` int [B, L] (1 = attend, default all 1)
            and `token_type_ids` int [B, L] (default all 0); or `input_ids` alone. Where rows hold several examples,
            also `example_ids` int [B, L] (tokens attend to those of the same number), `position_ids` int [B, L] and
            `cls_positions` int [B, S] (where each example begins).
        training: bool. Whether dropout is on.
        output_hidden_states: bool. Whether to return `hidden_states`.
        output_attentions: bool. Whether to return `attentions`.

    Returns:
        dict: `sequence_output` [B, L, D]; `pooled_output` [B, D], or [B, S, D] with `cls_positions`; on demand
        `hidden_states`, a tuple of [B, L, D], the embeddings after projection first, then one per block application,
        and `attentions`, a tuple of [B, N, L, L].

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
        self.remat_span = 0  # how many layer calls are computed again together; `compile` sets it
        self.embeddings = AlbertEmbeddings(config, name="embeddings", dtype=dtype)
        initializer = self.embeddings.kernel_initializer
        self.projection = None
        if config.has_projection:
            self.projection = Dense(
                config.hidden_size, name="projection", kernel_initializer=initializer(), dtype=dtype
            )
        self.attention_blocks = [
            [
                AttentionBlock(config, name=f"attention_{group}_{inner}", dtype=dtype)
                for inner in range(config.inner_group_num)
            ]
            for group in range(config.num_attention_groups)
        ]
        self.ffn_blocks = [
            [
                FeedForwardBlock(config, name=f"ffn_{group}_{inner}", dtype=dtype)
                for inner in range(config.inner_group_num)
            ]
            for group in range(config.num_ffn_groups)
        ]
        self.pooler = None
        if add_pooling_layer:
            self.pooler = Dense(
                config.hidden_size, "tanh", name="pooler", kernel_initializer=initializer(), dtype=dtype
            )
        blocks = [block for group in self.attention_blocks + self.ffn_blocks for block in group]
        with keras.name_scope(self.name):  # so that an optimizer can tell two encoders apart
            self.build_parts(self.embeddings, *blocks)
            if self.projection is not None:
                self.projection.build((None, None, config.embedding_size))
            if self.pooler is not None:
                self.pooler.build((None, config.hidden_size))

    def call(self, inputs, training=False, output_hidden_states=False, output_attentions=False):
        given = _standardize(inputs)
        hidden = self.embeddings(given.ids, given.types, given.positions, training=training)  # [B, L, E]
        if self.projection is not None:
            hidden = self.projection(hidden)  # [B, L, D]
        bias, states, attentions = mask_to_bias(given.mask), [hidden], []
        if self.remat_span and training and not (output_hidden_states or output_attentions):
            hidden = self._apply_recomputed(hidden, bias)
        else:
            for application in self._applications():
                hidden, probabilities = application(hidden, bias, training)
                states.append(hidden)
                attentions.append(probabilities)
        outputs: dict[str, Any] = {"sequence_output": hidden}
        if self.pooler is not None:
            firsts = given.cls_positions
            firsts = hidden[:, 0] if firsts is None else gather_positions(hidden, firsts)  # [B, D] or [B, S, D]
            outputs["pooled_output"] = self.pooler(firsts)
        if output_hidden_states:
            outputs["hidden_states"] = tuple(states)
        if output_attentions:
            outputs["attentions"] = tuple(attentions)
        return outputs

    def _applications(self) -> Iterator["_Application"]:
        """Every block application, in order; shared weights are prepared once."""
        attention = [[(block, block.prepare()) for block in group] for group in self.attention_blocks]
        ffn = [[(block, block.prepare()) for block in group] for group in self.ffn_blocks]
        for layer in range(self.config.num_hidden_layers):
            attention_group = attention[self.config.group_of_layer(layer, len(attention))]
            ffn_group = ffn[self.config.group_of_layer(layer, len(ffn))]
            for attention_block, ffn_block in zip(attention_group, ffn_group, strict=True):
                yield _Application(*attention_block, *ffn_block)

    def _apply_recomputed(self, hidden, bias):
        """All applications in training, some at a time computed again on the way back."""
        applications = list(self._applications())
        for first in range(0, len(applications), self.remat_span):
            together = applications[first : first + self.remat_span]
            weights = [(application.attention_weights, application.ffn_weights) for application in together]
            layers = [layer for application in together for layer in (application.attention, application.ffn)]
            norms = {id(layer): layer.layer_norm for layer in layers}.values()
            variables = [variable for norm in norms for variable in norm.trainable_variables]

            def apply(hidden, weights, together=together):
                for application, (attention_weights, ffn_weights) in zip(together, weights):
                    given = application._replace(attention_weights=attention_weights, ffn_weights=ffn_weights)
                    hidden, _ = given(hidden, bias, training=True)
                return hidden

            hidden = recomputed(apply, hidden, weights, variables, layers)
        return hidden

    def get_config(self):
        return {**super().get_config(), "add_pooling_layer": self.add_pooling_layer}


class _Application(NamedTuple):
    """One application of a transformer block with its prepared weights."""

    attention: AttentionBlock
    attention_weights: AttentionWeights
    ffn: FeedForwardBlock
    ffn_weights: FeedForwardWeights

    def __call__(self, hidden, bias, training):
        attended = self.attention(hidden, bias, self.attention_weights, training=training)
        return self.ffn(attended.hidden, self.ffn_weights, training=training), attended.probabilities


class _Inputs(NamedTuple):
    """Ids and types, int32 [B, L]; mask [B, L], or [B, L, L] where rows hold several examples; positions as given."""

    ids: Any
    mask: Any
    types: Any
    positions: Any
    cls_positions: Any


def _standardize(inputs) -> _Inputs:
    """The inputs with their defaults."""
    ids = ops.cast(inputs["input_ids"], "int32")
    names = ("attention_mask", "token_type_ids", "position_ids", "example_ids", "cls_positions")
    mask, types, positions, examples, cls_positions = map(inputs.get, names)
    mask = ops.ones_like(ids) if mask is None else mask
    types = ops.zeros_like(ids) if types is None else ops.cast(types, "int32")
    if examples is not None:
        same = ops.equal(examples[:, :, None], examples[:, None, :])  # [B, L, L]
        mask = ops.cast(same, "int32") * ops.cast(mask, "int32")[:, None]
    positions, cls_positions = (x if x is None else ops.cast(x, "int32") for x in (positions, cls_positions))
    return _Inputs(ids, mask, types, positions, cls_positions)
