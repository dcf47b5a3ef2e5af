"""What the strings of a SentencePiece vocabulary tell: special pieces, and which pieces begin a word."""

import re

import sentencepiece

from albert_tf.tokenization.interface import SpecialPieceIds
from albert_tf.tokenization.sentencepiece.digit_comma import WORD_START

PAD_PIECE, UNK_PIECE, CLS_PIECE, SEP_PIECE, MASK_PIECE = SPECIAL_PIECES = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")

# As the reference has it: "'", "<", "=" and ">" are not in it.
_PUNCTUATION = frozenset('!"#$%&()*+,-./:;?@[\\]^_`{|}~')
_INSIDE_WORDS = _PUNCTUATION | frozenset("abcdefghijklmnopqrstuvwxyz")
_BYTE = re.compile("<0x([0-9A-F]{2})>")


def find_special_ids(processor: sentencepiece.SentencePieceProcessor, source: str) -> SpecialPieceIds:
    """Looks up the special pieces and makes sure that text cannot yield them.

    Raises:
        ValueError: if a special piece is missing, or is an ordinary piece that text could contain.
    """
    ids = [processor.PieceToId(piece) for piece in SPECIAL_PIECES]
    found = list(zip(SPECIAL_PIECES, ids, strict=True))
    missing = [piece for piece, index in found if processor.IdToPiece(index) != piece]
    if missing:
        raise ValueError(
            f"An ALBERT vocabulary must have the pieces {', '.join(SPECIAL_PIECES)}. Received: {source}, which lacks "
            f"{', '.join(missing)}; train one with `train_sentencepiece`."
        )
    if not processor.IsUnknown(ids[1]):
        raise ValueError(f"{source} does not have {UNK_PIECE} for the unknown piece; restore the file.")
    ordinary = [piece for piece, index in found if index != ids[1] and not processor.IsControl(index)]
    if ordinary:
        raise ValueError(
            "ALBERT's special pieces must be control symbols, so that plain text cannot yield them. "
            f"Received: {source}, where {', '.join(ordinary)} can be; train the model with them as control_symbols."
        )
    return SpecialPieceIds(*ids)


def starts_word(piece: str) -> bool:
    """Tells whether a piece begins a word, as whole-word masking needs it.

    Besides pieces with the word-start mark these are single punctuation characters and all pieces with a character
    other than a Latin letter or punctuation: digits, apostrophes, and every letter of other scripts. A byte of byte
    fallback does what its character would do if it is the character's first one, and is inside a word if it is not.

    Example:

    >>> pieces = ("▁the", "ing", ".", "...", "99", "가", "<0x7A>", "<0xEA>", "<0xB0>")  # z, two bytes of "가"
    >>> [int(starts_word(piece)) for piece in pieces]
    [1, 0, 1, 0, 1, 1, 0, 1, 0]

    References:
        `is_start_piece` in google-research/albert, create_pretraining_data.py.
    """
    if match := _BYTE.fullmatch(piece):
        byte = int(match[1], 16)
        return starts_word(chr(byte)) if byte < 0x80 else starts_character(byte)
    if piece.startswith((WORD_START, "<")) or piece in _PUNCTUATION:
        return True
    return not _INSIDE_WORDS.issuperset(piece.lower())


def starts_character(byte: int) -> bool:
    """Tells whether a byte of UTF-8 is the first one of its character."""
    return byte & 0xC0 != 0x80
