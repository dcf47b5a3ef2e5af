"""Reads JSON and TOML files, with errors that name the file."""

import difflib
import hashlib
import json
import pathlib
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from albert_tf.files.urls import is_remote, kind_of, location, opened

MAX_BYTES, _MAX_TOML_BYTES = 64 << 20, 1 << 20
# The parser takes memory in the square of the number of parts of a key. Strings and comments hold no keys.
_MAX_KEY_PARTS = 16
_NO_KEYS = re.compile(
    r'''"""(?:\\.|[^\\])*?(?:"""|\Z)|\'{3}.*?(?:\'{3}|\Z)|"(?:\\.|[^"\\\n])*"?|'[^'\n]*'?|#[^\n]*''', re.DOTALL
)
_LONG_KEY = re.compile(rf"(?<![\w-])(?:[\w-]+[ \t]*\.[ \t]*){{{_MAX_KEY_PARTS}}}")
_CHECKSUM = "checksum"
_KINDS = {dict: "an object", list: "a list"}


def read_json(path: str | pathlib.Path, kind: type = dict, cure: str = "check the path, or restore the file") -> Any:
    """Reads a JSON file.

    Args:
        path: the file, of at most `MAX_BYTES`.
        kind: type of the top-level value, dict or list.
        cure: advice at the end of error messages.

    Raises:
        ValueError: the file cannot be read, is not JSON, or holds another type of value.
    """
    return parse_json(read_bytes(path, cure), path, kind, cure)


def has_file(path: pathlib.Path, cure: str = "restore the file, or remove it") -> bool:
    """Whether there is a file that a folder need not have.

    Raises:
        ValueError: what has its name cannot be read as a file, such as a link without its target.
    """
    kind = kind_of(path)
    if kind in ("directory", "other") or (kind is None and not is_remote(path) and path.is_symlink()):
        raise ValueError(f"{path} is not a file, but a folder, a pipe or a link that leads to no file; {cure}.")
    return kind == "file"


def optional_json(path: pathlib.Path, cure: str = "restore the file, or remove it") -> dict[str, Any]:
    """The object in a JSON file, empty if there is none; raises ValueError as `has_file` and `read_json`."""
    return read_json(path, cure=cure) if has_file(path, cure) else {}


def parse_json(content: str | bytes, source: Any, kind: type = dict, cure: str = "restore the file") -> Any:
    """Parses the content of a JSON file; raises ValueError as `read_json`, naming `source`."""
    value = _parse(json.loads, content, source, "JSON", cure)
    if not isinstance(value, kind):
        raise ValueError(f"{source} holds {type(value).__name__} where {_KINDS[kind]} is expected; {cure}.")
    return value


def read_toml(path: str | pathlib.Path, cure: str = "correct it") -> dict[str, Any]:
    """Reads a TOML file of at most 1 MiB, without keys of many parts; raises ValueError as `read_json` does."""
    content = read_bytes(path, "check the path", _MAX_TOML_BYTES)
    return _parse(lambda content: _toml(content.decode("utf-8-sig")), content, path, "TOML", cure)


def _toml(content: str) -> dict[str, Any]:
    if _LONG_KEY.search(_NO_KEYS.sub("x", content)):
        raise ValueError(f"a key has more than {_MAX_KEY_PARTS} parts")
    return tomllib.loads(content)


def with_settings(values: Mapping[str, Any], settings: Iterable[str]) -> dict[str, Any]:
    """The values of a TOML file with some changed.

    Args:
        values: by key; those of tables in dicts.
        settings: such as `seed=3`, or `training.seed=3` for a key of a table. A value is one of TOML, or a text without
            quotes that is none.

    Raises:
        ValueError: a setting is not `key=value`, or its value begins like one of TOML and is none.

    Example:

    >>> with_settings({"epochs": 3}, ["epochs=4", "optimizer=lamb", "class_weights.spam=2"])
    {'epochs': 4, 'optimizer': 'lamb', 'class_weights': {'spam': 2}}
    """
    changed = dict(values)
    for setting in settings:
        name, separator, text = (part.strip() for part in setting.partition("="))
        table, dot, key = name.partition(".")
        if not (separator and table) or (dot and not key):
            raise ValueError(f"`--set` must be KEY=VALUE, such as seed=3. Received: {setting!r}.")
        value = _toml_value(text, setting)
        if dot:
            inner = changed.get(table)
            value = {**(inner if isinstance(inner, Mapping) else {}), key: value}
        changed[table] = value
    return changed


