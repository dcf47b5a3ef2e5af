"""Where a tokenizer's files lie: a Hugging Face folder, a lone file, or the shipped vocabulary."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from albert_tf.atomic_files import atomic_write
from albert_tf.json_files import read_json
from albert_tf.tokenization.sentencepiece.pieces import CLS_PIECE, MASK_PIECE, PAD_PIECE, SEP_PIECE, UNK_PIECE

ASSETS = Path(__file__).parents[1] / "assets"
MODEL_FILE = "spiece.model"
VOCABULARY_FILE = "vocab.txt"
TOKENIZERS_FILE = "tokenizer.json"
CONFIG_FILE = "tokenizer_config.json"
_GOOGLE_MODEL_FILE = "30k-clean.model"


@dataclass(frozen=True)
class TokenizerOptions:
    """What a tokenizer does to text before and after SentencePiece.

    Attributes:
        do_lower_case: lower-case the text.
        keep_accents: neither decompose characters nor drop combining marks.
        reference_digit_comma: split pieces that end in digit + comma exactly as Google's code does under Python 3.
    """

    do_lower_case: bool = True
    keep_accents: bool = False
    reference_digit_comma: bool = False


def english_model_file() -> Path:
    """Returns the path of the published English vocabulary that ships with the package."""
    return ASSETS / _GOOGLE_MODEL_FILE


def vocabulary_places(checkpoint: Path) -> tuple[Path, ...]:
    """Where a checkpoint's vocabulary may be: beside it, or where TF Hub and KerasHub keep it."""
    folder = checkpoint if checkpoint.is_dir() else checkpoint.parent
    return folder, folder / "assets", folder / "assets" / "tokenizer"


def find_vocabulary(path: str | Path) -> Path:
    """Returns the file that `path` means: itself, or a folder's vocabulary; ValueError if there is none, or several.

    A folder's is `spiece.model`, `30k-clean.model`, `vocab.txt`, else a single `*.model` or `*vocab*.txt`, else
    `tokenizer.json`.
    """
    path = Path(path)
    if path.is_file():
        return path
    if not path.is_dir():
        raise ValueError(
            f"There is no vocabulary at {path}; give a SentencePiece file (*.model), a vocabulary file (*.txt), or a "
            "folder with one."
        )
    for name in (MODEL_FILE, _GOOGLE_MODEL_FILE, VOCABULARY_FILE):
        if (path / name).is_file():
            return path / name
    candidates = sorted([*path.glob("*.model"), *path.glob("*vocab*.txt")])
    if not candidates and (path / TOKENIZERS_FILE).is_file():
        return path / TOKENIZERS_FILE
    if len(candidates) != 1:
        found = ", ".join(candidate.name for candidate in candidates) or "no *.model, *vocab*.txt or tokenizer.json"
        raise ValueError(
            f"The folder {path} holds {found}; give a folder with {MODEL_FILE}, {VOCABULARY_FILE}, "
            f"{TOKENIZERS_FILE} or exactly one *.model file, or the file itself."
        )
    return candidates[0]


def read_options(folder: Path, recorded: Mapping[str, Any], **given: bool | None) -> TokenizerOptions:
    """Returns the given options, else those of the folder's `tokenizer_config.json`, else `recorded`, else the default.

    Raises:
        ValueError: if `tokenizer_config.json` is no JSON object or holds something other than true or false.
    """
    options = asdict(TokenizerOptions())
    for source in (recorded, read_config(folder / CONFIG_FILE), given):
        options |= {name: source[name] for name in options if source.get(name) is not None}
    for name, value in options.items():
        if not isinstance(value, bool):
            raise ValueError(
                f"`{name}` must be True or False. Received: {name}={repr(value)[:60]} for the tokenizer in {folder}."
            )
    return TokenizerOptions(**options)


def check_no_other_vocabulary(folder: str | Path, name: str) -> None:
    """Raises ValueError if `folder` holds a vocabulary that would be read instead of the file `name`."""
    for other in (MODEL_FILE, _GOOGLE_MODEL_FILE, VOCABULARY_FILE):
        if other != name and (Path(folder) / other).is_file():
            raise ValueError(
                f"A folder must hold one vocabulary. Received: {str(folder)!r} for {name}, with {other} in it; take "
                "another folder, or delete the file."
            )


def write_folder(folder: str | Path, model_proto: bytes, options: TokenizerOptions, *, for_transformers: bool) -> None:
    """Writes the SentencePiece file as it was read, and the options.

    `for_transformers` names the class by which transformers loads the folder; without, it refuses to guess.
    """
    folder = Path(folder)
    check_no_other_vocabulary(folder, MODEL_FILE)
    folder.mkdir(parents=True, exist_ok=True)
    atomic_write(folder / MODEL_FILE, model_proto)
    config = {
        **({"tokenizer_class": "AlbertTokenizer"} if for_transformers else {}),
        "remove_space": True,
        **asdict(options),
        "bos_token": CLS_PIECE,
        "eos_token": SEP_PIECE,
        "cls_token": CLS_PIECE,
        "sep_token": SEP_PIECE,
        "pad_token": PAD_PIECE,
        "unk_token": UNK_PIECE,
        "mask_token": MASK_PIECE,
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
    }
    write_config(folder, config)


def write_config(folder: str | Path, config: dict) -> None:
    """Writes a `tokenizer_config.json`."""
    atomic_write(Path(folder) / CONFIG_FILE, (json.dumps(config, indent=2) + "\n").encode())


def read_config(path: Path) -> dict:
    """Returns what a `tokenizer_config.json` holds, nothing where there is none; ValueError if it is no JSON object."""
    return read_json(path, cure="correct or delete it") if path.is_file() else {}
