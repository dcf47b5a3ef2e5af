"""Offsets of ids in the original text.

SentencePiece maps every position of the cleaned text to the original text, because the clean-up is part of the model. A
span covers all characters that its piece was made from, and spans are contiguous. If several ids are made from one
character (such as "ﬁ", or a character encoded in bytes) or from one user-defined piece, each covers all of it.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import sentencepiece

from albert_tf.tokenization.interface import UNREADABLE, EncodedWithOffsets
from albert_tf.tokenization.sentencepiece.digit_comma import WORD_START, DigitCommaTable
from albert_tf.tokenization.sentencepiece.pieces import starts_character

# Instead of a length: the id continues the character, or the user-defined piece, of the previous id.
CONTINUED = -1
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class PieceParts:
    """The ids of pieces after the digit-comma rule, and their lengths."""

    digit_comma: DigitCommaTable
    byte_ids: Collection[int]  # the ids of pieces for bytes
    user_defined: Collection[int]  # the ids of user-defined pieces

    def ids(self, index: int) -> list[int]:
        """Returns the ids of a piece."""
        if index not in self.digit_comma.pieces:
            return [index]
        start, end = self.digit_comma.row_splits[index : index + 2]
        return self.digit_comma.values[start:end].tolist()

    def lengths(self, index: int, piece: str | bytes) -> list[int]:
        """Returns the lengths of these ids in the cleaned text, in bytes if it is bytes.

        Args:
            index: the id of the piece.
            piece: the piece, or unknown text.
        """
        parts = self.digit_comma.pieces.get(index)
        if parts is None:
            return [_character_length(piece) if index in self.byte_ids else len(piece)]
        if index in self.user_defined:
            return [len(piece)] + [CONTINUED] * (len(parts) - 1)
        texts = [part.encode() if isinstance(piece, bytes) else part for part in parts]
        are_bytes = [part in self.byte_ids for part in self.ids(index)]
        lengths = [
            _character_length(part) if is_byte else len(part) for part, is_byte in zip(texts, are_bytes, strict=True)
        ]
        # The reference's variant of the rule may add a word start that is not in the text.
        surplus = sum(max(length, 0) for length in lengths) - len(piece)
        return [lengths[0] - surplus, *lengths[1:]]


def encode_with_offsets(
    processor: sentencepiece.SentencePieceProcessor, parts: PieceParts, text: str | bytes
) -> EncodedWithOffsets:
    """Encodes one text with offsets, in bytes if the text is bytes."""
    text = readable(text)
    encoded = processor.Encode(text, return_type="offset_mapping")
    ids, pieces = encoded["ids"], encoded["pieces"]
    if parts.byte_ids or not parts.digit_comma.pieces.keys().isdisjoint(ids):
        lengths = [length for pair in zip(ids, pieces, strict=True) for length in parts.lengths(*pair)]
        ids = [part for index in ids for part in parts.ids(index)]
    else:
        lengths = list(map(len, pieces))
    cleaned, origins = processor.Normalize(text, with_offsets=True)
    return EncodedWithOffsets(np.array(ids, np.int32), _spans(cleaned, origins, np.array(lengths, np.int64)))


def readable(text: str | bytes) -> str | bytes:
    """Replaces lone surrogates, which SentencePiece cannot read, by an unknown character.

    >>> readable("a\\ud800é")
    'a\\ufdd1é'
    """
    return text if isinstance(text, bytes) or text.isascii() else _LONE_SURROGATES.sub(UNREADABLE, text)


def _character_length(piece: str | bytes) -> int:
    """The length of the character that starts with a byte's piece, in bytes for bytes; CONTINUED for other bytes.

    >>> [_character_length(piece) for piece in ("<0xC3>", "<0xA9>", b"<0xC3>", b"<0xF0>")]
    [1, -1, 2, 4]
    """
    if not starts_character(byte := int(piece[3:5], 16)):
        return CONTINUED
    return 1 if isinstance(piece, str) else 1 + sum(byte >= lead for lead in (0xC0, 0xE0, 0xF0))


def _spans(cleaned: str | bytes, origins: list[int], lengths: np.ndarray) -> np.ndarray:
    """Converts lengths in the cleaned text to spans of the original, int32 [T, 2].

    Args:
        cleaned: the cleaned text.
        origins: the position in the original of each position in `cleaned`, and of its end.
        lengths: int64 [T], the length of each id in `cleaned`.
    """
    positions = np.array(origins, np.int32)
    taken = np.maximum(lengths, 0)
    ends = np.cumsum(taken)
    starts = ends - taken
    # If a character became several, every id with a part of it covers all of it: an id ends at the next origin.
    following = positions[np.minimum(np.searchsorted(positions, positions, side="right"), len(positions) - 1)]
    spans = np.stack([positions[starts], following[np.maximum(ends - 1, 0)]], axis=1)
    spans[starts == ends, 1] = spans[starts == ends, 0]
    if len(ends) and cleaned[: ends[0]] in (WORD_START, WORD_START.encode()):
        # A separate piece for the word start that SentencePiece adds before a text has an empty span.
        spans[0] = spans[1, 0] if len(ends) > 1 else spans[0, 0]
    begins = np.where(lengths >= 0, np.arange(len(lengths)), 0)
    return spans[np.maximum.accumulate(begins)]
