"""Reads and edits serialised SentencePiece models, which are protocol buffers.

The module that SentencePiece generates for its messages demands a protobuf as new as the one it was made with, which
Apache Beam and gRPC do not allow. So the fields that are used are declared here; protobuf keeps all others.

References:
    `sentencepiece_model.proto` in google/sentencepiece.
"""

from collections.abc import Sequence
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

from albert_tf.tokenization.sentencepiece.digit_comma import WORD_START
from albert_tf.tokenization.sentencepiece.pieces import BYTE_PIECE

# The ids that `bytes_as_pieces` gives to the word-start mark and to the byte 0.
WORD_START_ID, FIRST_BYTE_ID = 1, 2

# Values of `type` of a piece, and of `model_type`; enums have the encoding of integers.
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _BYTE = 1, 2, 3, 4, 6
_UNIGRAM = 1

# Number, type and default of each field by name of the message; a default is given where it is not zero or empty.
_FIELDS: dict[str, dict[str, tuple[int, str, str | None]]] = {
    "Piece": {"piece": (1, "STRING", None), "score": (2, "FLOAT", None), "type": (3, "INT32", str(_NORMAL))},
    "TrainerSpec": {
        "model_type": (3, "INT32", str(_UNIGRAM)),
        "vocab_size": (4, "INT32", None),
        "byte_fallback": (35, "BOOL", None),
        "unk_id": (40, "INT32", None),
        "bos_id": (41, "INT32", None),
        "eos_id": (42, "INT32", None),
        "pad_id": (43, "INT32", None),
    },
    "NormalizerSpec": {
        "precompiled_charsmap": (2, "BYTES", None),
        "add_dummy_prefix": (3, "BOOL", "true"),
        "remove_extra_whitespaces": (4, "BOOL", "true"),
        "escape_whitespaces": (5, "BOOL", "true"),
    },
}
_PARTS = {"pieces": "Piece", "trainer_spec": "TrainerSpec", "normalizer_spec": "NormalizerSpec"}


