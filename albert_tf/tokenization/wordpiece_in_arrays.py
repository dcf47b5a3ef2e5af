"""A vocabulary file's pieces for many texts at once, as NumPy arrays: what `WordPieceModel` does with a large batch.

B texts, C characters after the clean-up without spaces, W words.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from albert_tf.tokenization.characters import SPACE, CleanUp
from albert_tf.tokenization.characters_in_arrays import CleanUpInArrays
from albert_tf.tokenization.longest_match import LongestMatch
from albert_tf.tokenization.longest_match_in_arrays import Ints, LongestMatchInArrays
from albert_tf.tokenization.vocabulary_file import END_MARK, WORD_END
from albert_tf.tokenization.wordpiece_folder import WordPieceOptions

# What is worked on at a time is to stay in the processor's cache.
_CHARACTERS_OF_A_BLOCK = 1 << 17


class WordPieceInArrays:
    """Pieces of texts, with the ids that come of splitting word by word.

    Args:
        match: what splits a word.
        clean_up: what is done to each character.
        options: how pieces make words.
    """

    def __init__(self, match: LongestMatch, clean_up: CleanUp, options: WordPieceOptions):
        self._match = LongestMatchInArrays(match)
        self._prepare = clean_up.prepare
        self._clean_up = CleanUpInArrays(clean_up)
        self._options = options

    def encode(self, texts: Iterable[str]) -> list[np.ndarray]:
        """Returns int32 ids, without special ones, one array for each text."""
        return [row for block in _blocks(texts) for row in self._encode_block(block)]

    def _encode_block(self, texts: Sequence[str]) -> list[np.ndarray]:
        # The space behind each text parts it from the next one.
        ends = np.cumsum([len(text) + 1 for text in texts])
        characters = self._prepare(" ".join(texts) + " ").encode("utf-32-le", "surrogatepass")
        cleaned = self._clean_up(np.frombuffer(characters, "<i4"))
        solid = cleaned.code_points != SPACE
        joins = solid & ~cleaned.alone
        begins = solid.copy()
        begins[1:] &= ~(joins[1:] & joins[:-1])
        code_points, sources = cleaned.code_points[solid], cleaned.sources[solid]
        starts = np.flatnonzero(begins[solid])
        if self._options.scheme == WORD_END:
            code_points, sources, starts = self._mark_ends(code_points, sources, starts, ends)
        pieces = self._match(code_points, starts)
        found = pieces >= 0
        ids, stops = pieces[found], np.searchsorted(sources[found], ends).tolist()
        return [ids[start:stop] for start, stop in zip([0, *stops], stops)]

    def _mark_ends(
        self, code_points: npt.NDArray[np.int32], sources: Ints, starts: Ints, ends: Ints
    ) -> tuple[npt.NDArray[np.int32], Ints, Ints]:
        """Puts the mark of a word's end behind words.

        Args:
            code_points: [C], the words one behind the other.
            sources: [C], which character of all texts each comes from.
            starts: [W], where each word begins.
            ends: [B], where each text ends.

        Returns:
            The first three, with the marks.
        """
        marked = np.ones(len(starts), bool)
        if self._options.bare_final:
            texts = np.searchsorted(ends, sources[starts], side="right")
            marked = texts == np.append(texts, -1)[1:]
        behind = np.append(starts, len(code_points))[1:][marked]
        code_points = np.insert(code_points, behind, ord(END_MARK))
        return code_points, np.insert(sources, behind, sources[behind - 1]), starts + np.cumsum(marked) - marked


def _blocks(texts: Iterable[str]) -> Iterator[list[str]]:
    """Yields texts by so many that they have `_CHARACTERS_OF_A_BLOCK` or, at the end, fewer."""
    block, length = [], 0
    for text in texts:
        block.append(text)
        length += len(text) + 1
        if length >= _CHARACTERS_OF_A_BLOCK:
            yield block
            block, length = [], 0
    if block:
        yield block
