"""Characters that are no piece, spelled in pieces for bytes inside a TensorFlow graph: SentencePiece's byte fallback.

Letters: B batch, T ids of all texts, U those of texts with something unknown, S characters of these texts.
"""

# The checker's stubs of TensorFlow know little of ragged tensors, and tensorflow-text has none.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportReturnType=false, reportCallIssue=false

from dataclasses import dataclass

import numpy as np
import tensorflow as tf
import tensorflow_text

from albert_tf.tokenization.model_proto import FIRST_BYTE_ID, bytes_as_pieces
from albert_tf.tokenization.ragged import places_in_rows, rows_of, sums


class SpellingInGraph(tf.Module):
    """Spells unknown characters. Few texts hold any; the others are not looked at.

    Args:
        model_proto: the serialised SentencePiece model with the clean-up inside.
        pieces: its pieces in order of ids.
        byte_ids: the ids of those that stand for a byte, that of byte 0 first.

    Call arguments:
        texts: tf.string [B].
        ids: int32 [B, (T)], the number of pieces for each unknown character.
        is_unknown: bool [T].

    Returns:
        int32 [B, (T)], more ids in the same rows.
    """

    def __init__(self, model_proto: bytes, pieces: tuple[str, ...], byte_ids: tuple[int, ...]):
        super().__init__()
        self._op = tensorflow_text.SentencepieceTokenizer(model=bytes_as_pieces(model_proto), out_type=tf.int32)
        self._lengths = np.array([*map(len, pieces), 1], np.int32)
        self._byte_ids = np.array(byte_ids, np.int32)

    def __call__(self, texts: tf.Tensor, ids: tf.RaggedTensor, is_unknown: tf.Tensor) -> tf.RaggedTensor:
        values, splits = tf.cond(
            tf.reduce_any(is_unknown),
            lambda: self._spell(texts, ids, is_unknown),
            lambda: (ids.values, ids.row_splits),
        )
        return tf.RaggedTensor.from_row_splits(values, splits, validate=False)

    def _spell(self, texts: tf.Tensor, ids: tf.RaggedTensor, is_unknown: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns ids, and where each text begins and ends."""
        unknown_before = tf.gather(sums(tf.cast(is_unknown, tf.int32)), ids.row_splits)
        has_unknown = unknown_before[1:] > unknown_before[:-1]  # [B]
        spelled = self._read(tf.boolean_mask(texts, has_unknown))
        row_ids = tf.gather(tf.cumsum(tf.cast(has_unknown, tf.int32)) - 1, ids.value_rowids())  # of these texts
        first, limit = (
            tf.gather(splits, tf.maximum(row_ids, 0)) for splits in (spelled.row_splits[:-1], spelled.row_splits[1:])
        )
        places = first + places_in_rows(ids.with_values(tf.gather(self._lengths, ids.values)))
        places = tf.where(is_unknown, tf.minimum(places, limit - 1), 0)
        new = sums(tf.where(is_unknown, tf.gather(spelled.widths, places), 1))
        old = rows_of(new)  # which of the old ids each new one is made of
        inside = tf.range(new[-1]) - tf.gather(new, old)
        found = tf.gather(spelled.bytes, tf.gather(tf.gather(spelled.starts, places), old) + inside)
        of_bytes = tf.gather(self._byte_ids, tf.maximum(found, 0))
        values = tf.where(tf.gather(is_unknown, old), of_bytes, tf.gather(ids.values, old))
        return values, tf.gather(new, ids.row_splits)

    def _read(self, texts: tf.Tensor) -> "_Spelled":
        """Returns how the characters of texts are spelled, after the clean-up."""
        rows = self._op.tokenize(texts).with_row_splits_dtype(tf.int32)
        spelled = rows.values - FIRST_BYTE_ID
        begins = tf.not_equal(tf.bitwise.bitwise_and(spelled, 0xC0), 0x80)
        starts = tf.cast(tf.where(begins)[:, 0], tf.int32)
        limits = tf.concat([starts[1:], [tf.size(spelled)]], axis=0)
        splits = tf.gather(sums(tf.cast(begins, tf.int32)), rows.row_splits)
        return _Spelled(spelled, starts, limits - starts, splits)


@dataclass(frozen=True)
class _Spelled:
    """Characters of texts as bytes.

    Attributes:
        bytes: int32, the bytes of all characters; negative for a word start, which is one and not three.
        starts: int32 [S], where each character's bytes begin.
        widths: int32 [S], how many they are.
        row_splits: int32, where among the characters each text begins and ends.
    """

    bytes: tf.Tensor
    starts: tf.Tensor
    widths: tf.Tensor
    row_splits: tf.Tensor
