"""SentencePiece inside a TensorFlow graph.

tensorflow-text has two SentencePiece ops. The fast one takes a third of the general one's time, and with the model that
`fast_op_model` makes for it its ids are SentencePiece's; pieces for bytes are put in behind it, and user-defined pieces
become normal ones that rules of the clean-up keep whole. It is silently wrong for models other than unigram, and cannot
take unused pieces, user-defined ones that hold white space or U+FFFD or of which 32 or more begin one another, or
white space that does not become a word start in front of each word: such models get the general op.

Known limit: where two splits of a text have exactly equal scores ("!!!!" as "!" + "!!!" or as "!!!" + "!"), rounding
decides, and the general op, which compares sums in mixed precision, does not always take the Python library's.

Known limit, too, with the fast op and a vocabulary whose own rules (identity, nfkc, nfkc_cf) make no spaces of "▁" and
U+FFFD, as the default ones do: every "▁" that a text ends in is a piece here, while the library drops it; and where a
piece holds U+FFFD, a byte that is no UTF-8 is unknown here, while the library reads it as that character.

Letters: B batch, T pieces of a text, V vocabulary.
"""

# The checker's stubs of TensorFlow know little of ragged tensors, and tensorflow-text has none.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportReturnType=false, reportCallIssue=false
# pyright: reportOptionalMemberAccess=false, reportMissingImports=false

from dataclasses import dataclass

import numpy as np
import tensorflow as tf
import tensorflow_text
from tensorflow_text.core.pybinds import pywrap_model_converter
from tensorflow_text.python.ops.fast_sentencepiece_tokenizer import gen_fast_sentencepiece_tokenizer

from albert_tf.tokenization.digit_comma import DigitCommaTable
from albert_tf.tokenization.fast_op_model import complete_fast_model
from albert_tf.tokenization.model_proto import without_bytes
from albert_tf.tokenization.piece_model import RaggedPieces
from albert_tf.tokenization.ragged import precedes_in_row, rows_of, select, sums
from albert_tf.tokenization.spans_in_graph import SpansInGraph
from albert_tf.tokenization.spelling_in_graph import SpellingInGraph

# Two code points that will never be characters: no vocabulary has them and no clean-up changes them. A byte that is no
# UTF-8 is read as either; where both readings agree there is no such byte.
_REPLACEMENT, _OTHER_REPLACEMENT = 0x10FFFF, 0x10FFFE


@dataclass(frozen=True)
class GraphOptions:
    """How a vocabulary is used in the graph.

    Attributes:
        unk: the id of text that no piece covers.
        fast: take the fast op.
        special_ids: the ids of special pieces that texts yield.
        bare_start: the id of a word start that is a piece by itself; it goes where a special piece follows.
    """

    unk: int
    fast: bool
    special_ids: tuple[int, ...] = ()
    bare_start: int = -1


