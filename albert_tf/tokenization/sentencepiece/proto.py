"""Reads and edits serialised SentencePiece models.

Models are protocol buffers, of which only a few fields are needed. Parsing them here avoids the protobuf package, whose
runtime version depends on the one that SentencePiece was built with.
"""

import hashlib
import re
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from albert_tf.tokenization.sentencepiece.digit_comma import WORD_START

# The ids that `bytes_as_pieces` gives to the word-start mark and to the byte 0.
WORD_START_ID, FIRST_BYTE_ID = 1, 2

# Field numbers in sentencepiece_model.proto.
_MODEL_PIECES, _MODEL_TRAINER_SPEC, _MODEL_NORMALIZER_SPEC = 1, 2, 3
_PIECE_TEXT, _PIECE_SCORE, _PIECE_KIND = 1, 2, 3
_TRAINER_MODEL_TYPE, _TRAINER_VOCAB_SIZE, _TRAINER_BYTE_FALLBACK = 3, 4, 35
_TRAINER_UNK_ID, _TRAINER_OTHER_IDS = 40, (41, 42, 43)
_SPEC_CHARSMAP, _SPEC_REMOVE_EXTRA_WHITESPACES = 2, 4

_UNIGRAM = b"\x01"
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _BYTE = 1, 2, 3, 4, 6
_BYTE_TEXT = re.compile("<0x[0-9A-F]{2}>")

_VARINT, _FIXED64, _LENGTH_DELIMITED, _FIXED32 = 0, 1, 2, 5


class _Field(NamedTuple):
    """One field of a message: number, payload, and raw bytes including the tag."""

    number: int
    payload: bytes
    raw: bytes


def read_charsmap(model_proto: bytes) -> bytes:
    """Returns the compiled normalisation rules of a serialised model, or empty bytes."""
    return read_spec_charsmap(last_payload(model_proto, _MODEL_NORMALIZER_SPEC))


def is_unigram(model_proto: bytes) -> bool:
    """Whether a serialised model is a unigram model, SentencePiece's default."""
    model_type = last_payload(last_payload(model_proto, _MODEL_TRAINER_SPEC), _TRAINER_MODEL_TYPE)
    return model_type in (b"", _UNIGRAM)


def user_defined(model_proto: bytes) -> list[str]:
    """Returns the user-defined pieces, which are never split."""
    # Few pieces have these bytes, even by chance, so that few are parsed.
    mark, kind = bytes([_PIECE_KIND << 3 | _VARINT, _USER_DEFINED]), bytes([_USER_DEFINED])
    pieces = [field.payload for field in fields(model_proto) if field.number == _MODEL_PIECES]
    return [_text_of(piece) for piece in pieces if mark in piece and last_payload(piece, _PIECE_KIND) == kind]


def user_defined_score(piece: str) -> float:
    """Returns the score that SentencePiece uses for a user-defined piece instead of that in the model.

    References:
        `GetUserDefinedScore` in SentencePiece's unigram_model.cc.
    """
    return 0.1 * (len(piece.encode()) - 1)


def round_scores(model_proto: bytes, step: float) -> bytes:
    """Returns the model with the scores of normal pieces rounded to multiples of a step."""
    raw = bytearray()
    for field in fields(model_proto):
        piece = field.payload
        # Pieces are normal by default.
        if field.number == _MODEL_PIECES and last_payload(piece, _PIECE_KIND) in (b"", bytes([_NORMAL])):
            (score,) = struct.unpack("<f", last_payload(piece, _PIECE_SCORE))
            raw += _piece(_text_of(piece), round(score / step) * step, _NORMAL)
        else:
            raw += field.raw
    return bytes(raw)


def replace_charsmap(model_proto: bytes, charsmap: bytes) -> bytes:
    """Returns the model with other normalisation rules, and with white space collapsed as the clean-up demands.

    Of the rest, only pieces and the trainer's settings are kept: nothing else in an untrusted model may take effect.
    """
    replaced = (_SPEC_CHARSMAP, _SPEC_REMOVE_EXTRA_WHITESPACES)
    spec = last_payload(model_proto, _MODEL_NORMALIZER_SPEC)
    kept = b"".join(field.raw for field in fields(spec) if field.number not in replaced)
    kept += normalizer_spec(charsmap) + integer_field(_SPEC_REMOVE_EXTRA_WHITESPACES, 1)
    others = (field.raw for field in fields(model_proto) if field.number in (_MODEL_PIECES, _MODEL_TRAINER_SPEC))
    return b"".join(others) + _length_delimited(_MODEL_NORMALIZER_SPEC, kept)


def unigram_model(
    pieces: Sequence[tuple[str, float, bool | None]], unk_id: int, byte_fallback: bool, charsmap: bytes
) -> bytes:
    """Returns a serialised unigram model.

    Args:
        pieces: each piece, its score, and True for a control piece, False for a user-defined one, else None.
        unk_id: the id of the unknown piece.
        byte_fallback: pieces such as <0x20> encode what is unknown.
        charsmap: the compiled normalisation rules.
    """
    raw = []
    for index, (text, score, special) in enumerate(pieces):
        kind = _NORMAL if special is None else _CONTROL if special else _USER_DEFINED
        kind = _BYTE if byte_fallback and _BYTE_TEXT.fullmatch(text) else kind
        raw.append(_piece(text, score, _UNKNOWN if index == unk_id else kind))
    trainer_spec = _trainer_spec(len(pieces), unk_id, byte_fallback)
    return b"".join(raw) + trainer_spec + _length_delimited(_MODEL_NORMALIZER_SPEC, normalizer_spec(charsmap))


