"""Where a tokenizer's files lie: a Hugging Face folder, a lone SentencePiece file, or the shipped vocabulary."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from albert_tf.tokenization.pieces import CLS_PIECE, MASK_PIECE, PAD_PIECE, SEP_PIECE, UNK_PIECE

ASSETS = Path(__file__).parents[1] / "assets"
MODEL_FILE = "spiece.model"
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
    place = checkpoint if checkpoint.is_dir() else checkpoint.parent
    return place, place / "assets", place / "assets" / "tokenizer"


def find_model_file(path: str | Path) -> Path:
    """Returns the SentencePiece file that `path` means.

    Args:
        path: the file itself, or a folder with `spiece.model`, `30k-clean.model` or a single `*.model`.

    Returns:
        The file's path.

    Raises:
        ValueError: if there is none, or more than one that could be meant.
    """
    path = Path(path)
    if path.is_file():
        return path
    if not path.is_dir():
        raise ValueError(
            f"`path` must be a SentencePiece file or a folder with one. Received: path={str(path)!r}, which is neither."
        )
    for name in (MODEL_FILE, _GOOGLE_MODEL_FILE):
        if (path / name).is_file():
            return path / name
    candidates = sorted(path.glob("*.model"))
    if len(candidates) != 1:
        found = ", ".join(candidate.name for candidate in candidates) or "no *.model file"
        raise ValueError(
            f"`path` must be a folder with {MODEL_FILE} or exactly one *.model file. "
            f"Received: path={str(path)!r} with {found}."
        )
    return candidates[0]


def read_options(folder: Path, **overrides: bool | None) -> TokenizerOptions:
    """Returns the options that the folder's `tokenizer_config.json` records, where it has one, under the given ones.

    Args:
        folder: the folder of the model file.
        **overrides: fields of `TokenizerOptions`; None leaves the choice to the file, then to the default.

    Returns:
        The options.

    Raises:
        ValueError: if the file is no JSON object or holds something other than true or false for an option.
    """
    options = asdict(TokenizerOptions())
    recorded = _read_config(folder / CONFIG_FILE)
    options |= {name: recorded[name] for name in options if recorded.get(name) is not None}
    options |= {name: value for name, value in overrides.items() if value is not None}
    for name, value in options.items():
        if not isinstance(value, bool):
            raise ValueError(
                f"`{name}` must be True or False. Received: {name}={value!r} for the tokenizer in {folder}."
            )
    return TokenizerOptions(**options)


def write_folder(folder: str | Path, model_proto: bytes, options: TokenizerOptions) -> None:
    """Writes the SentencePiece file as it was read, and the options, for us and for Hugging Face's AlbertTokenizer."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / MODEL_FILE, model_proto)
    config = {
        "tokenizer_class": "AlbertTokenizer",
        "remove_space": True,
        **asdict(options),
        "bos_token": CLS_PIECE,
        "eos_token": SEP_PIECE,
        "cls_token": CLS_PIECE,
        "sep_token": SEP_PIECE,
        "pad_token": PAD_PIECE,
        "unk_token": UNK_PIECE,
        "mask_token": MASK_PIECE,
    }
    _write(folder / CONFIG_FILE, (json.dumps(config, indent=2) + "\n").encode())


def _write(path: Path, content: bytes) -> None:
    """Writes a file so that its name never stands for half of it."""
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _read_config(path: Path) -> dict:
    if not path.is_file():
        return {}
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(
            f"{CONFIG_FILE} must be JSON. Received: {path}, where {error}; correct or delete it."
        ) from error
    if not isinstance(config, dict):
        raise ValueError(f"{CONFIG_FILE} must hold a JSON object. Received: {path} with {type(config).__name__}.")
    return config
