"""Factorised embeddings: tables of width E, summed and normalised before the projection.

Letters: B batch, L sequence, V vocabulary, E embedding.
"""

from typing import Any

import keras
from keras import ops

from albert_tf.config import AlbertConfig
from albert_tf.layers.base import AlbertLayer


@keras.saving.register_keras_serializable("albert_tf")
class AlbertEmbeddings(AlbertLayer):
    """Word, token type and position embeddings, summed, followed by layer normalisation and dropout.

    Args:
        config: AlbertConfig.

    Call arguments:
        input_ids: int tensor [B, L].
        token_type_ids: int tensor [B, L], or None for 0.
        position_ids: int tensor [B, L], or None for 0 to L - 1.

    Returns:
        Float tensor [B, L, E].

    Raises:
        ValueError: L exceeds `max_position_embeddings`.

    References:
        ALBERT section 3.1; `modeling.py` (embedding_postprocessor) of google-research/albert.
    """

    def __init__(self, config: AlbertConfig, **kwargs):
        super().__init__(config, **kwargs)
        self.autocast = False  # half precision would round ids
        self.layer_norm = self.make_layer_norm()
        self.dropout = self.make_dropout(config.hidden_dropout_prob)

    def build(self, input_shape=None, **shapes):
        self.word_embeddings = self._table("word_embeddings", self.config.vocab_size)
        self.token_type_embeddings = self._table("token_type_embeddings", self.config.type_vocab_size)
        self.position_embeddings = self._table("position_embeddings", self.config.max_position_embeddings)
        self.layer_norm.build((None, None, self.config.embedding_size))
        self.built = True

    def _table(self, name: str, rows: int):
        shape = (rows, self.config.embedding_size)
        return self.add_weight(shape=shape, initializer=self.kernel_initializer(), name=name)

    def call(self, input_ids, token_type_ids=None, position_ids=None, training=False):
        input_ids = ops.cast(input_ids, "int32")
        token_type_ids = ops.zeros_like(input_ids) if token_type_ids is None else ops.cast(token_type_ids, "int32")
        position_ids = None if position_ids is None else ops.cast(position_ids, "int32")
        self._check_length(input_ids.shape[1])
        words = ops.take(self.in_compute_dtype(self.word_embeddings), input_ids, axis=0)  # [B, L, E]
        chosen = ops.one_hot(token_type_ids, self.config.type_vocab_size, dtype=self.compute_dtype)  # [B, L, types]
        type_table = self.in_compute_dtype(self.token_type_embeddings)
        type_table = type_table + self._nan_if_outside(input_ids, token_type_ids, position_ids)
        types = ops.matmul(chosen, type_table)  # [B, L, E]
        return self.dropout(
            self.layer_norm(words + types + self._positions(input_ids, position_ids)), training=training
        )

    def _positions(self, input_ids, position_ids):
        """Position embeddings [B, L, E], or [L, E] without `position_ids`."""
        table, length = self.in_compute_dtype(self.position_embeddings), ops.shape(input_ids)[1]
        if position_ids is not None:
            return ops.take(table, position_ids, axis=0)
        if isinstance(input_ids.shape[1], int | None):
            return table[:length]
        # On JAX an unknown length is symbolic, and a slice could be shorter than it.
        return ops.take(table, ops.arange(length), axis=0)

    def _nan_if_outside(self, input_ids, token_type_ids, position_ids):
        """NaN if an id is out of range, else 0: XLA and GPUs would silently use another row of the table."""
        sizes = (self.config.vocab_size, self.config.type_vocab_size, self.config.max_position_embeddings)
        pairs = zip((input_ids, token_type_ids, position_ids), sizes)
        outside = [ops.any(ops.logical_or(ids < 0, ids >= size)) for ids, size in pairs if ids is not None]
        return ops.cast(ops.where(ops.any(ops.stack(outside)), float("nan"), 0.0), self.compute_dtype)

    def compute_output_shape(self, *shapes, **named_shapes):
        return None, None, self.config.embedding_size

    def _check_length(self, length: Any) -> None:
        if isinstance(length, int) and length > self.config.max_position_embeddings:
            raise ValueError(
                f"Sequences must not be longer than `max_position_embeddings`. Received: length={length}, "
                f"max_position_embeddings={self.config.max_position_embeddings}; truncate texts or raise the limit."
            )
