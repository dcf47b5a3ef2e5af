"""Splits texts at tokens in TensorFlow graphs, as `SplitAtTokens`. B texts, P parts of a text, T ids."""

# The checker's stubs of TensorFlow know little of ragged tensors.
# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportReturnType=false, reportArgumentType=false

import sys
from dataclasses import dataclass

import tensorflow as tf

from albert_tf.tokenization.interface import CleanInGraph, PiecesInGraph, RaggedPieces, SpecialTokens
from albert_tf.tokenization.ragged import follows_in_row, positions_in_rows, select
from albert_tf.tokenization.splitting import pattern_of

# Invalid UTF-8 that does not occur in texts.
_BORDER = b"\xff\x00[special]\xff"
# All characters that `str.strip` removes.
WHITE_SPACE = "".join(filter(str.isspace, map(chr, range(sys.maxunicode + 1))))
_BEGINS_WITH_SPACE = rf"[{WHITE_SPACE}]\C*"
_BETWEEN = -1


@dataclass(frozen=True)
class _Parts:
    """Parts of texts: tokens, and texts between them."""

    texts: tf.RaggedTensor  # tf.string [B, (P)]
    ids: tf.Tensor  # int32 [parts], the id of a token, or -1


class SplitInGraph(tf.Module):
    """`SplitAtTokens` in a graph.

    Args:
        pieces: encodes what is between tokens.
        tokens: as for `SplitAtTokens`.
        clean: the clean-up after which tokens are matched, or None.
    """

    def __init__(self, pieces: PiecesInGraph, tokens: SpecialTokens, clean: CleanInGraph | None = None):
        super().__init__()
        self._pieces = pieces
        self._clean = clean
        self._pattern = pattern_of(tokens.ids)
        keys, ids = tf.constant(list(tokens.ids)), tf.constant(list(tokens.ids.values()), tf.int32)
        self._ids = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, ids), _BETWEEN)
        self._inside_words = tokens.inside_words

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Converts tf.string [B] to int32 ids [B, (T)]."""
        parts = self._split(texts)
        between, _ = self._continue_words(parts, self._pieces.tokenize(_between(parts)))
        return _join(parts, between, _tokens(parts))

    def tokenize_with_offsets(self, texts: tf.Tensor) -> RaggedPieces:
        """Converts tf.string [B] to int32 ids [B, (T)] and offsets int32 [B, (T), 2] in bytes."""
        parts = self._split(texts)
        encoded = self._pieces.tokenize_with_offsets(_between(parts))
        between, is_piece = self._continue_words(parts, encoded.ids)
        tokens = _tokens(parts)
        lengths = tf.strings.length(parts.texts.values)
        before = positions_in_rows(parts.texts.with_values(lengths))
        spans = between.with_values(tf.boolean_mask(encoded.offsets.values, is_piece))
        of_tokens = tf.gather(tf.stack([tf.zeros_like(lengths), lengths], axis=1), tokens.value_rowids())
        shifted = (
            rows.with_values(rows.values + tf.gather(before, rows.value_rowids())[:, tf.newaxis])
            for rows in (spans, tokens.with_values(of_tokens))
        )
        return RaggedPieces(_join(parts, between, tokens), _join(parts, *shifted))

    def _split(self, texts: tf.Tensor) -> _Parts:
        cleaned = texts if self._clean is None else self._clean(texts)
        searched = texts if self._clean is None else cleaned.texts
        marked = tf.strings.regex_replace(searched, self._pattern, _BORDER + rb"\1" + _BORDER)
        parts = tf.strings.split(marked, _BORDER).with_row_splits_dtype(tf.int32)
        parts_with_ids = _Parts(parts, self._ids.lookup(parts.values))
        return parts_with_ids if self._clean is None else _in_original(parts_with_ids, texts, cleaned.origins)

    def _continue_words(self, parts: _Parts, ids: tf.RaggedTensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Replaces pieces that follow a token without white space; returns ids, and a mask of those kept."""
        if self._inside_words is None:
            return ids, tf.ones_like(ids.values, tf.bool)
        follows = follows_in_row(parts.texts, parts.ids >= 0)
        follows &= ~tf.strings.regex_full_match(parts.texts.values, _BEGINS_WITH_SPACE)
        is_first = tf.range(tf.size(ids.values)) == tf.gather(ids.row_starts(), ids.value_rowids())
        continues = is_first & tf.gather(follows, ids.value_rowids())
        changed = tf.where(continues, tf.gather(self._inside_words, ids.values), ids.values)
        is_piece = changed >= 0
        return select(ids.with_values(changed), is_piece), is_piece


def _in_original(parts: _Parts, texts: tf.Tensor, origins: tf.RaggedTensor) -> _Parts:
    """Parts of the original texts, from those of cleaned texts and the origin of each byte of these, [B, (S)]."""
    rows = parts.texts.value_rowids()
    lengths = tf.strings.length(parts.texts.values)
    ends_of_texts = tf.concat([origins, tf.strings.length(texts)[:, tf.newaxis]], axis=1)  # [B, (S + 1)]
    first = tf.gather(ends_of_texts.row_starts(), rows)
    starts = first + positions_in_rows(parts.texts.with_values(lengths))
    # A token is made of whole characters, so none of its ends is inside one of the original.
    cut = tf.gather(ends_of_texts.values, starts)
    before, after = (
        tf.gather(ends_of_texts.values, tf.maximum(ends - 1, first)) for ends in (starts, starts + lengths)
    )
    whole = (tf.equal(starts, first) | (before < cut)) & (after < tf.gather(ends_of_texts.values, starts + lengths))
    ids = tf.where(whole, parts.ids, _BETWEEN)
    is_token = ids >= 0
    is_first = tf.equal(tf.range(tf.size(rows)), tf.gather(parts.texts.row_starts(), rows))
    begins = is_first | is_token | follows_in_row(parts.texts, is_token)
    edges = select(parts.texts.with_values(tf.where(is_first, 0, cut)), begins)
    bounds = tf.concat([edges, tf.strings.length(texts)[:, tf.newaxis]], axis=1)  # [B, (P + 1)]
    written = tf.strings.substr(tf.gather(texts, edges.value_rowids()), edges.values, (bounds[:, 1:] - edges).values)
    return _Parts(edges.with_values(written), tf.boolean_mask(ids, begins))


def _tokens(parts: _Parts) -> tf.RaggedTensor:
    """The id of each part that is a token: int32 [parts, (1 or 0)]."""
    is_token = parts.ids >= 0
    return tf.RaggedTensor.from_row_lengths(
        tf.boolean_mask(parts.ids, is_token), tf.cast(is_token, tf.int32), validate=False
    )


def _join(parts: _Parts, between: tf.RaggedTensor, tokens: tf.RaggedTensor) -> tf.RaggedTensor:
    """Concatenates the ids of parts, each either from `between` or from `tokens`: [B, (T)]."""
    return parts.texts.with_values(tf.concat([between, tokens], axis=1)).merge_dims(1, 2)


def _between(parts: _Parts) -> tf.Tensor:
    return tf.where(parts.ids >= 0, "", parts.texts.values)
