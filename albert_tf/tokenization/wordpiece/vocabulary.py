"""Vocabulary files with one piece per line, and the two schemes by which pieces form words."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from albert_tf.files.atomic import atomic_write
from albert_tf.files.json import read_bytes
from albert_tf.files.urls import location, make_folder
from albert_tf.tokenization.files import (
    CONFIG_FILE,
    TOKENIZERS_FILE,
    VOCABULARY_FILE,
    check_no_other_vocabulary,
    read_config,
    write_config,
)
from albert_tf.tokenization.interface import SpecialPieceIds
from albert_tf.tokenization.sentencepiece.huggingface_json import tokenizer_json
from albert_tf.tokenization.wordpiece.longest_match import MAX_WORD_LENGTH

WORDPIECE, WORD_END = SCHEMES = ("wordpiece", "word_end")
CONTINUATION = "##"
END_MARK = "_"

PAD_PIECE, UNK_PIECE, CLS_PIECE, SEP_PIECE, MASK_PIECE = SPECIAL_PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

# About half of the pieces of a `word_end` vocabulary end a word; in other vocabularies almost none do.
_MIN_FRACTION_OF_ENDS = 0.1
# Of the words of a `tokenizer.json` that does not say how long they may be, and of any.
_DEFAULT_OF_TOKENIZERS, _LONGEST_WORD = 100, 1 << 20


def read_vocabulary(path: str | Path) -> tuple[str, ...]:
    """Reads the pieces of a UTF-8 file, one per line; a blank line is a piece that never matches.

    Raises:
        ValueError: the file cannot be read, is not UTF-8, or is empty.
    """
    try:
        text = read_bytes(path).decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"A vocabulary file must be UTF-8 text. Received: {path}, which is not valid UTF-8 at byte {error.start}; "
            "convert the file, for example with iconv."
        ) from error
    lines = text.removesuffix("\n").split("\n")
    pieces = tuple((line.split() or [" "])[0] for line in lines)
    if pieces == (" ",):
        raise ValueError(f"The vocabulary file {path} is empty; copy it again, or use another.")
    return pieces


def read_wordpiece(content: dict[str, Any], file: Path) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Returns the pieces of a `tokenizer.json` in order of their ids, and its options.

    Raises:
        ValueError: the file is damaged, or its normalizer is not supported.
    """
    try:
        ids, prefix = content["model"]["vocab"], content["model"]["continuing_subword_prefix"]
        pieces = tuple(sorted(ids, key=ids.__getitem__))
        if list(range(len(ids))) != [ids[piece] for piece in pieces]:
            raise ValueError("the ids of its pieces have gaps")
        rules = content["normalizer"]
        rules, *others = rules["normalizers"] if rules["type"] == "Sequence" else [rules]
        splits = content["pre_tokenizer"]["type"]
        steps = [rules["type"], *(one["type"] for one in others if one["type"] != "NFC"), splits]
        if steps != ["BertNormalizer", "BertPreTokenizer"] or prefix != CONTINUATION:
            raise ValueError(f"the steps {', '.join(steps)} with the prefix {prefix!r} cannot be reproduced")
        lower, strip = rules["lowercase"], rules["strip_accents"]
        keep_accents = not (lower if strip is None else strip)
        if not rules["clean_text"]:
            raise ValueError("texts that are not cleaned (clean_text = false) cannot be reproduced")
        options = {"do_lower_case": lower, "keep_accents": keep_accents}
        options["max_word_length"] = content["model"].get("max_input_chars_per_word", _DEFAULT_OF_TOKENIZERS)
        return pieces, options | {"tokenize_chinese_chars": rules["handle_chinese_chars"]}
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(
            f"{file} is no WordPiece tokenizer that can be read ({type(error).__name__}: {error}); use the vocab.txt "
            "that the model was published with."
        ) from None


def tokenizers_file(pieces: Sequence[str], options: "WordPieceOptions") -> bytes:
    """The content of a `tokenizer.json` of the scheme "wordpiece"."""
    rules = {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": options.tokenize_chinese_chars,
        "strip_accents": not options.keep_accents,
        "lowercase": options.do_lower_case,
    }
    composes = not options.keep_accents and not options.reference_accents  # Hangul again
    model = {
        "type": "WordPiece",
        "unk_token": UNK_PIECE,
        "continuing_subword_prefix": CONTINUATION,
        "max_input_chars_per_word": options.max_word_length,
        "vocab": {piece: index for index, piece in enumerate(pieces)},
    }
    return tokenizer_json(
        pieces,
        find_special_ids(pieces, "the vocabulary"),
        normalizer={"type": "Sequence", "normalizers": [rules, *([{"type": "NFC"}] if composes else [])]},
        pre_tokenizer={"type": "BertPreTokenizer"},
        decoder={"type": "WordPiece", "prefix": CONTINUATION, "cleanup": False},
        model=model,
    )


def find_special_ids(pieces: Sequence[str], source: str) -> SpecialPieceIds:
    """Returns the ids of special pieces; raises ValueError if a piece occurs twice, or a special one is missing.

    [PAD] is optional: the attention mask hides padding, so id 0 is used without it.

    >>> find_special_ids(["[CLS]", "[SEP]", "[MASK]", "[UNK]"], "an example")
    SpecialPieceIds(pad=0, unk=3, cls=0, sep=1, mask=2)
    """
    ids = {piece: index for index, piece in enumerate(pieces)}
    if len(ids) != len(pieces):
        twice = next(piece for index, piece in enumerate(pieces) if ids[piece] != index)
        raise ValueError(
            f"A vocabulary must have each piece once. Received: {source}, where {twice!r} is at {pieces.index(twice)} "
            f"and {ids[twice]}; rename one of the two, because the model has an embedding for each."
        )
    missing = [piece for piece in SPECIAL_PIECES[1:] if piece not in ids]
    if missing:
        raise ValueError(
            f"A vocabulary file must have the pieces {', '.join(SPECIAL_PIECES[1:])}. Received: {source}, which lacks "
            f"{', '.join(missing)}; use the file that the model was trained with."
        )
    return SpecialPieceIds(ids.get(PAD_PIECE, 0), *(ids[piece] for piece in SPECIAL_PIECES[1:]))


