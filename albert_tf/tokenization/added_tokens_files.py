"""Added tokens in files: in those of transformers, and one token a line."""

import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from albert_tf.files.atomic import atomic_write
from albert_tf.files.json import has_file, optional_json, read_bytes, read_json
from albert_tf.tokenization.files import CONFIG_FILE, TOKENIZERS_FILE, read_config, write_config
from albert_tf.tokenization.interface import AddedToken

_KEY = "added_tokens_decoder"
# Written until 2023, and also by scripts.
_IDS_FILE = "added_tokens.json"
_UNSUPPORTED = ("lstrip", "rstrip", "single_word")


def write_added_tokens(folder: Path, tokens: Sequence[AddedToken], first_id: int) -> None:
    """Writes tokens into a tokenizer's `tokenizer_config.json`, and into its `tokenizer.json`, if there is one."""
    entries = {
        index: asdict(token) | dict.fromkeys(_UNSUPPORTED, False) for index, token in enumerate(tokens, first_id)
    }
    write_config(folder, read_config(folder / CONFIG_FILE) | {_KEY: entries})
    if has_file(file := folder / TOKENIZERS_FILE):
        content = read_json(file, cure="save the tokenizer again")
        content["added_tokens"] += [{"id": index} | entry for index, entry in entries.items()]
        atomic_write(file, json.dumps(content, ensure_ascii=False).encode())


def read_added_tokens(file: Path, first_id: int) -> list[AddedToken]:
    """Reads the tokens that are recorded beside a vocabulary, or in it, with ids from `first_id` on.

    Warns:
        UserWarning: a piece of the vocabulary is also an added token of transformers.

    Raises:
        ValueError: a file is damaged, ids have gaps, or a token has a property that cannot be reproduced.
    """
    for path, record in _records(file):
        try:
            by_id = {int(index): entry for index, entry in _entries(record)}
            added = {index: entry for index, entry in by_id.items() if index >= first_id}
            tokens = [_token(added[index]) for index in sorted(added)]
            pieces = [
                by_id[index]["content"] for index in sorted(by_id.keys() - added) if by_id[index].get("normalized")
            ]
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(
                f"{path} has added tokens that cannot be read ({type(error).__name__}: {error}); save the tokenizer "
                "again."
            ) from None
        if sorted(added) != list(range(first_id, first_id + len(added))):
            raise ValueError(
                f"Ids of added tokens must follow those of the pieces, {first_id} and so on. Received: "
                f"{sorted(added)[:3]} in {path}; use the vocabulary that they were added to."
            )
        if pieces:
            warnings.warn(
                f"{path} has the piece {pieces[0]!r} as an added token too, at which transformers splits texts, also "
                "inside words, and this tokenizer does not; ids of texts with it may differ.",
                stacklevel=2,
            )
        if tokens:
            return tokens
    return []


def read_token_lines(path: str | Path) -> list[str]:
    """Reads a UTF-8 file with one token a line; blank lines and white space around tokens are left out.

    Raises:
        ValueError: the file cannot be read, is not UTF-8, or has no tokens.
    """
    try:
        lines = read_bytes(path).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"A file of tokens must be UTF-8 text. Received: {path}, which is not valid UTF-8 at byte {error.start}; "
            "convert the file, for example with iconv."
        ) from error
    tokens = [line.strip() for line in lines if line.strip()]
    if not tokens:
        raise ValueError(f"{path} has no tokens; write one a line.")
    return tokens


def _records(file: Path) -> Iterator[tuple[Path, Any]]:
    """What each file that may have added tokens says about them."""
    folder = file.parent
    yield folder / CONFIG_FILE, read_config(folder / CONFIG_FILE).get(_KEY) or {}
    if file.suffix == ".json":
        yield file, read_json(file, cure="save the tokenizer again").get("added_tokens") or []
    yield folder / _IDS_FILE, optional_json(folder / _IDS_FILE, "delete it")


def _entries(record: Any) -> list[tuple[Any, dict[str, Any]]]:
    """Pairs of id and entry, from a list of entries with ids, entries by id, or ids by token."""
    if isinstance(record, list):
        return [(entry["id"], entry) for entry in record]
    return [(key, value) if isinstance(value, dict) else (value, {"content": key}) for key, value in record.items()]


def _token(entry: dict[str, Any]) -> AddedToken:
    if named := [name for name in _UNSUPPORTED if entry.get(name)]:
        raise ValueError(f"the token {entry['content']!r} has {named[0]}, which is not supported")
    special = bool(entry.get("special"))
    return AddedToken(entry["content"], bool(entry.get("normalized", not special)), special)
