"""WordPiece in TensorFlow graphs.

Words are split by tensorflow-text's fast WordPiece op. Clean-up and word boundaries are implemented here, so that they
are exactly those of Python: a table for each code point, made with the Unicode version of the running Python.

B texts, T characters, C characters after the clean-up, K maximum length of a replacement, W words of all texts.
"""

# The checker's stubs of TensorFlow know little of ragged tensors.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportReturnType=false
# pyright: reportOptionalMemberAccess=false, reportOperatorIssue=false

import functools
from dataclasses import dataclass

import numpy as np
import tensorflow as tf
import tensorflow_text

from albert_tf.tokenization.interface import CleanedInGraph, RaggedPieces
from albert_tf.tokenization.ragged import follows_in_row, sums
from albert_tf.tokenization.wordpiece.cleanup import CODE_POINTS, SPACE, CleanUp, Part
from albert_tf.tokenization.wordpiece.longest_match import LongestMatch
from albert_tf.tokenization.wordpiece.vocabulary import END_MARK, WORD_END, WordPieceOptions

# Noncharacters, which do not occur in pieces. Invalid UTF-8 is read as the first, and so is the second, so that it does
# not occur in cleaned texts.
_INVALID, RESERVED = 0x10FFFF, 0x10FFFE
_BLOCK = 256
_NOTHING = np.iinfo(np.int32).min
# Prefix of pieces inside words; it does not occur in cleaned texts.
_INSIDE = chr(RESERVED)
# Words have no spaces, so they differ from both the unknown piece and a string that is not a piece.
_UNKNOWN, _NO_PIECE = " unknown", "  "
_ENDLESS = np.iinfo(np.int32).max
_BYTES_OF_A_CHARACTER = 4
# The jamo that Unicode composes, and the syllables: for each leading consonant and vowel, one without and 27 with a
# trailing consonant.
_LEADING, _VOWELS, _TRAILING = range(0x1100, 0x1113), range(0x1161, 0x1176), range(0x11A8, 0x11C3)
_SYLLABLES = range(0xAC00, 0xD7A4)
_OF_A_VOWEL = len(_TRAILING) + 1
_BLOCK_OF_LETTERS = 0x11


@dataclass(frozen=True)
class CleanedTexts:
    """Texts after the clean-up."""

    characters: tf.RaggedTensor  # int32 [B, (C)], code points
    alone: tf.Tensor  # bool [C of all texts], whether each character is a separate word
    sources: tf.Tensor  # int32 [C of all texts], index of the original character in all texts


