"""Reads and edits serialised SentencePiece models, which are protocol buffers."""

import hashlib
import struct
from collections.abc import Sequence

from albert_tf.protobuf import FIXED32, VARINT, bytes_field, fields, integer_field, last_payload, tag
from albert_tf.tokenization.sentencepiece.digit_comma import WORD_START
from albert_tf.tokenization.sentencepiece.pieces import BYTE_PIECE

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
    mark, kind = bytes([_PIECE_KIND << 3 | VARINT, _USER_DEFINED]), bytes([_USER_DEFINED])
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
    return b"".join(others) + bytes_field(_MODEL_NORMALIZER_SPEC, kept)


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
        kind = _BYTE if byte_fallback and BYTE_PIECE.fullmatch(text) else kind
        raw.append(_piece(text, score, _UNKNOWN if index == unk_id else kind))
    trainer_spec = _trainer_spec(len(pieces), unk_id, byte_fallback)
    return b"".join(raw) + trainer_spec + bytes_field(_MODEL_NORMALIZER_SPEC, normalizer_spec(charsmap))


def bytes_as_pieces(model_proto: bytes, user_defined: Sequence[str]) -> bytes:
    """Returns a model with the same clean-up that gives one piece for each byte of the cleaned text.

    Byte b has the id `FIRST_BYTE_ID + b`. A word start is one piece, as a model must have one such piece, and so are
    user-defined pieces, with the ids that follow, since the clean-up leaves them as they are.
    """
    pieces = [_piece("<unk>", 0.0, _UNKNOWN), _piece(WORD_START, -1.0, _NORMAL)]
    pieces += [_piece(f"<0x{byte:02X}>", 0.0, _BYTE) for byte in range(256)]
    pieces += [_piece(text, 0.0, _USER_DEFINED) for text in user_defined]
    trainer_spec = _trainer_spec(len(pieces), 0, True, last_payload(model_proto, _MODEL_TRAINER_SPEC))
    clean_up = bytes_field(_MODEL_NORMALIZER_SPEC, last_payload(model_proto, _MODEL_NORMALIZER_SPEC))
    return b"".join(pieces) + trainer_spec + clean_up


def _trainer_spec(vocab_size: int, unk_id: int, byte_fallback: bool, base: bytes = b"") -> bytes:
    """Returns the field of a unigram model; of settings that `base` has too, the later ones count."""
    spec = base + integer_field(_TRAINER_MODEL_TYPE, 1) + integer_field(_TRAINER_VOCAB_SIZE, vocab_size)
    spec += integer_field(_TRAINER_BYTE_FALLBACK, int(byte_fallback)) + integer_field(_TRAINER_UNK_ID, unk_id)
    return bytes_field(_MODEL_TRAINER_SPEC, spec + b"".join(integer_field(field, -1) for field in _TRAINER_OTHER_IDS))


def normalizer_spec(charsmap: bytes) -> bytes:
    """Returns the serialised specification of a normaliser that has these compiled rules."""
    return bytes_field(_SPEC_CHARSMAP, charsmap)


def read_spec_charsmap(spec: bytes) -> bytes:
    """Returns the compiled rules out of the serialised specification of a normaliser."""
    return last_payload(spec, _SPEC_CHARSMAP)


def digest(content: bytes) -> str:
    """Returns the SHA-256 of some bytes in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def _text_of(piece: bytes) -> str:
    return last_payload(piece, _PIECE_TEXT).decode()


def _piece(text: str, score: float, kind: int) -> bytes:
    message = bytes_field(_PIECE_TEXT, text.encode()) + tag(_PIECE_SCORE, FIXED32) + struct.pack("<f", score)
    return bytes_field(_MODEL_PIECES, message + integer_field(_PIECE_KIND, kind))
