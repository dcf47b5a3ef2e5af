"""Where in the original text each id comes from.

SentencePiece reports for every place in the cleaned text where in the given text it comes from. As the clean-up is part
of the model, that is the original text: a span covers all characters that its piece was made of, and spans follow one
another without a gap. Two ids that were made of parts of one character (such as "ﬁ", or one spelled in bytes) both
cover it; so do those of one user-defined piece, which is left as it is as a whole.
"""

from collections.abc import Collection, Sequence

import numpy as np
import sentencepiece

from albert_tf.tokenization.digit_comma import WORD_START, DigitCommaTable
from albert_tf.tokenization.piece_model import EncodedWithOffsets
from albert_tf.tokenization.pieces import starts_character


def encode_with_offsets(
    processor: sentencepiece.SentencePieceProcessor,
    table: DigitCommaTable,
    byte_ids: Collection[int],
    text: str | bytes,
) -> EncodedWithOffsets:
    """Encodes one text and reports the span of each id.

    Args:
        processor: the model with the clean-up inside.
        table: the digit-comma rule.
        byte_ids: the ids of pieces that stand for a byte of a character that is spelled out.
        text: the original text; spans are in bytes where it is bytes.

    Returns:
        Ids and spans.
    """
    given, text = text, as_utf8(text)
    encoded = processor.Encode(text, return_type="offset_mapping")
    ids, pieces = encoded["ids"], encoded["pieces"]
    continued: list[int] = []
    if byte_ids or not table.pieces.keys().isdisjoint(ids):
        ids, lengths, continued = _split(table, byte_ids, ids, pieces)
    else:
        lengths = list(map(len, pieces))
    cleaned, origins = processor.Normalize(text, with_offsets=True)
    offsets = _spans(cleaned, origins, lengths)
    for place in continued:
        offsets[place] = offsets[place - 1]
    if isinstance(given, str) and isinstance(text, bytes):
        offsets = _bytes_to_characters(given, offsets)
    return EncodedWithOffsets(np.array(ids, np.int32), offsets)


def _split(
    table: DigitCommaTable, byte_ids: Collection[int], ids: Sequence[int], pieces: Sequence[str | bytes]
) -> tuple[list[int], list[int], list[int]]:
    """Applies the digit-comma rule to the ids of a text.

    Returns:
        The ids; how much of the cleaned text each takes; and the places of those that go on with the character of the
        id in front of them.
    """
    parts: list[int] = []
    lengths: list[int] = []
    continued: list[int] = []
    for index, piece in zip(ids, pieces, strict=True):
        if index not in byte_ids and index not in table.pieces:
            parts.append(index)
            lengths.append(len(piece))
            continue
        start, end = table.row_splits[index : index + 2]
        new = table.values[start:end].tolist()
        are_bytes = [part in byte_ids for part in new]
        lengths += part_lengths(piece, table.pieces.get(index), are_bytes)
        continued += [place for place, is_byte in enumerate(are_bytes, len(parts)) if is_byte and not lengths[place]]
        parts += new
    return parts, lengths, continued


def as_utf8(text: str | bytes) -> str | bytes:
    """Returns text that SentencePiece can take: lone surrogates, which UTF-8 cannot hold, become invalid bytes.

    SentencePiece reads each of these bytes as an unknown character, and so it does inside a TensorFlow graph.

    >>> as_utf8("a\\ud800"), as_utf8("é")
    (b'a\\xed\\xa0\\x80', 'é')
    """
    if isinstance(text, bytes) or text.isascii():
        return text
    encoded = text.encode("utf-8", "surrogatepass")
    return encoded if b"\xed" in encoded and not _is_utf8(encoded) else text


def _is_utf8(encoded: bytes) -> bool:
    try:
        encoded.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _character_length(piece: str | bytes) -> int:
    """Returns the length of the character that a byte's piece begins, 0 for a byte inside one; in bytes for bytes.

    >>> [_character_length(piece) for piece in ("<0xC3>", "<0xA9>", b"<0xC3>", b"<0xF0>")]
    [1, 0, 2, 4]
    """
    if not starts_character(byte := int(piece[3:5], 16)):
        return 0
    return 1 if isinstance(piece, str) else 1 + sum(byte >= lead for lead in (0xC0, 0xE0, 0xF0))


def part_lengths(piece: str | bytes, parts: tuple[str, ...] | None, are_bytes: Sequence[bool]) -> list[int]:
    """Returns how much of the cleaned text each id of a piece takes: in bytes for a text given as bytes.

    Args:
        piece: the piece.
        parts: what the digit-comma rule makes of it; None: itself.
        are_bytes: of each id, whether its piece stands for a byte of a character that is spelled out.

    >>> part_lengths("7,", ("7", ","), [False, False]), part_lengths(b"<0xC3>", None, [True])
    ([1, 1], [2])
    """
    if parts is None:
        return [_character_length(piece) if are_bytes[0] else len(piece)]
    spelled = [part.encode() if isinstance(piece, bytes) else part for part in parts]
    lengths = [
        _character_length(part) if is_byte else len(part) for part, is_byte in zip(spelled, are_bytes, strict=True)
    ]
    # The reference's form of the rule can put a word start in front that is not in the text.
    surplus = sum(lengths) - len(piece)
    return [lengths[0] - surplus, *lengths[1:]]


def _spans(cleaned: str | bytes, origins: list[int], lengths: list[int]) -> np.ndarray:
    """Turns lengths in the cleaned text into spans of the original.

    Args:
        cleaned: the text as SentencePiece split it.
        origins: for each place in `cleaned`, and for its end, the place in the original that it comes from.
        lengths: how much of `cleaned` each id takes.

    Returns:
        int32 [T, 2].
    """
    places = np.array(origins, np.int32)
    taken = np.array(lengths, np.int64)
    ends = np.cumsum(taken)
    starts = ends - taken
    # A character that became several is covered by every id that holds a part of it: an id ends where the next origin
    # begins.
    following = places[np.minimum(np.searchsorted(places, places, side="right"), len(places) - 1)]
    spans = np.stack([places[starts], following[np.maximum(ends - 1, 0)]], axis=1)
    spans[starts == ends, 1] = spans[starts == ends, 0]
    if len(ends) and cleaned[: ends[0]] in (WORD_START, WORD_START.encode()):
        # The word start that SentencePiece itself puts in front of a text, as a piece of its own: made of nothing.
        spans[0] = spans[1, 0] if len(ends) > 1 else spans[0, 0]
    return spans


def _bytes_to_characters(text: str, offsets: np.ndarray) -> np.ndarray:
    """Turns byte positions into character positions; a position inside a character moves outwards."""
    widths = [len(character.encode("utf-8", "surrogatepass")) for character in text]
    ends = np.cumsum([0, *widths])
    starts = np.searchsorted(ends, offsets[:, 0], side="right") - 1
    return np.stack([starts, np.searchsorted(ends, offsets[:, 1], side="left")], axis=1).astype(np.int32)