class SentencePieceInGraph(tf.Module):
    """Pieces of texts in the graph, with the ids that `SentencePieceModel` gives.

    Args:
        model_proto: the serialised SentencePiece model with the clean-up inside.
        digit_comma: the digit-comma rule.
        options: see `GraphOptions`.
        spelling: what spells unknown characters, where the vocabulary has pieces for bytes and the fast op is taken.
        spans: what knows where pieces come from; None where offsets are not asked for.
    """

    def __init__(
        self,
        model_proto: bytes,
        digit_comma: DigitCommaTable,
        options: GraphOptions,
        spelling: SpellingInGraph | None = None,
        spans: SpansInGraph | None = None,
    ):
        super().__init__()
        plain = without_bytes(model_proto) if spelling else model_proto
        self._op = FastOp(plain, options.unk, spelling) if options.fast else _GeneralOp(model_proto)
        self._digit_comma = digit_comma
        self._options = options
        self._spans = spans

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Turns tf.string [B] into int32 ids [B, (T)], without special ones."""
        ids = _split_off_commas(self._digit_comma, self._op.tokenize(texts).ids)
        return select(ids, self._kept(ids)) if self._options.special_ids else ids

    def tokenize_with_offsets(self, texts: tf.Tensor) -> RaggedPieces:
        """Turns tf.string [B] into int32 ids [B, (T)] and spans int32 [B, (T), 2] in bytes of the texts."""
        whole = self._op.tokenize(texts)
        lengths = self._spans.lengths(whole.ids.values, whole.unknown_lengths)
        ids = _split_off_commas(self._digit_comma, whole.ids)
        offsets = self._spans.of_pieces(texts, ids, lengths)
        if not self._options.special_ids:
            return RaggedPieces(ids, offsets)
        kept = self._kept(ids)
        return RaggedPieces(select(ids, kept), select(offsets, kept))

    def _kept(self, ids: tf.RaggedTensor) -> tf.Tensor:
        is_special = tf.reduce_any(ids.values[:, tf.newaxis] == self._options.special_ids, axis=1)
        return (ids.values != self._options.bare_start) | ~precedes_in_row(ids, is_special)


@dataclass(frozen=True)
class WholePieces:
    """What an op gives, before the digit-comma rule.

    Attributes:
        ids: int32 [B, (T)].
        unknown_lengths: int32, for each id of all rows: how many unknown characters it stands for.
    """

    ids: tf.RaggedTensor
    unknown_lengths: tf.Tensor | None = None


class _GeneralOp(tf.Module):
    def __init__(self, model_proto: bytes):
        super().__init__()
        self._op = tensorflow_text.SentencepieceTokenizer(model=model_proto, out_type=tf.int32)

    def tokenize(self, texts: tf.Tensor) -> WholePieces:
        return WholePieces(self._op.tokenize(texts).with_row_splits_dtype(tf.int32))


class FastOp(tf.Module):
    """The fast op over a model that knows all characters: unknown ones come out one by one.

    They are joined, or spelled in bytes where they are to be.

    Args:
        model_proto: the serialised model as the op can take it, without pieces for bytes.
        unk: the id of <unk>.
        spelling: what spells unknown characters.
    """

    def __init__(self, model_proto: bytes, unk: int, spelling: SpellingInGraph | None = None):
        super().__init__()
        model = complete_fast_model(pywrap_model_converter.convert_sentencepiece_model(model_proto))
        self._model = tf.constant(np.frombuffer(model.buffer, np.uint8))
        self._unknown = model.unknown_id
        self._unk = unk
        self._spelling = spelling

    def tokenize(self, texts: tf.Tensor) -> WholePieces:
        add_bos = add_eos = reverse = False
        flat, splits = gen_fast_sentencepiece_tokenizer.tf_text_fast_sentencepiece_tokenize(
            self._model, _spell_out(texts), 0, 0, add_bos, add_eos, reverse
        )
        is_unknown = tf.equal(flat, self._unknown)
        if self._spelling:
            ids = tf.RaggedTensor.from_row_splits(flat, tf.cast(splits, tf.int32), validate=False)
            ids = self._spelling(texts, ids, is_unknown)
            return WholePieces(ids, tf.zeros_like(ids.values))
        ids, splits = tf.where(is_unknown, self._unk, flat), tf.cast(splits, tf.int32)
        neighbours = tf.reduce_any(is_unknown[1:] & is_unknown[:-1])
        ids, splits, lengths = tf.cond(
            neighbours,
            lambda: _join_unknown(ids, splits, is_unknown),
            lambda: (ids, splits, tf.cast(is_unknown, tf.int32)),
        )
        return WholePieces(tf.RaggedTensor.from_row_splits(ids, splits, validate=False), lengths)


def _join_unknown(ids: tf.Tensor, splits: tf.Tensor, is_unknown: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Makes one id of unknown ones that follow each other in a text.

    Args:
        ids: int32 [T], of all texts.
        splits: int32 [B + 1], where each text begins and ends.
        is_unknown: bool [T].

    Returns:
        Ids and splits as given, fewer; and int32, for each of these ids how many unknown ones it stands for.
    """
    rows = rows_of(splits)
    goes_on = is_unknown[1:] & is_unknown[:-1] & tf.equal(rows[1:], rows[:-1])
    begins = tf.concat([[True], ~goes_on], axis=0)
    first = tf.cast(tf.where(begins)[:, 0], tf.int32)  # of several unknown ids, and every other id
    unknown_before = tf.gather(sums(tf.cast(is_unknown, tf.int32)), tf.concat([first, splits[-1:]], axis=0))
    new_splits = tf.gather(sums(tf.cast(begins, tf.int32)), splits)
    return tf.gather(ids, first), new_splits, unknown_before[1:] - unknown_before[:-1]


