"""SentencePiece in TensorFlow graphs: tensorflow-text's general op with the same model as in Python.

Known limits: if two splits of a text have exactly equal scores ("!!!!" as "!" + "!!!" or as "!!!" + "!"), rounding
decides, and the op may choose differently from the Python library. If a user-defined piece begins inside another one
("@user" and "ser!" in "@user!"), their offsets may differ from Python's.

Letters: B batch, T ids of a text, S characters of a cleaned text, V vocabulary.
"""

# The checker's stubs of TensorFlow know little of ragged tensors, and tensorflow-text has none.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportReturnType=false, reportCallIssue=false
# pyright: reportOptionalMemberAccess=false, reportOptionalCall=false

import hashlib

import numpy as np
import tensorflow as tf
from tensorflow_text.python.ops.sentencepiece_tokenizer import gen_sentencepiece_tokenizer as ops

from albert_tf.tokenization.interface import CleanedInGraph, RaggedPieces
from albert_tf.tokenization.ragged import positions_in_rows, sums
from albert_tf.tokenization.sentencepiece.digit_comma import WORD_START, DigitCommaTable
from albert_tf.tokenization.sentencepiece.offsets import PieceParts
from albert_tf.tokenization.sentencepiece.pieces import starts_character
from albert_tf.tokenization.sentencepiece.proto import FIRST_BYTE_ID, WORD_START_ID, bytes_as_pieces


class SentencePieceInGraph(tf.Module):
    """`SentencePieceModel` in a graph; `spans` is required for offsets."""

    def __init__(self, model_proto: bytes, digit_comma: DigitCommaTable, spans: "SpansInGraph | None" = None):
        super().__init__()
        self._op = _Op(model_proto, tf.int32)
        self._digit_comma = digit_comma
        self._spans = spans

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Converts tf.string [B] to int32 ids [B, (T)], without special ids."""
        return _split_off_commas(self._digit_comma, self._op.tokenize(texts))

    def tokenize_with_offsets(self, texts: tf.Tensor) -> RaggedPieces:
        """Converts tf.string [B] to int32 ids [B, (T)] and offsets int32 [B, (T), 2] in bytes."""
        pieces = self._op.tokenize(texts)
        ids = _split_off_commas(self._digit_comma, pieces)
        return RaggedPieces(ids, self._spans(texts, pieces.values, ids))


class SpansInGraph(tf.Module):
    """Computes the offsets of ids: int32 [B, (T), 2], start and exclusive end in bytes of the original text.

    The op's own offsets do not show whether a piece ends inside a character of the original ("ﬁ" as "f" + "i").
    Therefore a second model with the same clean-up, whose pieces are single bytes, gives the origin of every character
    of the cleaned text, and pieces as strings give the number of characters of unknown pieces.

    Call arguments:
        texts: tf.string [B].
        pieces: int32, the ids of all texts before the digit-comma rule.
        ids: int32 [B, (T)], the ids after it.
    """

    def __init__(self, model_proto: bytes, pieces: tuple[str, ...], unk: int, parts: PieceParts):
        super().__init__()
        self._pieces = _Op(model_proto, tf.string)
        user_defined = [piece for index, piece in enumerate(pieces) if index in parts.user_defined]
        self._bytes = _Op(bytes_as_pieces(model_proto, user_defined), tf.int32)
        counts = [1] * FIRST_BYTE_ID + [int(starts_character(byte)) for byte in range(256)]
        self._characters = np.array(counts + list(map(len, user_defined)), np.int32)
        self._unk = unk
        self._row_splits = parts.digit_comma.row_splits
        lengths = [length for index, piece in enumerate(pieces) for length in parts.lengths(index, piece)]
        self._lengths = np.array(lengths, np.int32)

    def __call__(self, texts: tf.Tensor, pieces: tf.Tensor, ids: tf.RaggedTensor) -> tf.RaggedTensor:
        lengths = self._count_characters(texts, pieces)
        spans = self._locate(texts, ids.with_values(tf.maximum(lengths, 0)))
        if (self._lengths >= 0).all():
            return spans
        # Ids that continue the character, or the user-defined piece, of the previous id have the same span.
        begins = lengths >= 0
        first = tf.boolean_mask(spans.values, begins)
        return spans.with_values(tf.gather(first, tf.cumsum(tf.cast(begins, tf.int32)) - 1))

    def _count_characters(self, texts: tf.Tensor, pieces: tf.Tensor) -> tf.Tensor:
        """The number of characters of the cleaned text for each id after the digit-comma rule, or CONTINUED."""
        table = tf.RaggedTensor.from_row_splits(self._lengths, self._row_splits, validate=False)  # [V, (parts)]
        known = tf.gather(table, pieces)  # [T, (parts)]
        unknown = tf.strings.length(self._pieces.tokenize(texts).values, unit="UTF8_CHAR")
        counts = known.row_lengths()
        is_unknown = tf.repeat(tf.equal(pieces, self._unk), counts)
        return tf.where(is_unknown, tf.repeat(unknown, counts), known.values)

    def _locate(self, texts: tf.Tensor, lengths: tf.RaggedTensor) -> tf.RaggedTensor:
        origins, begins_bare = self._find_origins(texts)
        row_ids = lengths.value_rowids()
        first = tf.gather(origins.row_starts(), row_ids)  # [T], as all that follow, of all texts
        starts = first + positions_in_rows(lengths)
        ends = starts + lengths.values
        start = tf.gather(origins.values, starts)
        end = tf.where(starts < ends, _next_origin(origins, tf.maximum(ends - 1, first)), start)
        # A separate piece for the word start that SentencePiece adds before a text has an empty span.
        is_bare = tf.gather(begins_bare, row_ids) & (lengths.values == 1)
        is_bare &= tf.range(tf.size(row_ids)) == tf.gather(lengths.row_starts(), row_ids)
        is_alone = tf.gather(lengths.row_lengths(), row_ids) == 1
        start = tf.where(is_bare & ~is_alone, tf.concat([start[1:], start[:1]], axis=0), start)
        return lengths.with_values(tf.stack([start, tf.where(is_bare, start, end)], axis=1))

    def _find_origins(self, texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """The origin of each character and of the end, [B, (S + 1)], and whether the first piece is a word start."""
        ids, starts, limits = self._bytes.tokenize_with_offsets(texts)
        counts = tf.gather(self._characters, ids.values)
        splits = tf.gather(sums(counts), ids.row_splits)
        repeated = tf.repeat(tf.cast(starts.values, tf.int32), counts)
        origins = tf.RaggedTensor.from_row_splits(repeated, splits, validate=False)
        last = tf.maximum(tf.reduce_max(tf.cast(limits, tf.int32), axis=1), 0)  # [B], 0 where the text is empty
        begins_bare = tf.equal(tf.squeeze(ids[:, :1].to_tensor(shape=[None, 1]), axis=1), WORD_START_ID)
        return tf.concat([origins, last[:, tf.newaxis]], axis=1), begins_bare


class SentencePieceCleanUp(tf.Module):
    """`SentencePieceModel.clean` in a graph, from tf.string [B]."""

    def __init__(self, model_proto: bytes):
        super().__init__()
        self._bytes = _Op(bytes_as_pieces(model_proto, keep_white_space=True), tf.int32)
        self._written = [b"", WORD_START.encode(), *(bytes([byte]) for byte in range(256))]

    def __call__(self, texts: tf.Tensor) -> CleanedInGraph:
        ids, starts, _ = self._bytes.tokenize_with_offsets(texts)
        written = ids.with_values(tf.gather(self._written, ids.values))
        counts = tf.strings.length(written.values)
        origins = tf.repeat(tf.cast(starts.values, tf.int32), counts)
        splits = tf.gather(sums(counts), ids.row_splits)
        return CleanedInGraph(
            tf.strings.reduce_join(written, axis=-1), tf.RaggedTensor.from_row_splits(origins, splits, validate=False)
        )


class _Op(tf.Module):
    """`tensorflow_text.SentencepieceTokenizer`, whose model lasts as long as the process.

    There, the model belongs to the kernel that read it, and `keras.utils.set_random_seed` deletes all kernels. A model
    with a name belongs to the process. The name is the model's digest, so that all layers and loaded SavedModels with
    the same vocabulary share one, and others do not.
    """

    def __init__(self, model_proto: bytes, out_type: tf.DType):
        super().__init__()
        self._model = _Model(model_proto)
        self._options = (0, 1.0, False, False, False, out_type)  # no sampling, nothing added, not reversed

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Converts tf.string [B] to ids or pieces, [B, (T)]."""
        ids, splits = ops.sentencepiece_tokenize_op(self._model.resource_handle, texts, *self._options)
        return tf.RaggedTensor.from_row_splits(ids, splits, validate=False).with_row_splits_dtype(tf.int32)

    def tokenize_with_offsets(self, texts: tf.Tensor) -> list[tf.RaggedTensor]:
        """Converts tf.string [B] to ids or pieces, and their starts and ends in bytes: [B, (T)] each."""
        ids, splits, starts, ends = ops.sentencepiece_tokenize_with_offsets_op(
            self._model.resource_handle, texts, *self._options
        )
        rows = (tf.RaggedTensor.from_row_splits(values, splits, validate=False) for values in (ids, starts, ends))
        return [row.with_row_splits_dtype(tf.int32) for row in rows]


