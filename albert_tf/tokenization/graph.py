"""The tokenizer inside a TensorFlow graph: raw strings in, the model's inputs out. B batch, L sequence.

The only module of the tokenizer that imports TensorFlow and tensorflow-text.

tensorflow-text has two SentencePiece ops. `FastSentencepieceTokenizer` is two to four times as fast, but it is silently
wrong for models other than unigram, and cannot take pieces that stand for bytes or are unused. `SentencepieceTokenizer`
takes every model. Each model gets the fast op where it can have it.

Known limit: where two splits of a text have exactly equal scores ("!!!!" as "!" + "!!!" or "!!!" + "!"), rounding
decides, and it is not the Python library's. The fast op weighs unknown characters and user-defined symbols otherwise,
so it can differ only behind one of these; the general op compares sums in mixed precision and can differ anywhere. On
164,959 lines, half of them Korean under the English vocabulary, that was 17 lines for the fast op and 126 for the
general one.
"""

# The checker's stubs of TensorFlow know little of ragged tensors.
# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportReturnType=false, reportArgumentType=false

import keras
import tensorflow as tf
import tensorflow_text

from albert_tf.tokenization.batching import BatchLayout, SpecialIds
from albert_tf.tokenization.digit_comma import DigitCommaTable


class TokenizerLayer(keras.layers.Layer):
    """Tokenizes strings in the graph with the ids that the Python tokenizer gives; made by `AlbertTokenizer.as_layer`.

    A SavedModel carries the SentencePiece model along. Strings cannot be compiled by XLA: keep the layer in the input
    pipeline, or in a serving signature in front of the model.

    Args:
        model_proto: the serialised SentencePiece model with the clean-up inside.
        digit_comma: the digit-comma rule.
        special: the ids of [PAD], [CLS] and [SEP].
        layout: length and padding. Rows that do not fit are cut.
        fast: use the fast op, which takes unigram models without byte pieces and unused ones.

    Call arguments:
        texts: tf.string [B], UTF-8, or a pair of such tensors for first and second texts.

    Returns:
        A dict of int32 [B, L]: `input_ids`, `attention_mask` and `token_type_ids`, as `AlbertTokenizer` returns them. B
        is free, and so is L where padding is "longest".

    Raises:
        ValueError: if a tensor is not of rank 1, or more than two are given.
    """

    def __init__(
        self,
        model_proto: bytes,
        digit_comma: DigitCommaTable,
        special: SpecialIds,
        layout: BatchLayout,
        fast: bool = True,
        name: str | None = None,
    ):
        super().__init__(name=name, trainable=False, autocast=False)
        self.supports_jit = False
        self._layout = layout
        self._special = special
        self._sentencepiece = _fast_op(model_proto) if fast else _general_op(model_proto)
        self._digit_comma = digit_comma

    def call(self, texts: tf.Tensor | tuple[tf.Tensor, tf.Tensor]) -> dict[str, tf.Tensor]:
        rows = [self._tokenize(text) for text in _as_tensors(texts)]
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

    def _tokenize(self, text: tf.Tensor) -> tf.RaggedTensor:
        ids = self._sentencepiece.tokenize(text).with_row_splits_dtype(tf.int32)  # [B, (T)]
        if not self._digit_comma.pieces:
            return ids
        table = tf.RaggedTensor.from_row_splits(self._digit_comma.values, self._digit_comma.row_splits, validate=False)
        return ids.with_flat_values(tf.gather(table, ids.flat_values)).merge_dims(1, 2)

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


def _fast_op(model_proto: bytes) -> tensorflow_text.FastSentencepieceTokenizer:
    return tensorflow_text.FastSentencepieceTokenizer(model_proto)


def _general_op(model_proto: bytes) -> tensorflow_text.SentencepieceTokenizer:
    return tensorflow_text.SentencepieceTokenizer(model=model_proto, out_type=tf.int32)


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
