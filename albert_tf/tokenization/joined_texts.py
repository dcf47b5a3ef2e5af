"""Many short texts to ids in few calls of SentencePiece, with the ids that each text has by itself.

A call for each text costs more than its ids where texts are short: an array each. Here some are joined by a character
that is a piece of its own, and one array comes back for all of them. Where one text ends and another begins,
SentencePiece must not go on with the sum of scores that it has, or rounding would decide otherwise between splits whose
scores are equal. It begins again at exactly 0 wherever a sum is above 100,000, to keep it precise, and a border's score
is far above that. Whether the installed library does so is tried once, on texts where it shows.
"""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import sentencepiece

from albert_tf.tokenization.charsmap import add_rules
from albert_tf.tokenization.digit_comma import WORD_START, DigitCommaTable, apply_to_flat
from albert_tf.tokenization.model_proto import add_piece

# A code point for private use, which no vocabulary has; a text that holds it is not joined.
_BORDER = "\U0010fff9"
_BORDER_SCORE = 1e6
MANY = 256  # texts; with fewer, or with texts of more characters than these, there is nothing to gain
_SHORT = 1000
_TEXTS_OF_A_CALL = 32
_CALLS_OF_A_THREAD = 4
_SHOWING_TEXTS = tuple(
    "".join(parts) for parts in itertools.product(("", "a ", "the "), ("!", ".", "-"), ("!!!", "..."))
)


class FlatRows(NamedTuple):
    """Rows of ids in one array, with ids between them that are in no row.

    Attributes:
        ids: int32 [T].
        starts, ends: int [B], which part of `ids` each row is.
    """

    ids: np.ndarray
    starts: np.ndarray
    ends: np.ndarray

    def split(self, digit_comma: DigitCommaTable) -> list[np.ndarray]:
        """Returns the rows, views where the digit-comma rule leaves them as they are."""
        rows = [self.ids[start:end] for start, end in zip(self.starts.tolist(), self.ends.tolist())]
        return apply_to_flat(digit_comma, rows, self.ids, self.ends) if digit_comma.pieces else rows


class JoinedTexts:
    """Encodes joined texts.

    Args:
        model_proto: a serialised plain unigram model with the clean-up inside.
        pieces: its pieces in order of ids.
        alone: the same model, ready to encode one text.
    """

    def __init__(self, model_proto: bytes, pieces: Sequence[str], alone: sentencepiece.SentencePieceProcessor):
        self._border = len(pieces)
        self._word_start = alone.PieceToId(WORD_START)
        # What follows a border begins a text, and so with a word.
        rules = {_BORDER: f"{_BORDER} "}
        self._processor = sentencepiece.SentencePieceProcessor(
            model_proto=add_piece(add_rules(model_proto, rules), _BORDER, _BORDER_SCORE)
        )
        self.fits = self._fits(pieces, alone)

    def encode(self, texts: Sequence[Any], num_threads: int) -> FlatRows | None:
        """Returns the ids of many short texts, or None where they are not, or one has to be looked at by itself.

        Args:
            texts: the texts, or whatever a user gave for them.
            num_threads: how many threads to use, -1 for one per core.
        """
        calls = max(-(-len(texts) // _TEXTS_OF_A_CALL), _CALLS_OF_A_THREAD * max(num_threads, 1))
        size = -(-len(texts) // calls)
        try:
            joined = [_BORDER.join(texts[first : first + size]) + _BORDER for first in range(0, len(texts), size)]
            if sum(map(len, joined)) > _SHORT * len(texts):
                return None
            arrays = self._processor.Encode(joined, return_type="numpy", num_threads=num_threads)
        except (TypeError, RuntimeError):  # not a str, or one with lone surrogates
            return None
        ids = np.concatenate(arrays)
        ends = np.flatnonzero(ids == self._border)
        if len(ends) != len(texts):  # one of them holds the border
            return None
        starts = np.concatenate([[0], ends[:-1] + 1])
        # White space at the end of a text is a word start in front of the border; alone it is nothing.
        while (is_bare := (ends > starts) & (ids[ends - 1] == self._word_start)).any():
            ends = ends - is_bare
        return FlatRows(ids, starts, ends)

    def _fits(self, pieces: Sequence[str], alone: sentencepiece.SentencePieceProcessor) -> bool:
        """Tells whether nothing crosses a border: no piece, no word start, no sum of scores."""
        if WORD_START not in pieces or any(WORD_START in piece[1:] for piece in pieces):
            return False
        if alone.Normalize("a b") != f"{WORD_START}a{WORD_START}b":
            return False
        texts = [*_SHOWING_TEXTS, "", " ", *reversed(_SHOWING_TEXTS)]
        rows = self.encode(texts, 1)
        found = rows and [rows.ids[start:end].tolist() for start, end in zip(rows.starts, rows.ends)]
        return found == alone.Encode(texts)
