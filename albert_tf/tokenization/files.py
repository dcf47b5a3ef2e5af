"""The files of a tokenizer."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from albert_tf.files.atomic import atomic_write, write_json
from albert_tf.files.hub import model_folder
from albert_tf.files.json import has_file, optional_json
from albert_tf.files.urls import location, make_folder
from albert_tf.tokenization.sentencepiece.pieces import CLS_PIECE, MASK_PIECE, PAD_PIECE, SEP_PIECE, UNK_PIECE

ASSETS = Path(__file__).parents[1] / "assets"
MODEL_FILE = "spiece.model"
VOCABULARY_FILE = "vocab.txt"
TOKENIZERS_FILE = "tokenizer.json"
CONFIG_FILE = "tokenizer_config.json"
_GOOGLE_MODEL_FILE = "30k-clean.model"
# In order of precedence: SentencePiece models, KerasHub's, WordPiece vocabularies, tokenizer.json.
_OF_CHECKPOINTS = (MODEL_FILE, "*.model", "*.spm", "*vocab*.txt", TOKENIZERS_FILE)


@dataclass(frozen=True)
class TokenizerOptions:
    """Processing of text before and after SentencePiece.

    Attributes:
        do_lower_case: lower-case text.
        keep_accents: do not decompose characters and drop combining marks.
        reference_digit_comma: split pieces that end in digit + comma exactly as Google's code under Python 3.
    """

    do_lower_case: bool = True
    keep_accents: bool = False
    reference_digit_comma: bool = False


def english_model_file() -> Path:
    """The path of the published English vocabulary in the package."""
    return ASSETS / _GOOGLE_MODEL_FILE


def vocabulary_of(checkpoint: Path) -> Path | None:
    """The vocabulary file of a checkpoint, None if there is none."""
    folder = checkpoint if checkpoint.is_dir() else checkpoint.parent
    places = (folder, folder / "assets", folder / "assets" / "tokenizer")  # ours, TF Hub's, KerasHub's
    return next((file for place in places for name in _OF_CHECKPOINTS for file in sorted(place.glob(name))), None)


def find_vocabulary(path: str | Path, revision: str | None = None) -> Path:
    """Returns `path` if it is a file, or the vocabulary in a folder; raises ValueError if there is none, or several.

    In a folder it is `spiece.model`, `30k-clean.model`, `vocab.txt`, else a single `*.model` or `*vocab*.txt`, else
    `tokenizer.json`. A name on huggingface.co is downloaded.
    """
    path = model_folder(path, revision, weights=False)
    if path.is_file():
        return path
    if not path.is_dir():
        raise ValueError(
            f"There is no vocabulary at {path}; pass a SentencePiece file (*.model), a vocabulary file (*.txt), or a "
            "folder with one."
        )
    for name in (MODEL_FILE, _GOOGLE_MODEL_FILE, VOCABULARY_FILE):
        if has_file(path / name):
            return path / name
    candidates = sorted([*path.glob("*.model"), *path.glob("*vocab*.txt")])
    if not candidates and has_file(path / TOKENIZERS_FILE):
        return path / TOKENIZERS_FILE
    if len(candidates) != 1:
        names = ", ".join(candidate.name for candidate in candidates) or "no *.model, *vocab*.txt or tokenizer.json"
        raise ValueError(
            f"The folder {path} has {names}; pass a folder with {MODEL_FILE}, {VOCABULARY_FILE}, {TOKENIZERS_FILE} or "
            "exactly one *.model file, or the file itself."
        )
    return candidates[0]


def read_options(folder: Path, recorded: Mapping[str, Any], **arguments: bool | None) -> TokenizerOptions:
    """Returns the given options, else those in `tokenizer_config.json`, else `recorded` ones, else the defaults.

    Raises:
        ValueError: `tokenizer_config.json` is not a JSON object, or an option is not a bool.
    """
    options = asdict(TokenizerOptions())
    for source in (recorded, read_config(folder / CONFIG_FILE), arguments):
        options |= {name: source[name] for name in options if source.get(name) is not None}
    for name, value in options.items():
        if not isinstance(value, bool):
            raise ValueError(
                f"`{name}` must be True or False. Received: {name}={repr(value)[:60]} for the tokenizer in {folder}."
            )
    return TokenizerOptions(**options)


def check_no_other_vocabulary(folder: str | Path, name: str) -> None:
    """Raises ValueError if `folder` has another vocabulary, which could be loaded instead of the file `name`."""
    for other in (MODEL_FILE, _GOOGLE_MODEL_FILE, VOCABULARY_FILE):
        if other != name and (location(folder) / other).is_file():
            raise ValueError(
                f"{str(folder)!r} already has the vocabulary {other}, so {name} cannot be written there; use another "
                "folder, or delete the file."
            )


def write_folder(folder: str | Path, model_proto: bytes, options: TokenizerOptions, *, for_transformers: bool) -> None:
    """Writes the SentencePiece file and the options; with `for_transformers` also the class in transformers."""
    folder = location(folder)
    check_no_other_vocabulary(folder, MODEL_FILE)
    make_folder(folder)
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
    write_json(location(folder) / CONFIG_FILE, config)


def read_config(path: Path) -> dict:
    """The content of a `tokenizer_config.json`, empty if it does not exist; raises ValueError if it is invalid."""
    return optional_json(path, "correct or delete it")
