"""Rows of a table file, each a dict from column name to field, whatever the kind of file."""

import collections
import csv
import difflib
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from albert_tf.text_files import read_lines

_TAB_SUFFIXES = (".tsv", ".txt")
_SUFFIXES = (*_TAB_SUFFIXES, ".csv", ".jsonl")


@dataclass(frozen=True)
class Row:
    """One row.

    Attributes:
        source: the file.
        line: the line, counted from 1, that it begins on.
        fields: field by column.
    """

    source: Path
    line: int
    fields: dict[str, Any]

    def field(self, column: str, option: str = "") -> Any:
        """The field of a column.

        Args:
            column: name of the column.
            option: what the command line calls the choice of this column, for the message.

        Raises:
            ValueError: there is no such column; the message says which there are.
        """
        if column not in self.fields:
            cure = f"choose one with {option}" if option else "correct the name"
            raise ValueError(
                f"{self.source} has no column {column!r}: those in line {self.line} are {listed(self.fields)}"
                f"{nearest(column, self.fields)}; {cure}."
            )
        return self.fields[column]

    def text(self, column: str, option: str = "") -> str:
        """The field of a column that holds text.

        Raises:
            ValueError: there is no such column, or JSON holds something else there.
        """
        text = self.field(column, option)
        if not isinstance(text, str):
            raise ValueError(f"{self.source}, line {self.line}: {column}={text!r} is not a string; put it in quotes.")
        return text


def read_rows(path: Path, header: bool) -> Iterator[Row]:
    """Yields the rows of a table; its suffix says how to read it.

    `.tsv` and `.txt`: fields between tabs, quotes are plain characters (as in the files of GLUE). `.csv`: commas and
    double quotes. `.jsonl`: one JSON object a line. All are UTF-8, with or without a byte-order mark; empty lines count
    for nothing.

    Args:
        path: the file.
        header: whether the first row of a TSV or CSV file names the columns. Without it, columns are numbers from 0.

    Raises:
        ValueError: the file is of another kind, not UTF-8, or damaged; the message names the file and the line.
    """
    if not path.is_file():
        raise ValueError(f"{path} {'is a folder' if path.is_dir() else 'does not exist'}; give a table.")
    if path.suffix.lower() not in _SUFFIXES:
        raise ValueError(f"{path} is not a table that can be read; convert it to {listed(_SUFFIXES)}.")
    return _json_rows(path) if path.suffix.lower() == ".jsonl" else _separated_rows(path, header)


def _json_rows(path: Path) -> Iterator[Row]:
    for line, text in _lines(_read(path)):
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}, line {line}, is not a JSON object ({error}); correct or delete it.") from None
        if not isinstance(fields, dict):
            raise ValueError(f"{path}, line {line}, is not a JSON object: {text[:40]!r}; correct or delete it.")
        yield Row(path, line, fields)


def _separated_rows(path: Path, header: bool) -> Iterator[Row]:
    text = _read(path)
    if path.suffix.lower() == ".csv":
        rows = _csv_fields(path, text)
    else:
        rows = ((line, content.split("\t")) for line, content in _lines(text))
    if not header:
        # Only the columns asked for must be there, as rows may end in remarks of their own.
        yield from (Row(path, line, {str(n): field for n, field in enumerate(fields)}) for line, fields in rows)
        return
    names = _unique(path, next(rows, (1, []))[1])
    for line, fields in rows:
        if len(fields) != len(names):
            raise ValueError(
                f"{path}, line {line}, has {len(fields)} fields and the header has {len(names)}; correct or delete the "
                f"line, or say that there is no header (--no-header)."
            )
        yield Row(path, line, dict(zip(names, fields)))


def _unique(path: Path, names: list[str]) -> list[str]:
    names = [name.strip() for name in names]
    repeated = [name for name, count in collections.Counter(names).items() if name and count > 1]
    if repeated:
        raise ValueError(f"The header of {path} names {repeated[0]!r} twice; rename one of these columns.")
    return names


def _csv_fields(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    # The module's limit of 128 KiB a field is not ours.
    limit = csv.field_size_limit(max(len(text), csv.field_size_limit()))
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    try:
        for fields in reader:
            if fields:
                yield line, fields
            line = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(
            f"{path}, line {line}, is not CSV ({error}): quotes have to be closed, and doubled inside a field; correct "
            "it, or save the table as .tsv."
        ) from None
    finally:
        csv.field_size_limit(limit)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for line, content in enumerate(text.split("\n"), start=1):
        if content.strip():
            yield line, content.removesuffix("\r")


def _read(path: Path) -> str:
    content = path.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        collections.deque(read_lines(path), maxlen=0)  # which raises, naming the file and the byte
        raise


def listed(names: Iterable[str]) -> str:
    """At most eight of the names, for a message."""
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"


def nearest(name: str, choices: Iterable[str]) -> str:
    """The end of a message that suggests what may have been meant."""
    close = difflib.get_close_matches(name, list(choices), n=1)
    return f"; did you mean {close[0]!r}" if close else ""
