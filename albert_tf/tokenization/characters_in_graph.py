"""The clean-up of `characters` inside a TensorFlow graph: every code point looked up in one table.

The table is made with the Unicode data of the Python that makes the graph, so the graph does what that Python does.
B texts, T characters, C characters after the clean-up, K the most that one character becomes.
"""

# The checker's stubs of TensorFlow know little of ragged tensors.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportReturnType=false
# pyright: reportOptionalMemberAccess=false

import functools
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from albert_tf.tokenization.characters import CODE_POINTS, CleanUp, Part
from albert_tf.tokenization.hangul_in_graph import compose_syllables
from albert_tf.tokenization.ragged import sums

# Unicode keeps these free of characters, so no piece holds them. Bytes that are no UTF-8 are read as the first, and so
# is the second, which cleaned texts are to be free of.
_INVALID, RESERVED = 0x10FFFF, 0x10FFFE
_BLOCK = 256
_NOTHING = np.iinfo(np.int32).min


@dataclass(frozen=True)
class _Table:
    """What becomes of each code point, in blocks, of which many are alike.

    Attributes:
        blocks: int32 [code points / 256], where the block of each 256 code points lies in `rows`.
        rows: int32 [blocks * 256, K], the `Part.code` of each part, where of the first the character's own code
            point, twice, is taken off.
    """

    blocks: np.ndarray
    rows: np.ndarray


@dataclass(frozen=True)
class CleanedTexts:
    """Texts after the clean-up.

    Attributes:
        characters: int32 [B, (C)], code points.
        alone: bool [C of all texts], whether each character is a word of its own.
        sources: int32 [C of all texts], which of the characters of all given texts each was made of.
    """

    characters: tf.RaggedTensor
    alone: tf.Tensor
    sources: tf.Tensor


class CleanUpInGraph(tf.Module):
    """Cleans texts in the graph as `CleanUp` does.

    Args:
        clean_up: what is done to each character.

    Call arguments:
        texts: int32 [B, (T)], code points.

    Returns:
        The cleaned texts.
    """

    def __init__(self, clean_up: CleanUp):
        super().__init__()
        self._table = _make_table(clean_up)
        self._recompose = clean_up.recompose

    def __call__(self, texts: tf.RaggedTensor) -> CleanedTexts:
        if self._recompose:
            texts = compose_syllables(texts)
        blocks = tf.gather(tf.constant(self._table.blocks), tf.bitwise.right_shift(texts.values, 8))
        places = blocks + tf.bitwise.bitwise_and(texts.values, _BLOCK - 1)
        codes = tf.gather(tf.constant(self._table.rows), places)  # [T, K]
        kept = tf.not_equal(codes, _NOTHING)
        parts = tf.bitwise.right_shift(codes, 1)
        parts = tf.concat([parts[:, :1] + texts.values[:, tf.newaxis], parts[:, 1:]], axis=1)
        counts = sums(tf.reduce_sum(tf.cast(kept, tf.int32), axis=1))
        return CleanedTexts(
            tf.RaggedTensor.from_row_splits(
                tf.boolean_mask(parts, kept), tf.gather(counts, texts.row_splits), validate=False
            ),
            tf.equal(tf.bitwise.bitwise_and(tf.boolean_mask(codes, kept), 1), 1),
            tf.cast(tf.where(kept)[:, 0], tf.int32),
        )


def decode(texts: tf.Tensor) -> tf.RaggedTensor:
    """Turns tf.string [B] into code points, int32 [B, (T)]; bytes that are no UTF-8 become one that no piece holds."""
    characters = tf.strings.unicode_decode(texts, "UTF-8", errors="replace", replacement_char=_INVALID)
    return characters.with_row_splits_dtype(tf.int32)


def find_spans(texts: tf.Tensor, cleaned: CleanedTexts) -> tf.Tensor:
    """Returns where in the original texts each cleaned character comes from, with what is dropped behind it.

    Args:
        texts: tf.string [B].
        cleaned: the same after the clean-up.

    Returns:
        int32 [C of all texts, 2], start and exclusive end in bytes.
    """
    _, begins = tf.strings.unicode_decode_with_offsets(texts, "UTF-8", errors="replace", replacement_char=_INVALID)
    starts = tf.gather(tf.cast(begins.values, tf.int32), cleaned.sources)
    row_ids = cleaned.characters.value_rowids()
    # Characters that were made of the same one end together, where the next one begins that is not dropped.
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
    blocks, places = np.unique(table.reshape(CODE_POINTS // _BLOCK, -1), axis=0, return_inverse=True)
    return _Table((places.reshape(-1) * _BLOCK).astype(np.int32), blocks.reshape(-1, table.shape[1]))