class _Model(tf.saved_model.experimental.TrackableResource):
    """A model in the memory of TensorFlow."""

    def __init__(self, model_proto: bytes):
        super().__init__()
        self._proto = model_proto
        _ = self.resource_handle  # creates it, outside of all graphs

    def _create_resource(self) -> tf.Tensor:
        name = f"sentencepiece_{hashlib.sha256(self._proto).hexdigest()}"
        return ops.sentencepiece_op(model=self._proto, shared_name=name)


def _next_origin(origins: tf.RaggedTensor, indices: tf.Tensor) -> tf.Tensor:
    """The first different origin after each of `indices`, or the row's last one: int32 like `indices`.

    If a character became several, every id with a part of it covers all of it.
    """
    row_ids = origins.value_rowids()
    keys = tf.cast(row_ids, tf.int64) * (1 << 32) + tf.cast(origins.values, tf.int64)
    following = tf.searchsorted(keys, tf.gather(keys, indices), side="right")
    last = tf.gather(origins.row_limits(), tf.gather(row_ids, indices)) - 1
    return tf.gather(origins.values, tf.minimum(following, last))


def _split_off_commas(table: DigitCommaTable, rows: tf.RaggedTensor) -> tf.RaggedTensor:
    """As `digit_comma.apply_digit_comma`, from and to int32 [B, (T)]; batches without such pieces are not copied."""
    if not table.pieces:
        return rows
    parts = tf.RaggedTensor.from_row_splits(table.values, table.row_splits, validate=False)  # [V, (ids)]

    def split() -> tuple[tf.Tensor, tf.Tensor]:
        replaced = rows.with_values(tf.gather(parts, rows.values)).merge_dims(1, 2)
        return replaced.values, replaced.row_splits

    is_whole = tf.reduce_all(tf.equal(tf.gather(table.lengths, rows.values), 1))
    ids, splits = tf.cond(is_whole, lambda: (rows.values, rows.row_splits), split)
    return tf.RaggedTensor.from_row_splits(ids, splits, validate=False)
