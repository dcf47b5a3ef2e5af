"""Vocabularies that are text files, one piece a line, and the two ways such pieces are put together to words."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from albert_tf.atomic_files import atomic_write
from albert_tf.json_files import read_bytes
from albert_tf.tokenization.files import (
    CONFIG_FILE,
    VOCABULARY_FILE,
    check_no_other_vocabulary,
    read_config,
    write_config,
)
from albert_tf.tokenization.interface import SpecialPieceIds

WORDPIECE, WORD_END = SCHEMES = ("wordpiece", "word_end")
CONTINUATION = "##"
END_MARK = "_"

PAD_PIECE, UNK_PIECE, CLS_PIECE, SEP_PIECE, MASK_PIECE = SPECIAL_PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

# Of the pieces of a `word_end` vocabulary about every second one ends a word; of any other next to none.
_SHARE_OF_ENDS = 0.1


def read_vocabulary(path: str | Path) -> tuple[str, ...]:
    """Reads the pieces of a UTF-8 file in order of their ids, one a line; a blank line is a piece that no text yields.

    Raises:
        ValueError: if the file cannot be read, is not UTF-8, or is empty.
    """
    try:
        text = read_bytes(path).decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"A vocabulary file must be UTF-8 text. Received: {path}, where byte {error.start} is no UTF-8; convert "
            "the file, for example with iconv."
        ) from error
    lines = text.removesuffix("\n").split("\n")
    pieces = tuple((line.split() or [" "])[0] for line in lines)
    if pieces == (" ",):
        raise ValueError(f"The vocabulary file {path} is empty; copy it again, or give another.")
    return pieces


def read_wordpiece(content: dict[str, Any], file: Path) -> tuple[tuple[str, ...], dict[str, bool]]:
    """Returns the pieces of a `tokenizer.json` in order of their ids, and the options of its normaliser.

    Raises:
        ValueError: the file is damaged, or has a normaliser that cannot be reproduced.
    """
    try:
        ids, prefix = content["model"]["vocab"], content["model"]["continuing_subword_prefix"]
        pieces = tuple(sorted(ids, key=ids.__getitem__))
        if list(range(len(ids))) != [ids[piece] for piece in pieces]:
            raise ValueError("the ids of its pieces have gaps")
        rules = content["normalizer"]
        if (rules["type"], prefix) != ("BertNormalizer", CONTINUATION):
            raise ValueError(f"the normaliser {rules['type']} and the prefix {prefix!r} cannot be reproduced")
        lower, strip = rules["lowercase"], rules["strip_accents"]
        keep_accents = not (lower if strip is None else strip)
        options = {"do_lower_case": lower, "keep_accents": keep_accents}
        return pieces, options | {"tokenize_chinese_chars": rules["handle_chinese_chars"]}
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(
            f"{file} is no WordPiece tokenizer that can be read ({type(error).__name__}: {error}); use the vocab.txt "
            "that the model was published with."
        ) from None


def find_special_ids(pieces: Sequence[str], source: str) -> SpecialPieceIds:
    """Looks up the special pieces; ValueError if a piece is there twice, or a special one is missing.

    A vocabulary may do without [PAD]: the attention mask hides padding, so any id can stand there, and id 0 does.

    >>> find_special_ids(["[CLS]", "[SEP]", "[MASK]", "[UNK]"], "an example")
    SpecialPieceIds(pad=0, unk=3, cls=0, sep=1, mask=2)
    """
    ids = {piece: index for index, piece in enumerate(pieces)}
    if len(ids) != len(pieces):
        twice = next(piece for index, piece in enumerate(pieces) if ids[piece] != index)
        raise ValueError(
            f"A vocabulary must hold each piece once. Received: {source}, where {twice!r} is at {pieces.index(twice)} "
            f"and {ids[twice]}; rename one of the two, as the model has an embedding for each."
        )
    missing = [piece for piece in SPECIAL_PIECES[1:] if piece not in ids]
    if missing:
        raise ValueError(
            f"A vocabulary file must have the pieces {', '.join(SPECIAL_PIECES[1:])}. Received: {source}, which lacks "
            f"{', '.join(missing)}; give the file that the model was made with."
        )
    return SpecialPieceIds(ids.get(PAD_PIECE, 0), *(ids[piece] for piece in SPECIAL_PIECES[1:]))


def recognise_scheme(pieces: Sequence[str]) -> str:
    """Tells how a vocabulary's pieces make words, from their looks.

    >>> recognise_scheme(["un", "##able"]), recognise_scheme(["밥", "을_", "나", "는_"])
    ('wordpiece', 'word_end')
    """
    ends = sum(piece.endswith(END_MARK) for piece in pieces)
    continuations = sum(piece.startswith(CONTINUATION) for piece in pieces)
    return WORD_END if ends > max(continuations, _SHARE_OF_ENDS * len(pieces)) else WORDPIECE


@dataclass(frozen=True)
class WordPieceOptions:
    """How the pieces of a vocabulary file make words, and what is done to text before.

    Attributes:
        scheme: "wordpiece" (a piece inside a word begins with "##") or "word_end" (a piece at the end of a word ends
            with "_").
        do_lower_case: lower-case the text.
        keep_accents: do not drop accents and other non-spacing marks.
        reference_accents: leave the characters apart from which accents were dropped, as the reference does; every
            syllable of Hangul then comes apart, too, and one that is written in conjoining letters stays so.
        tokenize_chinese_chars: make Chinese characters words of their own; "word_end" never does.
        bare_final: "word_end" without a mark after the last word of a text.
    """

    scheme: str = WORDPIECE
    do_lower_case: bool = True
    keep_accents: bool = False
    reference_accents: bool = False
    tokenize_chinese_chars: bool = True
    bare_final: bool = False

    def __post_init__(self):
        if self.scheme not in SCHEMES:
            raise ValueError(
                f"`scheme` must be one of {', '.join(SCHEMES)}. Received: scheme={repr(self.scheme)[:60]}."
            )
        for name, value in asdict(self).items():
            if name != "scheme" and not isinstance(value, bool):
                raise ValueError(f"`{name}` must be True or False. Received: {name}={repr(value)[:60]}.")
        if self.bare_final and self.scheme != WORD_END:
            raise ValueError(
                f"`bare_final` must go with scheme='word_end'. Received: bare_final=True, scheme={self.scheme!r}."
            )


def read_wordpiece_options(
    folder: Path, pieces: Sequence[str], recorded: Mapping[str, Any], **given: str | bool | None
) -> WordPieceOptions:
    """Returns the given options, else what `tokenizer_config.json` or `recorded` says, else what suits the pieces.

    Where nothing says otherwise, accents go where capital letters go, as in the reference; "word_end" keeps them.

    Raises:
        ValueError: if the file is no JSON object, or an option is not what it must be.
    """
    recorded = dict(recorded) | {k: v for k, v in read_config(folder / CONFIG_FILE).items() if v is not None}
    if isinstance(recorded.get("strip_accents"), bool):
        recorded = {"keep_accents": not recorded["strip_accents"]} | recorded
    names = asdict(WordPieceOptions())
    options: dict[str, Any] = {name: recorded[name] for name in names if recorded.get(name) is not None}
    options |= {name: value for name, value in given.items() if value is not None}
    options.setdefault("scheme", recognise_scheme(pieces))
    options.setdefault("keep_accents", options["scheme"] == WORD_END or options.get("do_lower_case") is False)
    try:
        return WordPieceOptions(**options)
    except ValueError as error:
        raise ValueError(f"{error} This is the tokenizer in {folder}.") from None


def write_wordpiece_folder(folder: str | Path, pieces: Sequence[str], options: WordPieceOptions) -> None:
    """Writes `vocab.txt` and `tokenizer_config.json`; Hugging Face's classes know the scheme "wordpiece" alone."""
    folder = Path(folder)
    check_no_other_vocabulary(folder, VOCABULARY_FILE)
    folder.mkdir(parents=True, exist_ok=True)
    atomic_write(folder / VOCABULARY_FILE, "".join(piece + "\n" for piece in pieces).encode())
    named = {"tokenizer_class": "BertTokenizer"} if options.scheme == WORDPIECE else {}
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
