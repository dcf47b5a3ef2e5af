"""Reads the rows of TSV, CSV, JSON, JSONL and Parquet tables."""

import collections
import csv
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from albert_tf.files.json import MAX_DATA_BYTES, nearest, parse_json, read_bytes
from albert_tf.files.text import read_lines

_TAB_SUFFIXES = (".tsv", ".txt")
_SUFFIXES = (*_TAB_SUFFIXES, ".csv", ".jsonl", ".json", ".parquet")
_CORRECT = "correct or delete it"
_MAX_FIELD = 2**31 - 1  # characters of a field of a CSV file, instead of the 128 KiB of Python's module


@dataclass(frozen=True)
class Row:
    """One row.

    Attributes:
        source: the file.
        line: number of its first line, from 1.
        fields: field by column.
    """

    source: Path
    line: int
    fields: Mapping[str, Any]

    @property
    def where(self) -> str:
        """File and line, for error messages."""
        return f"{self.source}, line {self.line}"

    def field(self, column: str, option: str) -> Any:
        """The field of a column; raises ValueError, which names the command-line `option`, if it does not exist."""
        if column not in self.fields:
            # The rows of a table with a header have the same columns.
            has_names = self.source.suffix.lower() in (*_TAB_SUFFIXES, ".csv") and "0" not in self.fields
            where = self.source if has_names else f"{self.where},"
            raise ValueError(
                f"{where} has no column {column!r}; its columns are {listed(self.fields)}"
                f"{nearest(column, self.fields)} Choose one with {option}."
            )
        return self.fields[column]

    def text(self, column: str, option: str) -> str:
        """As `field`; raises ValueError also if the field, of JSON, is not a string."""
        text = self.field(column, option)
        if not isinstance(text, str):
            raise ValueError(f"{self.where}: {column}={text!r} is not a string; put it in quotes.")
        return text


def read_rows(path: Path, header: bool, drop_ragged: bool = False) -> Iterator[Row]:
    """Yields the rows of a table.

    `.tsv` and `.txt`: fields separated by tabs, without quoting (as in the files of GLUE). `.csv`: commas and double
    quotes. `.jsonl`: one JSON object per line; `.json`: a list of objects, and `.parquet`, whose numbers of rows stand
    for lines. A field of an inner object has the column "outer.inner". Text files are UTF-8, with or without a
    byte-order mark; blank lines are skipped, but those within a `.tsv` file of one column, and others with all of its
    tabs, are empty fields.

    Args:
        path: the file.
        header: whether the first row of a TSV or CSV file names the columns; otherwise they are numbered from 0.
        drop_ragged: whether to leave out rows with more or fewer fields than the header, with a warning.

    Raises:
        ValueError: the file has another suffix, is not UTF-8 or is damaged; the message names the file and the line.
    """
    _check_exists(path, "give a table")
    if path.suffix.lower() not in _SUFFIXES:
        raise ValueError(f"{path} is not a table of a known format; convert it to {listed(_SUFFIXES)}.")
    if path.suffix.lower() == ".jsonl":
        return read_objects(path, _CORRECT)
    if path.suffix.lower() in (".json", ".parquet"):
        objects = _list_elements(path) if path.suffix.lower() == ".json" else _parquet_rows(path)
        return (_of_object(path, number, fields) for number, fields in enumerate(objects, start=1))
    return _separated_rows(path, header, drop_ragged)


def read_objects(path: Path, cure: str) -> Iterator[Row]:
    """Yields the JSON objects of a file with one on each line.

    Raises:
        ValueError: the file does not exist, or a line is not an object; the message ends with `cure`.
    """
    _check_exists(path, cure)
    with path.open("rb") as file:
        for line, content in enumerate(file, start=1):
            if content.strip():
                yield _of_object(path, line, parse_json(content, f"{path}, line {line},", cure=cure))


def _of_object(path: Path, line: int, fields: dict[str, Any]) -> Row:
    nested = {
        f"{name}.{key}": value for name, own in fields.items() if isinstance(own, dict) for key, value in own.items()
    }
    return Row(path, line, {**fields, **nested})