def _declare() -> Any:
    """The class of a model, in a pool of its own."""
    field, file = descriptor_pb2.FieldDescriptorProto, descriptor_pb2.FileDescriptorProto(name="model", package="model")
    for name, fields in _FIELDS.items():
        declared = file.message_type.add(name=name)
        for field_name, (number, kind, default) in fields.items():
            settings = {"type": field.Type.Value(f"TYPE_{kind}"), "default_value": default}
            declared.field.add(name=field_name, number=number, label=field.LABEL_OPTIONAL, **settings)
    model = file.message_type.add(name="Model")
    for number, (name, kind) in enumerate(_PARTS.items(), 1):
        label = field.LABEL_REPEATED if name == "pieces" else field.LABEL_OPTIONAL
        model.field.add(name=name, number=number, label=label, type_name=f".model.{kind}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("model.Model"))


_Model = _declare()
_NormalizerSpec = type(_Model().normalizer_spec)


def _parse(model_proto: bytes) -> Any:
    try:
        return _Model.FromString(model_proto)
    except message.DecodeError:
        raise ValueError("it is not a protocol buffer, or is cut off") from None


def read_charsmap(model_proto: bytes) -> bytes:
    """Returns the compiled normalisation rules of a serialised model, or empty bytes; raises ValueError for others."""
    return _parse(model_proto).normalizer_spec.precompiled_charsmap


def is_unigram(model_proto: bytes) -> bool:
    """Whether a serialised model is a unigram model, SentencePiece's default."""
    return _parse(model_proto).trainer_spec.model_type == _UNIGRAM


def user_defined(model_proto: bytes) -> list[str]:
    """Returns the user-defined pieces, which are never split."""
    return [piece.piece for piece in _parse(model_proto).pieces if piece.type == _USER_DEFINED]


def as_control(model_proto: bytes, texts: Sequence[str]) -> bytes:
    """Returns the model with those of these pieces that are user-defined as control pieces, which no text matches."""
    model = _parse(model_proto)
    changed = [piece for piece in model.pieces if piece.type == _USER_DEFINED and piece.piece in texts]
    for piece in changed:
        piece.type = _CONTROL
    return model.SerializeToString() if changed else model_proto


def user_defined_score(piece: str) -> float:
    """Returns the score that SentencePiece uses for a user-defined piece instead of that in the model.

    References:
        `GetUserDefinedScore` in SentencePiece's unigram_model.cc.
    """
    return 0.1 * (len(piece.encode()) - 1)


def round_scores(model_proto: bytes, step: float) -> bytes:
    """Returns the model with the scores of normal pieces rounded to multiples of a step."""
    model = _parse(model_proto)
    for piece in model.pieces:
        if piece.type == _NORMAL:
            piece.score = round(piece.score / step) * step
    return model.SerializeToString()


def replace_charsmap(model_proto: bytes, charsmap: bytes) -> bytes:
    """Returns the model with other normalisation rules, and with white space collapsed as the clean-up demands.

    Of the rest, only pieces and the trainer's settings are kept: nothing else in an untrusted model may take effect.
    """
    model = _parse(model_proto)
    model.normalizer_spec.precompiled_charsmap = charsmap
    model.normalizer_spec.remove_extra_whitespaces = True
    return _Model(**{name: getattr(model, name) for name in _PARTS}).SerializeToString()


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
    model = _Model()
    for index, (text, score, special) in enumerate(pieces):
        kind = _NORMAL if special is None else _CONTROL if special else _USER_DEFINED
        kind = _BYTE if byte_fallback and BYTE_PIECE.fullmatch(text) else kind
        model.pieces.add(piece=text, score=score, type=_UNKNOWN if index == unk_id else kind)
    model.normalizer_spec.precompiled_charsmap = charsmap
    return _serialised(model, unk_id, byte_fallback)


def bytes_as_pieces(model_proto: bytes, user_defined: Sequence[str] = (), *, keep_white_space: bool = False) -> bytes:
    """Returns a model with the same clean-up that gives one piece for each byte of the cleaned text.

    Byte b has the id `FIRST_BYTE_ID + b`. A word start is one piece, as a model must have one such piece, and so are
    user-defined pieces, with the ids that follow, since the clean-up leaves them as they are. With `keep_white_space`
    spaces are bytes like others.
    """
    base = _parse(model_proto)
    model = _Model(trainer_spec=base.trainer_spec, normalizer_spec=base.normalizer_spec)
    if keep_white_space:
        spec = model.normalizer_spec
        spec.add_dummy_prefix = spec.remove_extra_whitespaces = spec.escape_whitespaces = False
    model.pieces.add(piece="<unk>", type=_UNKNOWN)
    model.pieces.add(piece=WORD_START, score=-1.0)
    for byte in range(256):
        model.pieces.add(piece=f"<0x{byte:02X}>", type=_BYTE)
    for text in user_defined:
        model.pieces.add(piece=text, type=_USER_DEFINED)
    return _serialised(model, 0, True)


def _serialised(model: Any, unk_id: int, byte_fallback: bool) -> bytes:
    """Serialises a unigram model after setting what the trainer of such a model records."""
    spec = model.trainer_spec
    spec.model_type, spec.vocab_size = _UNIGRAM, len(model.pieces)
    spec.byte_fallback, spec.unk_id = byte_fallback, unk_id
    spec.bos_id = spec.eos_id = spec.pad_id = -1
    return model.SerializeToString()


def normalizer_spec(charsmap: bytes) -> bytes:
    """Returns the serialised specification of a normaliser that has these compiled rules."""
    return _NormalizerSpec(precompiled_charsmap=charsmap).SerializeToString()


def read_spec_charsmap(spec: bytes) -> bytes:
    """Returns the compiled rules out of the serialised specification of a normaliser."""
    return _NormalizerSpec.FromString(spec).precompiled_charsmap
