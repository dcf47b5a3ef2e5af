"""How a folder with a vocabulary file records what is done to text, for us and for Hugging Face's BertTokenizer."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from albert_tf.tokenization.folders import (
    CONFIG_FILE,
    VOCABULARY_FILE,
    check_no_other_vocabulary,
    read_config,
    write_config,
    write_file,
)
from albert_tf.tokenization.vocabulary_file import (
    CLS_PIECE,
    MASK_PIECE,
    PAD_PIECE,
    SCHEMES,
    SEP_PIECE,
    UNK_PIECE,
    WORD_END,
    WORDPIECE,
    recognise_scheme,
)


@dataclass(frozen=True)
class WordPieceOptions:
    """How the pieces of a vocabulary file make words, and what is done to text before.

    Attributes:
        scheme: "wordpiece" (a piece inside a word begins with "##") or "word_end" (a piece at the end of a word ends
            with "_").
        do_lower_case: lower-case the text.
        keep_accents: do not drop accents and other non-spacing marks.
        reference_accents: leave the characters apart from which accents were dropped, as the reference does; every
            syllable of Hangul then comes apart, too, and one that is spelled out in conjoining letters stays so.
        tokenize_chinese_chars: make Chinese characters words of their own; "word_end" never does.
        bare_final: "word_end" without a mark behind the last word of a text.
    """

    scheme: str = WORDPIECE
    do_lower_case: bool = True
    keep_accents: bool = False
    reference_accents: bool = False
    tokenize_chinese_chars: bool = True
    bare_final: bool = False

    def __post_init__(self):
        if self.scheme not in SCHEMES:
            raise ValueError(f"`scheme` must be one of {', '.join(SCHEMES)}. Received: scheme={self.scheme!r}.")
        for name, value in asdict(self).items():
            if name != "scheme" and not isinstance(value, bool):
                raise ValueError(f"`{name}` must be True or False. Received: {name}={value!r}.")
        if self.bare_final and self.scheme != WORD_END:
            raise ValueError(
                f"`bare_final` must go with scheme='word_end'. Received: bare_final=True, scheme={self.scheme!r}."
            )


def read_wordpiece_options(folder: Path, pieces: Sequence[str], **given: str | bool | None) -> WordPieceOptions:
    """Returns the given options, else what the folder's `tokenizer_config.json` records, else what suits the pieces.

    Where nothing says otherwise, accents go where capital letters go, as in the reference; "word_end" keeps them.

    Args:
        folder: the folder of the vocabulary file.
        pieces: the vocabulary.
        **given: fields of `WordPieceOptions`; None leaves the choice to the file.

    Returns:
        The options.

    Raises:
        ValueError: if the file is no JSON object, or an option is not what it must be.
    """
    recorded = read_config(folder / CONFIG_FILE)
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
    write_file(folder / VOCABULARY_FILE, "".join(piece + "\n" for piece in pieces).encode())
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