def _list_elements(path: Path) -> Iterator[dict[str, Any]]:
    cure = "give a list of objects"
    for number, fields in enumerate(parse_json(read_bytes(path, cure, MAX_DATA_BYTES), path, list, cure), start=1):
        if not isinstance(fields, dict):
            raise ValueError(f"{path}, element {number}, is not a JSON object: {str(fields)[:40]!r}; {_CORRECT}.")
        yield fields


def _parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        for batch in parquet.ParquetFile(path).iter_batches():
            yield from batch.to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise ValueError(
            f"{path} is not a Parquet file, or is damaged ({error}); write or download it again."
        ) from None


def _separated_rows(path: Path, header: bool, drop_ragged: bool) -> Iterator[Row]:
    rows = _csv_fields(path) if path.suffix.lower() == ".csv" else _tab_fields(path)
    if not header:
        # Rows may differ in length: only the selected columns are required.
        yield from (Row(path, line, {str(n): field for n, field in enumerate(fields)}) for line, fields in rows)
        return
    names = _unique(path, next(rows, (1, []))[1])
    ragged = []
    for line, fields in rows:
        if len(fields) == len(names):
            yield Row(path, line, dict(zip(names, fields)))
        elif drop_ragged:
            ragged.append(str(line))
        else:
            raise ValueError(
                f"{path}, line {line}, has {len(fields)} fields, but the header has {len(names)}; correct or delete "
                f"the line, or set --no-header if there is no header; a recipe of `finetune` with ragged_rows = 'drop' "
                f"leaves out such lines."
            )
    if ragged:
        shown = f"{', '.join(ragged[:3])}{', ...' if len(ragged) > 3 else ''}"
        warnings.warn(
            f"{path}: {len(ragged):,} rows were left out, because they have more or fewer fields than the header: "
            f"lines {shown}.",
            stacklevel=2,
        )


def _tab_fields(path: Path) -> Iterator[tuple[int, list[str]]]:
    columns = blank = 0
    for line, content in enumerate(_lines(path), start=1):
        content = content.removesuffix("\n").removesuffix("\r")
        if not content:  # in a table of one column an empty field, unless only such lines follow
            blank += columns == 1
            continue
        yield from ((line - back, [""]) for back in range(blank, 0, -1))
        blank, fields = 0, content.split("\t")
        if content.strip() or len(fields) == columns:
            columns = columns or len(fields)
            yield line, fields


def _unique(path: Path, names: list[str]) -> list[str]:
    names = [name.strip() for name in names]
    repeated = [name for name, count in collections.Counter(names).items() if name and count > 1]
    if repeated:
        raise ValueError(f"The header of {path} has two columns {repeated[0]!r}; rename one of them.")
    return names


def _csv_fields(path: Path) -> Iterator[tuple[int, list[str]]]:
    limit = csv.field_size_limit(_MAX_FIELD)
    reader = csv.reader(_lines(path, newline=""), strict=True)
    line = 1
    try:
        for fields in reader:
            if fields:
                yield line, fields
            line = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(
            f"{path}, line {line}, is not valid CSV ({error}): close quotes, and double them inside a field, or save "
            "the table as .tsv."
        ) from None
    finally:
        csv.field_size_limit(limit)


def _lines(path: Path, newline: str = "\n") -> Iterator[str]:
    """The lines of a UTF-8 file with their ends, one at a time; `newline` as in `open`."""
    try:
        with path.open(encoding="utf-8-sig", newline=newline) as file:
            yield from file
    except UnicodeDecodeError:
        collections.deque(read_lines(path), maxlen=0)  # raises an error that names the file and the byte
        raise


def _check_exists(path: Path, cure: str) -> None:
    if not path.is_file():
        problem = "is a folder" if path.is_dir() else "is not a file" if path.exists() else "does not exist"
        raise ValueError(f"{path} {problem}; {cure}.")


def listed(names: Iterable[str]) -> str:
    """Joins at most eight names for an error message."""
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"
