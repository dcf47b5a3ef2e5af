"""Special pieces and word starts of a SentencePiece vocabulary."""

import re

import sentencepiece

from albert_tf.tokenization.interface import SpecialPieceIds
from albert_tf.tokenization.sentencepiece.digit_comma import WORD_START

PAD_PIECE, UNK_PIECE, CLS_PIECE, SEP_PIECE, MASK_PIECE = SPECIAL_PIECES = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")

# As in the reference, without "'", "<", "=" and ">".
_PUNCTUATION = frozenset('!"#$%&()*+,-./:;?@[\\]^_`{|}~')
_INSIDE_WORDS = _PUNCTUATION | frozenset("abcdefghijklmnopqrstuvwxyz")
BYTE_PIECE = re.compile("<0x([0-9A-F]{2})>")


def find_special_ids(processor: sentencepiece.SentencePieceProcessor, source: str) -> SpecialPieceIds:
    """Returns the ids of special pieces.

    Raises:
        ValueError: a special piece is missing, or is an ordinary piece, which text could contain.
    """
    ids = [processor.PieceToId(piece) for piece in SPECIAL_PIECES]
    pieces = list(zip(SPECIAL_PIECES, ids, strict=True))
    missing = [piece for piece, index in pieces if processor.IdToPiece(index) != piece]
    if missing:
        raise ValueError(
            f"An ALBERT vocabulary must have the pieces {', '.join(SPECIAL_PIECES)}. Received: {source}, which lacks "
            f"{', '.join(missing)}; train one with `train_sentencepiece`."
        )
    if not processor.IsUnknown(ids[1]):
        raise ValueError(f"{source} does not have {UNK_PIECE} for the unknown piece; restore the file.")
    ordinary = [piece for piece, index in pieces if index != ids[1] and not processor.IsControl(index)]
    if ordinary:
        raise ValueError(
            "ALBERT's special pieces must be control symbols, so that plain text does not match them. "
            f"Received: {source}, where {', '.join(ordinary)} are not; train the model with them as control_symbols."
        )
    return SpecialPieceIds(*ids)


def starts_word(piece: str) -> bool:
    """Whether a piece begins a word, for whole-word masking.

    These are pieces with the word-start mark, single punctuation characters, and all pieces with a character other than
    a Latin letter or punctuation: digits, apostrophes, and letters of other scripts. With byte fallback, the first byte
    of a character is treated as the character, and other bytes are inside a word.

    Example:

    >>> pieces = ("▁the", "ing", ".", "...", "99", "가", "<0x7A>", "<0xEA>", "<0xB0>")  # z, two bytes of "가"
    >>> [int(starts_word(piece)) for piece in pieces]
    [1, 0, 1, 0, 1, 1, 0, 1, 0]

    References:
        `is_start_piece` in google-research/albert, create_pretraining_data.py.
    """
    if match := BYTE_PIECE.fullmatch(piece):
        byte = int(match[1], 16)
        return starts_word(chr(byte)) if byte < 0x80 else starts_character(byte)
    if piece.startswith((WORD_START, "<")) or piece in _PUNCTUATION:
        return True
    return not _INSIDE_WORDS.issuperset(piece.lower())


def starts_character(byte: int) -> bool:
    """Whether a byte is the first one of a character in UTF-8."""
    return byte & 0xC0 != 0x80