def _split_off_commas(table: DigitCommaTable, rows: tf.RaggedTensor) -> tf.RaggedTensor:
    """As `digit_comma.apply_digit_comma`: int32 [B, (T)] in and out, more ids in the same rows.

    Few batches hold a piece that the rule splits; the others are not made anew.
    """
    if not table.pieces:
        return rows
    ids, splits = rows.values, rows.row_splits
    lengths = tf.gather(table.lengths, ids)

    def split() -> tuple[tf.Tensor, tf.Tensor]:
        starts = sums(lengths)
        # How far each output id's place inside `values` is from its place in the output.
        shift = tf.gather(tf.gather(table.row_splits, ids) - starts[:-1], rows_of(starts))
        parts = tf.gather(table.values, shift + tf.range(starts[-1]))
        return parts, tf.gather(starts, splits)

    ids, splits = tf.cond(tf.reduce_all(tf.equal(lengths, 1)), lambda: (ids, splits), split)
    return tf.RaggedTensor.from_row_splits(ids, splits, validate=False)


def _spell_out(texts: tf.Tensor) -> tf.Tensor:
    """Turns each byte that is no UTF-8 into a replacement character, as SentencePiece reads it.

    The fast op would drop what the clean-up deletes from between two such bytes, and take them for a character.
    """
    return tf.cond(tf.reduce_all(is_utf8(texts)), lambda: texts, lambda: _replace_bytes(texts))


def is_utf8(texts: tf.Tensor) -> tf.Tensor:
    """Tells which texts are UTF-8: bool [B]. A third of the time of decoding them and looking for replacements.

    Spelled as ranges, because TensorFlow's regular expressions are lax about what "any character" may be.
    """
    return tf.strings.regex_full_match(texts, r"[\x{0}-\x{D7FF}\x{E000}-\x{10FFFF}]*")


def _replace_bytes(texts: tf.Tensor) -> tf.Tensor:
    # Bare ops, no ragged tensors: every new iterator of tf.data optimises these nodes, used or not, and ten times as
    # many would take it a quarter of a second.
    decode = {"input": texts, "input_encoding": "UTF-8", "errors": "replace", "Tsplits": tf.int64}
    splits, points, starts = tf.raw_ops.UnicodeDecodeWithOffsets(replacement_char=_REPLACEMENT, **decode)
    _, others = tf.raw_ops.UnicodeDecode(replacement_char=_OTHER_REPLACEMENT, **decode)
    borders = sums(tf.strings.length(texts))  # of the texts, among the bytes of all
    places = tf.cast(starts, tf.int32) + tf.gather(borders, rows_of(splits))
    widths = tf.concat([places[1:], borders[-1:]], axis=0) - places
    # Both libraries agree on what is wrong, but TensorFlow reads a character that breaks off as one.
    new = sums(tf.where(tf.equal(points, others), 1, widths))
    repeated = tf.gather(points, rows_of(new))
    return tf.raw_ops.UnicodeEncode(
        input_values=repeated, input_splits=tf.gather(new, splits), errors="replace", output_encoding="UTF-8"
    )