def recognise_scheme(pieces: Sequence[str]) -> str:
    """Detects the scheme of a vocabulary from its pieces.

    >>> recognise_scheme(["un", "##able"]), recognise_scheme(["밥", "을_", "나", "는_"])
    ('wordpiece', 'word_end')
    """
    ends = sum(piece.endswith(END_MARK) for piece in pieces)
    continuations = sum(piece.startswith(CONTINUATION) for piece in pieces)
    return WORD_END if ends > max(continuations, _MIN_FRACTION_OF_ENDS * len(pieces)) else WORDPIECE


@dataclass(frozen=True)
class WordPieceOptions:
    """The scheme of a vocabulary file, and the options of the clean-up.

    Attributes:
        scheme: "wordpiece" (pieces inside a word begin with "##") or "word_end" (pieces at the end of a word end with
            "_").
        do_lower_case: lower-case text.
        keep_accents: do not drop accents and other non-spacing marks.
        reference_accents: do not compose characters again after dropping accents, as in the reference; Hangul syllables
            are then decomposed.
        tokenize_chinese_chars: make Chinese characters separate words; ignored with "word_end".
        bare_final: with "word_end", the last word of a text has no mark.
        max_word_length: longer words are unknown; in characters.

    Raises:
        ValueError: a value has another type, the scheme is unknown, or options exclude each other.
    """

    scheme: str = WORDPIECE
    do_lower_case: bool = True
    keep_accents: bool = False
    reference_accents: bool = False
    tokenize_chinese_chars: bool = True
    bare_final: bool = False
    max_word_length: int = MAX_WORD_LENGTH

    def __post_init__(self):
        if self.scheme not in SCHEMES:
            raise ValueError(
                f"`scheme` must be one of {', '.join(SCHEMES)}. Received: scheme={repr(self.scheme)[:60]}."
            )
        for name, value in asdict(self).items():
            if name not in ("scheme", "max_word_length") and not isinstance(value, bool):
                raise ValueError(f"`{name}` must be True or False. Received: {name}={repr(value)[:60]}.")
        if type(self.max_word_length) is not int or not 1 <= self.max_word_length <= _LONGEST_WORD:
            raise ValueError(
                f"`max_word_length` must be an integer from 1 to {_LONGEST_WORD}. Received: max_word_length="
                f"{repr(self.max_word_length)[:60]}."
            )
        if self.bare_final and self.scheme != WORD_END:
            raise ValueError(
                f"`bare_final` requires scheme='word_end'. Received: bare_final=True, scheme={self.scheme!r}."
            )


def read_wordpiece_options(
    folder: Path, pieces: Sequence[str], recorded: Mapping[str, Any], **arguments: str | bool | None
) -> WordPieceOptions:
    """Returns the given options, else those in `tokenizer_config.json` or `recorded`, else defaults for the pieces.

    By default accents are dropped if text is lower-cased, as in the reference; "word_end" keeps them.

    Raises:
        ValueError: the file is not a JSON object, or an option is invalid.
    """
    recorded = dict(recorded) | {k: v for k, v in read_config(folder / CONFIG_FILE).items() if v is not None}
    if isinstance(recorded.get("strip_accents"), bool):
        recorded = {"keep_accents": not recorded["strip_accents"]} | recorded
    names = asdict(WordPieceOptions())
    options: dict[str, Any] = {name: recorded[name] for name in names if recorded.get(name) is not None}
    options |= {name: value for name, value in arguments.items() if value is not None}
    options.setdefault("scheme", recognise_scheme(pieces))
    options.setdefault("keep_accents", options["scheme"] == WORD_END or options.get("do_lower_case") is False)
    try:
        return WordPieceOptions(**options)
    except ValueError as error:
        raise ValueError(f"{error} This is the tokenizer in {folder}.") from None


def write_wordpiece_folder(folder: str | Path, pieces: Sequence[str], options: WordPieceOptions) -> None:
    """Writes `vocab.txt`, `tokenizer_config.json` and, for the scheme "wordpiece", `tokenizer.json`."""
    folder = location(folder)
    check_no_other_vocabulary(folder, VOCABULARY_FILE)
    make_folder(folder)
    atomic_write(folder / VOCABULARY_FILE, "".join(piece + "\n" for piece in pieces).encode())
    named = {"tokenizer_class": "BertTokenizer"} if options.scheme == WORDPIECE else {}
    if options.scheme == WORDPIECE:
        atomic_write(folder / TOKENIZERS_FILE, tokenizers_file(pieces, options))
    else:
        (folder / TOKENIZERS_FILE).unlink(missing_ok=True)
    special = {"unk": UNK_PIECE, "cls": CLS_PIECE, "sep": SEP_PIECE, "mask": MASK_PIECE}
    if PAD_PIECE in pieces:
        special["pad"] = PAD_PIECE
    config = {
        **named,
        **asdict(options),
        "strip_accents": not options.keep_accents,
        **{f"{name}_token": piece for name, piece in special.items()},
    }
    write_config(folder, config)