def bytes_as_pieces(model_proto: bytes, user_defined: Sequence[str]) -> bytes:
    """Returns a model with the same clean-up that gives one piece for each byte of the cleaned text.

    Byte b has the id `FIRST_BYTE_ID + b`. A word start is one piece, as a model must have one such piece, and so are
    user-defined pieces, with the ids that follow, since the clean-up leaves them as they are.
    """
    pieces = [_piece("<unk>", 0.0, _UNKNOWN), _piece(WORD_START, -1.0, _NORMAL)]
    pieces += [_piece(f"<0x{byte:02X}>", 0.0, _BYTE) for byte in range(256)]
    pieces += [_piece(text, 0.0, _USER_DEFINED) for text in user_defined]
    trainer_spec = _trainer_spec(len(pieces), 0, True, last_payload(model_proto, _MODEL_TRAINER_SPEC))
    clean_up = _length_delimited(_MODEL_NORMALIZER_SPEC, last_payload(model_proto, _MODEL_NORMALIZER_SPEC))
    return b"".join(pieces) + trainer_spec + clean_up


def _trainer_spec(vocab_size: int, unk_id: int, byte_fallback: bool, base: bytes = b"") -> bytes:
    """Returns the field of a unigram model; of settings that `base` has too, the later ones count."""
    spec = base + integer_field(_TRAINER_MODEL_TYPE, 1) + integer_field(_TRAINER_VOCAB_SIZE, vocab_size)
    spec += integer_field(_TRAINER_BYTE_FALLBACK, int(byte_fallback)) + integer_field(_TRAINER_UNK_ID, unk_id)
    return _length_delimited(
        _MODEL_TRAINER_SPEC, spec + b"".join(integer_field(field, -1) for field in _TRAINER_OTHER_IDS)
    )


def normalizer_spec(charsmap: bytes) -> bytes:
    """Returns the serialised specification of a normaliser that has these compiled rules."""
    return _length_delimited(_SPEC_CHARSMAP, charsmap)


def read_spec_charsmap(spec: bytes) -> bytes:
    """Returns the compiled rules out of the serialised specification of a normaliser."""
    return last_payload(spec, _SPEC_CHARSMAP)


def digest(content: bytes) -> str:
    """Returns the SHA-256 of some bytes in hexadecimal.

    >>> digest(b"")[:8]
    'e3b0c442'
    """
    return hashlib.sha256(content).hexdigest()


def _text_of(piece: bytes) -> str:
    return last_payload(piece, _PIECE_TEXT).decode()


def last_payload(message: bytes, field: int) -> bytes:
    """Returns the payload of a field, empty if it is missing; of several the last one counts."""
    payload = b""
    for found, _, position, end in _positions(message):
        if found == field:
            payload = message[position:end]
    return payload


def fields(message: bytes) -> Iterator[_Field]:
    """Yields the fields of a message."""
    for number, start, position, end in _positions(message):
        yield _Field(number, message[position:end], message[start:end])


def _positions(message: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yields the number of each field, and the positions of its start, of its payload's start and of its end.

    A model has tens of thousands of fields, nearly all with a tag and a length of one byte each.
    """
    position = 0
    while position < len(message):
        start = position
        tag, position = _read_varint(message, position) if message[position] >= 0x80 else (message[position], start + 1)
        kind = tag & 7
        if kind == _LENGTH_DELIMITED:
            is_short = position < len(message) and message[position] < 0x80
            length, position = (message[position], position + 1) if is_short else _read_varint(message, position)
            end = position + length
        elif kind == _VARINT:
            _, end = _read_varint(message, position)
        elif kind in (_FIXED32, _FIXED64):
            end = position + (4 if kind == _FIXED32 else 8)
        else:
            raise ValueError(
                f"A SentencePiece model must hold fields of known kinds. Received: kind {kind} at {start}."
            )
        if end > len(message):
            raise ValueError(f"A SentencePiece model must be complete. Received: {len(message)} bytes, {end} expected.")
        yield tag >> 3, start, position, end
        position = end


def _read_varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(message):
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise ValueError(f"A SentencePiece model must be complete. Received: {len(message)} bytes that end in a number.")


def varint_value(payload: bytes) -> int:
    """Decodes an integer; a missing one is 0."""
    return _read_varint(payload, 0)[0] if payload else 0


def _piece(text: str, score: float, kind: int) -> bytes:
    message = _length_delimited(_PIECE_TEXT, text.encode()) + _tag(_PIECE_SCORE, _FIXED32) + struct.pack("<f", score)
    return _length_delimited(_MODEL_PIECES, message + integer_field(_PIECE_KIND, kind))


def integer_field(field: int, value: int) -> bytes:
    """Encodes a field that is an integer."""
    # Negative numbers are written as their 64-bit complement.
    return _tag(field, _VARINT) + varint(value & (1 << 64) - 1)


def varint(value: int) -> bytes:
    """Encodes a non-negative integer.

    >>> varint(300)
    b'\\xac\\x02'
    """
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _tag(number: int, kind: int) -> bytes:
    return varint(number << 3 | kind)


def _length_delimited(number: int, payload: bytes) -> bytes:
    return _tag(number, _LENGTH_DELIMITED) + varint(len(payload)) + payload