class WordPieceInGraph(tf.Module):
    """`WordPieceModel` in a graph."""

    def __init__(self, match: LongestMatch, clean_up: CleanUp, options: WordPieceOptions):
        super().__init__()
        self._options = options
        self._clean_up = CleanUpInGraph(clean_up)
        following = {_INSIDE + piece: index for piece, index in match.following.items()}
        written = {_UNKNOWN: match.unknown, **match.initial, **following}
        self._ids = np.array(list(written.values()), np.int32)
        # An unknown word is one piece of any length.
        self._lengths = np.array(
            [_ENDLESS, *map(len, match.initial), *(len(piece) - 1 for piece in following)], np.int32
        )
        self._match = tensorflow_text.FastWordpieceTokenizer(
            list(written),
            suffix_indicator=_INSIDE,
            max_bytes_per_word=_BYTES_OF_A_CHARACTER * (match.max_word_length + len(END_MARK)),
            token_out_type=tf.int32,
            unknown_token=_UNKNOWN,
            no_pretokenization=True,
        )

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Converts tf.string [B] to int32 ids [B, (T)], without special ids."""
        words = _split_words(self._clean_up(decode(texts))).characters
        pieces = self._split_pieces(words)
        return words.with_values(pieces.with_values(tf.gather(self._ids, pieces.values))).merge_dims(1, 2)

    def tokenize_with_offsets(self, texts: tf.Tensor) -> RaggedPieces:
        """Converts tf.string [B] to int32 ids [B, (T)] and offsets int32 [B, (T), 2] in bytes."""
        cleaned = self._clean_up(decode(texts))
        words = _split_words(cleaned)
        pieces = self._split_pieces(words.characters)
        lengths = pieces.with_values(tf.gather(self._lengths, pieces.values))
        spans = _locate_pieces(words, lengths, find_spans(texts, cleaned))
        ids = pieces.with_values(tf.gather(self._ids, pieces.values))
        return RaggedPieces(*(words.characters.with_values(each).merge_dims(1, 2) for each in (ids, spans)))

    def _split_pieces(self, words: tf.RaggedTensor) -> tf.RaggedTensor:
        """The pieces of each word, int32 [W, (pieces)], as indices into `_ids`."""
        return self._match.tokenize(self._encode(words)).with_row_splits_dtype(tf.int32)

    def _encode(self, words: tf.RaggedTensor) -> tf.Tensor:
        """Encodes words [B, (words), (characters)] to strings for matching: tf.string [W]."""
        written, lengths = tf.strings.unicode_encode(words.values, "UTF-8"), words.values.row_lengths()
        if self._options.scheme == WORD_END:
            rows = words.value_rowids()
            ends_text = tf.concat([tf.not_equal(rows[1:], rows[:-1]), tf.ones_like(rows[:1], tf.bool)], axis=0)
            bare = ends_text & self._options.bare_final
            written += tf.where(bare, "", END_MARK)
            lengths += tf.cast(~bare, tf.int32)
        return tf.where(lengths > self._options.max_word_length, _NO_PIECE, written)


@dataclass(frozen=True)
class _Words:
    characters: tf.RaggedTensor  # int32 [B, (words), (characters)]
    positions: tf.Tensor  # int32, index of each character of all words in all cleaned texts


def _split_words(cleaned: CleanedTexts) -> _Words:
    """Splits cleaned texts into words."""
    rows = cleaned.characters
    is_space = tf.equal(rows.values, SPACE)
    joins = ~(is_space | cleaned.alone)
    starts = ~is_space & ~(joins & follows_in_row(rows, joins))
    positions = tf.cast(tf.where(~is_space)[:, 0], tf.int32)
    first = tf.cast(tf.where(tf.gather(starts, positions))[:, 0], tf.int32)
    words = tf.RaggedTensor.from_row_starts(tf.gather(rows.values, positions), first, validate=False)
    splits = tf.gather(sums(tf.cast(starts, tf.int32)), rows.row_splits)
    return _Words(tf.RaggedTensor.from_row_splits(words, splits, validate=False), positions)


def _locate_pieces(words: _Words, lengths: tf.RaggedTensor, spans: tf.Tensor) -> tf.RaggedTensor:
    """The span of each piece, int32 [W, (pieces), 2].

    Args:
        words: the words.
        lengths: int32 [W, (pieces)], length of each piece in characters; more than the word's for unknown words, and
            for pieces with the mark of a word's end.
        spans: int32 [C, 2], span of each character of the cleaned texts.
    """
    inner = words.characters.values  # [W, (characters)]
    word_ids = lengths.value_rowids()
    taken = sums(tf.minimum(lengths.values, tf.gather(inner.row_lengths(), word_ids)))
    before = tf.gather(taken, tf.gather(lengths.row_starts(), word_ids))
    first, limit = (tf.gather(ends, word_ids) for ends in (inner.row_starts(), inner.row_limits()))
    starts, ends = (tf.minimum(first + part - before, limit) for part in (taken[:-1], taken[1:]))
    positions = tf.gather(words.positions, tf.maximum(ends - 1, first))
    end = tf.gather(spans[:, 1], positions)
    start = tf.gather(spans[:, 0], tf.gather(words.positions, tf.minimum(starts, limit - 1)))
    # A piece that only marks the end of a word has an empty span.
    return lengths.with_values(tf.stack([tf.where(starts < ends, start, end), end], axis=1))


@dataclass(frozen=True)
class _Table:
    """The replacement of each code point, in deduplicated blocks of 256."""

    blocks: np.ndarray  # int32 [code points / 256], index of the first row of each block
    rows: np.ndarray  # int32 [blocks * 256, K], the `Part.code` of each part; the first is relative to the code point


class CleanUpInGraph(tf.Module):
    """`CleanUp` in a graph, for code points int32 [B, (T)]."""

    def __init__(self, clean_up: CleanUp):
        super().__init__()
        self._table = _make_table(clean_up)
        self._recompose = clean_up.recompose

    def __call__(self, texts: tf.RaggedTensor) -> CleanedTexts:
        if self._recompose:
            texts = compose_syllables(texts)
        blocks = tf.gather(tf.constant(self._table.blocks), tf.bitwise.right_shift(texts.values, 8))
        positions = blocks + tf.bitwise.bitwise_and(texts.values, _BLOCK - 1)
        codes = tf.gather(tf.constant(self._table.rows), positions)  # [T, K]
        is_used = tf.not_equal(codes, _NOTHING)
        parts = tf.bitwise.right_shift(codes, 1)
        parts = tf.concat([parts[:, :1] + texts.values[:, tf.newaxis], parts[:, 1:]], axis=1)
        counts = sums(tf.reduce_sum(tf.cast(is_used, tf.int32), axis=1))
        return CleanedTexts(
            tf.RaggedTensor.from_row_splits(
                tf.boolean_mask(parts, is_used), tf.gather(counts, texts.row_splits), validate=False
            ),
            tf.equal(tf.bitwise.bitwise_and(tf.boolean_mask(codes, is_used), 1), 1),
            tf.cast(tf.where(is_used)[:, 0], tf.int32),
        )


class WordPieceCleanUp(tf.Module):
    """`WordPieceModel.clean` in a graph, from tf.string [B]."""

    def __init__(self, clean_up: CleanUp):
        super().__init__()
        self._clean_up = CleanUpInGraph(clean_up)

    def __call__(self, texts: tf.Tensor) -> CleanedInGraph:
        cleaned = self._clean_up(decode(texts))
        rows, starts = cleaned.characters, find_spans(texts, cleaned)[:, 0]
        lengths = tf.strings.length(tf.strings.unicode_encode(rows.values[:, tf.newaxis], "UTF-8"))
        splits = tf.gather(sums(lengths), rows.row_splits)
        origins = tf.RaggedTensor.from_row_splits(tf.repeat(starts, lengths), splits, validate=False)
        return CleanedInGraph(tf.strings.unicode_encode(rows, "UTF-8"), origins)


def decode(texts: tf.Tensor) -> tf.RaggedTensor:
    """Decodes tf.string [B] to code points, int32 [B, (T)]; invalid UTF-8 becomes a noncharacter."""
    characters = tf.strings.unicode_decode(texts, "UTF-8", errors="replace", replacement_char=_INVALID)
    return characters.with_row_splits_dtype(tf.int32)


def find_spans(texts: tf.Tensor, cleaned: CleanedTexts) -> tf.Tensor:
    """The span in `texts` of each cleaned character, including dropped characters after it: int32 [C, 2]."""
    _, begins = tf.strings.unicode_decode_with_offsets(texts, "UTF-8", errors="replace", replacement_char=_INVALID)
    starts = tf.gather(tf.cast(begins.values, tf.int32), cleaned.sources)
    row_ids = cleaned.characters.value_rowids()
    # Characters made from the same one end together, at the next character that is not dropped.
    following = tf.searchsorted(cleaned.sources, cleaned.sources, side="right")
    ends_text = tf.not_equal(tf.gather(tf.concat([row_ids, [-1]], axis=0), following), row_ids)
    next_start = tf.gather(tf.concat([starts, [0]], axis=0), following)
    return tf.stack([starts, tf.where(ends_text, tf.gather(tf.strings.length(texts), row_ids), next_start)], axis=1)


@functools.lru_cache(maxsize=8)
def _make_table(clean_up: CleanUp) -> _Table:
    rows = {RESERVED: [2 * _INVALID]}
    for first in range(0, CODE_POINTS, _BLOCK):
        block = "".join(map(chr, range(first, first + _BLOCK)))
        if not clean_up.keeps(block):
            rewritten = {code_point: clean_up.rewrite(chr(code_point)) for code_point in range(first, first + _BLOCK)}
            rows |= {
                code_point: [part.code for part in parts]
                for code_point, parts in rewritten.items()
                if parts != (Part(chr(code_point)),)
            }
    table = np.full((CODE_POINTS, max(map(len, rows.values()))), _NOTHING, np.int32)
    table[:, 0] = 0
    for code_point, row in rows.items():
        table[code_point, 0] = row[0] - 2 * code_point if row else _NOTHING
        table[code_point, 1 : len(row)] = row[1:]
    blocks, positions = np.unique(table.reshape(CODE_POINTS // _BLOCK, -1), axis=0, return_inverse=True)
    return _Table((positions.reshape(-1) * _BLOCK).astype(np.int32), blocks.reshape(-1, table.shape[1]))


def compose_syllables(texts: tf.RaggedTensor) -> tf.RaggedTensor:
    """As `hangul.compose_syllables`, from and to code points int32 [B, (T)]."""
    has_letters = tf.reduce_any(tf.equal(tf.bitwise.right_shift(texts.values, 8), _BLOCK_OF_LETTERS))
    return texts.with_values(tf.cond(has_letters, lambda: _compose(texts), lambda: texts.values))


def _compose(texts: tf.RaggedTensor) -> tf.Tensor:
    """The code points of all texts, int32 [N]: a syllable for its first jamo, 0 for the others."""
    letters = texts.values
    vowels = _among(letters, _VOWELS) & follows_in_row(texts, _among(letters, _LEADING))
    starts = tf.concat([vowels[1:], tf.zeros_like(vowels[:1])], axis=0)
    opens = _among(letters, _SYLLABLES) & tf.equal((letters - _SYLLABLES[0]) % _OF_A_VOWEL, 0)
    trailing = _among(letters, _TRAILING) & follows_in_row(texts, vowels | opens)
    # Vowels and trailing consonants, shifted by one and two positions to the first jamo of their syllable.
    vowel = tf.where(vowels, letters - _VOWELS[0], 0)
    end = tf.pad(tf.where(trailing, letters - _TRAILING[0] + 1, 0), [[0, 2]])
    written = ((letters - _LEADING[0]) * len(_VOWELS) + tf.pad(vowel, [[0, 1]])[1:]) * _OF_A_VOWEL + end[2:]
    others = tf.where(vowels | trailing, 0, letters + tf.where(opens, end[1:-1], 0))
    return tf.where(starts, _SYLLABLES[0] + written, others)


def _among(letters: tf.Tensor, codes: range) -> tf.Tensor:
    return (letters >= codes[0]) & (letters <= codes[-1])
