"""Where in the original text each id comes from, inside a TensorFlow graph: what `offsets` does in Python.

tensorflow-text's fast op tells of no offsets. Those of the general op are asked for instead, with the same clean-up but
with a vocabulary that has nothing except bytes: it gives every byte of the cleaned text, and where it comes from.

Letters: B batch, T pieces of a text, S characters of a cleaned text, V vocabulary.
"""

# The checker's stubs of TensorFlow know little of ragged tensors, and tensorflow-text has none.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportReturnType=false, reportCallIssue=false

import numpy as np
import tensorflow as tf
import tensorflow_text

from albert_tf.tokenization.model_proto import FIRST_BYTE_ID, WORD_START_ID, bytes_as_pieces
from albert_tf.tokenization.offsets import PieceParts
from albert_tf.tokenization.ragged import places_in_rows, select


class SpansInGraph(tf.Module):
    """Spans of pieces, in bytes of the original text.

    Args:
        model_proto: the serialised SentencePiece model with the clean-up inside.
        pieces: its pieces in order of ids.
        parts: how pieces are split behind the model.
    """

    def __init__(self, model_proto: bytes, pieces: tuple[str, ...], parts: PieceParts):
        super().__init__()
        self._op = tensorflow_text.SentencepieceTokenizer(model=bytes_as_pieces(model_proto), out_type=tf.int32)
        self._row_splits = parts.digit_comma.row_splits
        lengths = [length for index, piece in enumerate(pieces) for length in parts.lengths(index, piece)]
        self._lengths = np.array(lengths, np.int32)

    def lengths(self, whole: tf.Tensor, unknown_lengths: tf.Tensor) -> tf.Tensor:
        """Returns how many characters of the cleaned text each id takes after the digit-comma rule, or CONTINUED.

        Args:
            whole: int32 [T], ids before that rule, of all texts.
            unknown_lengths: int32 [T], how many unknown characters each of them stands for, 0 for a known piece.
        """
        table = tf.RaggedTensor.from_row_splits(self._lengths, self._row_splits, validate=False)  # [V, (parts)]
        known = tf.gather(table, whole)  # [T, (parts)]
        unknown = tf.repeat(unknown_lengths, known.row_lengths())
        return tf.where(unknown > 0, unknown, known.values)

    def of_pieces(self, texts: tf.Tensor, ids: tf.RaggedTensor, lengths: tf.Tensor) -> tf.RaggedTensor:
        """Returns the spans of pieces.

        Args:
            texts: tf.string [B].
            ids: int32 [B, (T)].
            lengths: int32, for each id of all texts: how many characters of the cleaned text it takes, or CONTINUED.

        Returns:
            int32 [B, (T), 2].
        """
        spans = self._place(texts, ids.with_values(tf.maximum(lengths, 0)))
        if (self._lengths >= 0).all():
            return spans
        # What goes on with the character, or the user-defined piece, in front covers it too.
        begins = lengths >= 0
        first = tf.boolean_mask(spans.values, begins)
        return spans.with_values(tf.gather(first, tf.cumsum(tf.cast(begins, tf.int32)) - 1))

    def _place(self, texts: tf.Tensor, lengths: tf.RaggedTensor) -> tf.RaggedTensor:
        places, begins_bare = self._origins(texts)
        row_ids = lengths.value_rowids()
        first = tf.gather(places.row_starts(), row_ids)  # [T], as all that follow, of all texts
        # Each row of places has one more than the cleaned text has characters. Where the ops see another text (a "▁" at
        # its end, with rules of a model's own), what is too much is taken for nothing, and no other text is touched.
        last = tf.gather(places.row_lengths(), row_ids) - 1
        starts = places_in_rows(lengths)
        starts, ends = (first + tf.minimum(place, last) for place in (starts, starts + lengths.values))
        start = tf.gather(places.values, starts)
        end = _next_origin(places, tf.maximum(ends - 1, first))
        end = tf.where(starts == ends, start, end)
        # The word start that SentencePiece itself puts in front of a text, as a piece of its own: made of nothing.
        is_bare = tf.gather(begins_bare, row_ids) & (lengths.values == 1)
        is_bare &= tf.range(tf.size(row_ids)) == tf.gather(lengths.row_starts(), row_ids)
        is_alone = tf.gather(lengths.row_lengths(), row_ids) == 1
        start = tf.where(is_bare & ~is_alone, tf.concat([start[1:], start[:1]], axis=0), start)
        return lengths.with_values(tf.stack([start, tf.where(is_bare, start, end)], axis=1))

    def _origins(self, texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Returns where each character comes from, [B, (S + 1)] with the end, and whether the first is a word start."""
        ids, starts, limits = (
            rows.with_row_splits_dtype(tf.int32) for rows in self._op.tokenize_with_offsets(texts)
        )  # [B, (bytes)]
        starts, limits = (rows.with_values(tf.cast(rows.values, tf.int32)) for rows in (starts, limits))
        begins_character = tf.bitwise.bitwise_and(ids.values - FIRST_BYTE_ID, 0xC0) != 0x80
        last = tf.maximum(tf.reduce_max(limits, axis=1), 0)  # [B], 0 where the text is empty
        places = tf.concat([select(starts, begins_character), last[:, tf.newaxis]], axis=1)
        return places, tf.squeeze(ids[:, :1].to_tensor(shape=[None, 1]), axis=1) == WORD_START_ID


def _next_origin(places: tf.RaggedTensor, indices: tf.Tensor) -> tf.Tensor:
    """Returns the first place behind those at `indices` that is another one, or the row's last: int32 like `indices`.

    A character that became several is covered by every id that holds a part of it.
    """
    row_ids = places.value_rowids()
    keys = tf.cast(row_ids, tf.int64) * (1 << 32) + tf.cast(places.values, tf.int64)
    following = tf.searchsorted(keys, tf.gather(keys, indices), side="right")
    last = tf.gather(places.row_limits(), tf.gather(row_ids, indices)) - 1
    return tf.gather(places.values, tf.minimum(following, last))