def _toml_value(text: str, setting: str) -> Any:
    try:
        read = _toml(f"value = {text}")
    except (ValueError, RecursionError):
        if text.startswith(("[", "{", '"', "'")):
            raise ValueError(
                """`--set` must have a value of TOML, such as 3, ["a", "b"] or {a = 3}, in single quotes for the """
                f"shell. Received: {setting!r}."
            ) from None
        return text
    return read["value"] if len(read) == 1 else text


def read_bytes(path: str | pathlib.Path, cure: str = "check the path", max_bytes: int = MAX_BYTES) -> bytes:
    """Reads a file; raises ValueError if it cannot be read or has more than `max_bytes`."""
    path = location(path)
    kind = kind_of(path)
    if kind is None:
        raise ValueError(f"{path} does not exist; {cure}.")
    if kind != "file":
        raise ValueError(f"{path} is not a file; {cure}.")
    try:
        with opened(path) as file:
            # `read(max_bytes)` would allocate as many, even for a small file.
            content = file.read(min(path.stat().st_size, max_bytes) + 1)
    except OSError as error:
        raise ValueError(f"{path} could not be read ({error.strerror}); {cure}.") from None
    if len(content) > max_bytes:
        raise ValueError(f"{path} is larger than {max_bytes:,} bytes; {cure}.")
    return content


def finite(value: Any, default: Callable[[Any], Any] | None = None) -> Any:
    """A value as JSON has it, with None for numbers that are not finite, which JSON has not.

    Args:
        value: what `json.dumps` takes.
        default: turns other objects into such values.

    Example:

    >>> finite({"pearson": float("nan"), "steps": (1, 2)})
    {'pearson': None, 'steps': [1, 2]}
    """
    return json.loads(json.dumps(value, default=default), parse_constant=lambda _: None)


def nearest(name: object, choices: Iterable[str], otherwise: str = ".") -> str:
    """The end of an error message: suggests the closest match, or is `otherwise` if nothing is close."""
    close = difflib.get_close_matches(str(name), list(choices), n=1)
    return f"; did you mean {close[0]!r}?" if close else otherwise


def with_checksum(values: Mapping[str, Any]) -> dict[str, Any]:
    """Adds a key `checksum`: the SHA-256 of the values as canonical JSON.

    Example:

    >>> verify_checksum(with_checksum({"step": 1}), "step-1.json")
    {'step': 1}
    """
    return {**values, _CHECKSUM: _checksum(values)}


def verify_checksum(values: Mapping[str, Any], source: Any, cure: str = "restore the file") -> dict[str, Any]:
    """Returns the values without their checksum; raises ValueError, naming `source`, if it is missing or wrong."""
    content = {key: value for key, value in values.items() if key != _CHECKSUM}
    if _CHECKSUM not in values:
        raise ValueError(f"{source} has no checksum (it was truncated or edited); {cure}.")
    if values[_CHECKSUM] != _checksum(content):
        raise ValueError(f"{source} was changed after it was written (its checksum differs); {cure}.")
    return content


def _checksum(values: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _parse(parse: Callable[[Any], Any], content: str | bytes, source: Any, language: str, cure: str) -> Any:
    try:
        return parse(content)
    except RecursionError:
        raise ValueError(f"{source} is not valid {language} (nested too deeply); {cure}.") from None
    except ValueError as error:  # also bad UTF-8 and integers of thousands of digits
        raise ValueError(f"{source} is not valid {language} ({error}); {cure}.") from None
