"""A vocabulary file's pieces inside a TensorFlow graph.

The clean-up and the borders of words are our own, so that they are Python's to the last code point; tensorflow-text's
fast WordPiece op splits the words. B texts, C characters after the clean-up, W words of all texts, T ids.
"""

# The checker's stubs of TensorFlow know little of ragged tensors.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportReturnType=false
# pyright: reportOptionalMemberAccess=false

from dataclasses import dataclass

import numpy as np
import tensorflow as tf
import tensorflow_text

from albert_tf.tokenization.characters import SPACE, CleanUp
from albert_tf.tokenization.characters_in_graph import RESERVED, CleanedTexts, CleanUpInGraph, decode, find_spans
from albert_tf.tokenization.longest_match import MAX_WORD_LENGTH, LongestMatch
from albert_tf.tokenization.piece_model import RaggedPieces
from albert_tf.tokenization.ragged import follows_in_row, sums
from albert_tf.tokenization.vocabulary_file import END_MARK, WORD_END
from albert_tf.tokenization.wordpiece_folder import WordPieceOptions

# No piece and no cleaned text holds this character, so no word is taken for a piece inside a word.
_INSIDE = chr(RESERVED)
# No word holds a space, so none is spelled like the piece that stands for unknown words, and this is no piece.
_UNKNOWN, _NO_PIECE = " unknown", "  "
_ENDLESS = np.iinfo(np.int32).max
_BYTES_OF_A_CHARACTER = 4


class WordPieceInGraph(tf.Module):
    """Pieces of texts in the graph, with the ids that `WordPieceModel` gives.

    Args:
        match: what splits a word.
        clean_up: what is done to each character.
        options: how pieces make words.
    """

    def __init__(self, match: LongestMatch, clean_up: CleanUp, options: WordPieceOptions):
        super().__init__()
        self._options = options
        self._clean_up = CleanUpInGraph(clean_up)
        following = {_INSIDE + piece: index for piece, index in match.following.items()}
        spelled = {_UNKNOWN: match.unknown, **match.initial, **following}
        self._ids = np.array(list(spelled.values()), np.int32)
        # An unknown word is one piece, however long it is.
        self._lengths = np.array(
            [_ENDLESS, *map(len, match.initial), *(len(piece) - 1 for piece in following)], np.int32
        )
        self._match = tensorflow_text.FastWordpieceTokenizer(
            list(spelled),
            suffix_indicator=_INSIDE,
            max_bytes_per_word=_BYTES_OF_A_CHARACTER * (MAX_WORD_LENGTH + len(END_MARK)),
            token_out_type=tf.int32,
            unknown_token=_UNKNOWN,
            no_pretokenization=True,
        )

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Turns tf.string [B] into int32 ids [B, (T)], without special ones."""
        words = _split_words(self._clean_up(decode(texts))).characters
        pieces = self._split_pieces(words)
        return words.with_values(pieces.with_values(tf.gather(self._ids, pieces.values))).merge_dims(1, 2)

    def tokenize_with_offsets(self, texts: tf.Tensor) -> RaggedPieces:
        """Turns tf.string [B] into int32 ids [B, (T)] and spans int32 [B, (T), 2] in bytes of the texts."""
        cleaned = self._clean_up(decode(texts))
        words = _split_words(cleaned)
        pieces = self._split_pieces(words.characters)
        lengths = pieces.with_values(tf.gather(self._lengths, pieces.values))
        spans = _place_pieces(words, lengths, find_spans(texts, cleaned))
        ids = pieces.with_values(tf.gather(self._ids, pieces.values))
        return RaggedPieces(*(words.characters.with_values(each).merge_dims(1, 2) for each in (ids, spans)))

    def _split_pieces(self, words: tf.RaggedTensor) -> tf.RaggedTensor:
        """Returns the pieces of each word, int32 [W, (pieces)], as numbers of `_ids`."""
        return self._match.tokenize(self._spell(words)).with_row_splits_dtype(tf.int32)

    def _spell(self, words: tf.RaggedTensor) -> tf.Tensor:
        """Returns the words as strings, as they are to be matched: tf.string [W]. words: [B, (words), (characters)]."""
        spelled, lengths = tf.strings.unicode_encode(words.values, "UTF-8"), words.values.row_lengths()
        if self._options.scheme == WORD_END:
            rows = words.value_rowids()
            ends_text = tf.concat([tf.not_equal(rows[1:], rows[:-1]), tf.ones_like(rows[:1], tf.bool)], axis=0)
            bare = ends_text & self._options.bare_final
            spelled += tf.where(bare, "", END_MARK)
            lengths += tf.cast(~bare, tf.int32)
        return tf.where(lengths > MAX_WORD_LENGTH, _NO_PIECE, spelled)


@dataclass(frozen=True)
class _Words:
    """Words of texts.

    Attributes:
        characters: int32 [B, (words), (characters)].
        places: int32, for each character of all words, which one of all cleaned texts it is.
    """

    characters: tf.RaggedTensor
    places: tf.Tensor


def _split_words(cleaned: CleanedTexts) -> _Words:
    """Puts characters together to words."""
    rows = cleaned.characters
    is_space = tf.equal(rows.values, SPACE)
    joins = ~(is_space | cleaned.alone)
    starts = ~is_space & ~(joins & follows_in_row(rows, joins))
    places = tf.cast(tf.where(~is_space)[:, 0], tf.int32)
    first = tf.cast(tf.where(tf.gather(starts, places))[:, 0], tf.int32)
    words = tf.RaggedTensor.from_row_starts(tf.gather(rows.values, places), first, validate=False)
    splits = tf.gather(sums(tf.cast(starts, tf.int32)), rows.row_splits)
    return _Words(tf.RaggedTensor.from_row_splits(words, splits, validate=False), places)


def _place_pieces(words: _Words, lengths: tf.RaggedTensor, spans: tf.Tensor) -> tf.RaggedTensor:
    """Returns the span of each piece.

    Args:
        words: the words.
        lengths: int32 [W, (pieces)], how many characters each piece takes; more than the word has where it is unknown,
            or holds the mark of a word's end.
        spans: int32 [C, 2], where each character of the cleaned texts comes from.

    Returns:
        int32 [W, (pieces), 2].
    """
    inner = words.characters.values  # [W, (characters)]
    word_ids = lengths.value_rowids()
    taken = sums(tf.minimum(lengths.values, tf.gather(inner.row_lengths(), word_ids)))
    before = tf.gather(taken, tf.gather(lengths.row_starts(), word_ids))
    first, limit = (tf.gather(ends, word_ids) for ends in (inner.row_starts(), inner.row_limits()))
    starts, ends = (tf.minimum(first + part - before, limit) for part in (taken[:-1], taken[1:]))
    places = tf.gather(words.places, tf.maximum(ends - 1, first))
    end = tf.gather(spans[:, 1], places)
    start = tf.gather(spans[:, 0], tf.gather(words.places, tf.minimum(starts, limit - 1)))
    # A piece that only marks the end of a word takes nothing.
    return lengths.with_values(tf.stack([tf.where(starts < ends, start, end), end], axis=1))
