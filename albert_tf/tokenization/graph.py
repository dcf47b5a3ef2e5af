"""The tokenizer inside a TensorFlow graph: raw strings in, the model's inputs out. B batch, L sequence."""

# The checker's stubs of TensorFlow know little of ragged tensors.
# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportReturnType=false, reportArgumentType=false

import keras
import tensorflow as tf

from albert_tf.tokenization.batching import BatchLayout, SpecialIds
from albert_tf.tokenization.piece_model import PiecesInGraph


class TokenizerLayer(keras.layers.Layer):
    """Tokenizes strings in the graph with the ids that the Python tokenizer gives; made by `AlbertTokenizer.as_layer`.

    A SavedModel carries the vocabulary along. Strings cannot be compiled by XLA: keep the layer in the input
    pipeline, or in a serving signature in front of the model.

    Args:
        pieces: the piece model's part in the graph.
        special: the ids of [PAD], [CLS] and [SEP].
        layout: length and padding. Rows that do not fit are cut.

    Call arguments:
        texts: tf.string [B], UTF-8, or a pair of such tensors for first and second texts.

    Returns:
        A dict of int32 [B, L]: `input_ids`, `attention_mask` and `token_type_ids`, as `AlbertTokenizer` returns them. B
        is free, and so is L where padding is "longest".

    Raises:
        ValueError: if a tensor is not of rank 1, or more than two are given.
    """

    def __init__(self, pieces: PiecesInGraph, special: SpecialIds, layout: BatchLayout, name: str | None = None):
        super().__init__(name=name, trainable=False, autocast=False)
        self.supports_jit = False
        self._layout = layout
        self._special = special
        self._pieces = pieces

    def call(self, texts: tf.Tensor | tuple[tf.Tensor, tf.Tensor]) -> dict[str, tf.Tensor]:
        rows = [self._pieces.tokenize(text) for text in _as_tensors(texts)]
        first, *second = self._truncate(rows)
        cls, sep = (tf.fill([first.nrows(), 1], id_) for id_ in (self._special.cls, self._special.sep))
        parts = [cls, first, sep, *(part for pair in second for part in (pair, sep))]
        joined = tf.concat(parts, axis=1)  # [B, (L)]
        length = self._layout.max_length if self._layout.padding == "max_length" else None
        ids = joined.to_tensor(default_value=self._special.pad, shape=[None, length])  # [B, L]
        positions = tf.range(tf.shape(ids)[1])
        mask = positions < joined.row_lengths()[:, tf.newaxis]
        types = mask & (positions >= first.row_lengths()[:, tf.newaxis] + 2) if second else tf.zeros_like(mask)
        return {
            "input_ids": ids,
            "attention_mask": tf.cast(mask, tf.int32),
            "token_type_ids": tf.cast(types, tf.int32),
        }

    def _truncate(self, rows: list[tf.RaggedTensor]) -> list[tf.RaggedTensor]:
        room = self._layout.max_length - 1 - len(rows)
        if len(rows) == 1:
            return [rows[0][:, :room]]
        first, second = rows[0].row_lengths(), rows[1].row_lengths()
        # As in `batching.pair_lengths`.
        kept = (
            tf.minimum(first, tf.maximum(room - second, (room + 1) // 2)),
            tf.minimum(second, tf.maximum(room - first, room // 2)),
        )
        return [_cut(row, lengths) for row, lengths in zip(rows, kept, strict=True)]


def _as_tensors(texts: tf.Tensor | tuple[tf.Tensor, tf.Tensor]) -> list[tf.Tensor]:
    tensors = list(texts) if isinstance(texts, list | tuple) else [texts]
    if not 1 <= len(tensors) <= 2 or any(tensor.shape.rank != 1 for tensor in tensors):
        shapes = ", ".join(str(tensor.shape) for tensor in tensors)
        raise ValueError(f"`texts` must be one or two string tensors of shape [B]. Received: shapes {shapes}.")
    return tensors


def _cut(row: tf.RaggedTensor, lengths: tf.Tensor) -> tf.RaggedTensor:
    """Cuts each row to its own length, which is not more than it has."""
    positions = tf.ragged.range(row.row_lengths()).flat_values
    kept = positions < tf.repeat(lengths, row.row_lengths())
    return tf.RaggedTensor.from_row_lengths(tf.boolean_mask(row.flat_values, kept), lengths, validate=False)
