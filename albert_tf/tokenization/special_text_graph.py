"""Texts that hold special pieces, inside a TensorFlow graph. B texts, P parts of a text, T ids."""

# The checker's stubs of TensorFlow know little of ragged tensors.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportReturnType=false

import re
from collections.abc import Mapping

import tensorflow as tf

from albert_tf.tokenization.piece_model import PiecesInGraph, RaggedPieces

# Bytes that are no UTF-8 and that nobody writes.
_BORDER = b"\xff\x00[special]\xff"


class SplitAtSpecialInGraph(tf.Module):
    """Splits texts at special pieces and leaves what is between them to other pieces.

    Args:
        pieces: another model's part in the graph.
        ids: the special pieces and their ids.
    """

    def __init__(self, pieces: PiecesInGraph, ids: Mapping[str, int]):
        super().__init__()
        self._pieces = pieces
        self._pattern = f"({'|'.join(map(re.escape, ids))})"
        self._literals, self._ids = list(ids), list(ids.values())

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Turns tf.string [B] into int32 ids [B, (T)]."""
        parts, is_literal = self._split(texts)
        ids = self._pieces.tokenize(_between(parts, is_literal))
        return self._join(parts, ids, self._special(is_literal))

    def tokenize_with_offsets(self, texts: tf.Tensor) -> RaggedPieces:
        """Turns tf.string [B] into int32 ids [B, (T)] and spans int32 [B, (T), 2] in bytes of the texts."""
        parts, is_literal = self._split(texts)
        between = self._pieces.tokenize_with_offsets(_between(parts, is_literal))
        special = self._special(is_literal)
        lengths = tf.strings.length(parts.values)
        before = tf.cumsum(lengths, exclusive=True)
        before -= tf.gather(before, tf.gather(parts.row_starts(), parts.value_rowids()))
        sides = []
        for side, own in ((0, tf.zeros_like(lengths)), (1, lengths)):
            spans = between.ids.with_values(between.offsets.values[:, side])
            of_special = special.with_values(tf.gather(own, special.value_rowids()))
            sides.append(self._join(parts, _shift(spans, before), _shift(of_special, before)))
        ids = self._join(parts, between.ids, special)
        return RaggedPieces(ids, ids.with_values(tf.stack([side.values for side in sides], axis=1)))

    def _split(self, texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Returns the parts, [B, (P)], and which special piece each of all parts is: bool [parts, special pieces]."""
        marked = tf.strings.regex_replace(texts, self._pattern, _BORDER + rb"\1" + _BORDER)
        parts = tf.strings.split(marked, _BORDER).with_row_splits_dtype(tf.int32)
        return parts, tf.equal(parts.values[:, tf.newaxis], self._literals)

    def _special(self, is_literal: tf.Tensor) -> tf.RaggedTensor:
        places = tf.cast(tf.where(is_literal), tf.int32)
        counts = tf.reduce_sum(tf.cast(is_literal, tf.int32), axis=1)
        return tf.RaggedTensor.from_row_lengths(tf.gather(self._ids, places[:, 1]), counts, validate=False)

    def _join(self, parts: tf.RaggedTensor, between: tf.RaggedTensor, special: tf.RaggedTensor) -> tf.RaggedTensor:
        """Puts what belongs to each part, of which one of the two is empty, behind one another: [B, (T)]."""
        return parts.with_values(tf.concat([between, special], axis=1)).merge_dims(1, 2)


def _between(parts: tf.RaggedTensor, is_literal: tf.Tensor) -> tf.Tensor:
    return tf.where(tf.reduce_any(is_literal, axis=1), "", parts.values)


def _shift(spans: tf.RaggedTensor, before: tf.Tensor) -> tf.RaggedTensor:
    return spans.with_values(spans.values + tf.gather(before, spans.value_rowids()))
