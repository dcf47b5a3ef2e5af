"""Reads the rows of TSV, CSV, JSON, JSONL and Parquet tables."""

import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any

from albert_tf.data.finetuning.class_labels import features_of, with_names
from albert_tf.data.finetuning.label_studio import annotated
from albert_tf.data.finetuning.separated import TAB_SUFFIXES, check_names, separated_rows, unusual_delimiter
from albert_tf.data.finetuning.table_format import TableFormat
from albert_tf.files.encodings import encoding_of, text_lines, utf8_file
from albert_tf.files.json import nearest, parse_json, read_json
from albert_tf.files.origins import is_in_memory, name_of, where
from albert_tf.files.text import MAX_EXPANSION

_SEPARATED = (*TAB_SUFFIXES, ".csv")
TABLE_SUFFIXES = (*_SEPARATED, ".jsonl", ".json", ".parquet")
_ROWS_AT_ONCE, _BYTES_AT_ONCE, _SAMPLE = 1000, 1 << 26, 1 << 16
# Of an object that another one follows, as no JSON document has it.
_JSON_LINES = re.compile(rb"^\s*\{.*\}[ \t]*\r?\n\s*\{", re.DOTALL)
_ESCAPE, _NO_MARKS = re.compile(rb"\\.", re.DOTALL), bytes({*range(256)} - {*b'[]{}"\\'})
_MAX_DEPTH = 100  # of JSON; for each value, the parser keeps the names of all around it
_CORRECT, _OF_PANDAS = "correct or delete it", 'pandas writes rows with to_json(path, orient="records")'


@dataclass(frozen=True)
class TableRow:
    """One row.

    Attributes:
        source: the file.
        line: number of its first line, from 1.
        fields: field by column.
        index: number of the row, from 0.
    """

    source: Path
    line: int
    fields: Mapping[str, Any]
    _: KW_ONLY
    index: int = 0

    @property
    def where(self) -> str:
        """File and line, for error messages."""
        return where(self.source, self.line)

    def field(self, column: str, option: str) -> Any:
        """The field of a column; raises ValueError, which names the command-line `option`, if it does not exist."""
        if column not in self.fields:
            cure, comma = f"`{option.split()[-1].removeprefix('--').replace('-', '_')}`", ""
            if not is_in_memory(self.source):
                cure, comma = f"{option} ({cure} in Python)", ","
            raise ValueError(
                f"{self.where}{comma} has no column {column!r}; its columns are {listed(self.fields)}"
                f"{nearest(column, self.fields)} Choose one with {cure}.{self.hint}"
            )
        return self.fields[column]

    @property
    def is_annotated(self) -> bool | None:
        """Whether a text of Label Studio has an annotation that was not skipped; None for rows of other origins."""
        return self.fields["annotation_id"] is not None if "annotation_id" in self.fields else None

    @property
    def is_rejected(self) -> bool:
        """Whether Prodigy's annotator rejected or skipped the text with its labels."""
        return self.fields.get("answer") in ("reject", "ignore")

    @property
    def hint(self) -> str:
        """The end of an error message about columns that were not found."""
        if not isinstance(self.fields.get("annotations"), list):
            return ""
        return " `annotations` of doccano have numbers of labels: export them as JSONL, which has their names."

    def text(self, column: str, option: str) -> str:
        """As `field`; raises ValueError also if the field, of JSON, is not a string."""
        text = self.field(column, option)
        if text is None:
            raise ValueError(f"{self.where}: {column} is empty; fill it in or delete the row.")
        if not isinstance(text, str):
            raise ValueError(f"{self.where}: {column}={text!r} is not a string; put it in quotes.")
        return text


def is_missing(value: Any) -> bool:
    """Whether a cell has no value: None or NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def is_table(path: Path) -> bool:
    """Whether the suffix is one of the tables that `read_rows` reads."""
    return path.suffix.lower() in TABLE_SUFFIXES and path.suffix.lower() != ".txt"


def read_rows(path: Path, table: TableFormat | None = None) -> Iterator[TableRow]:
    """Yields the rows of a table.

    `.tsv` and `.txt`: fields separated by tabs, without quoting (as in the files of GLUE). `.csv`: commas and double
    quotes; another separator is taken from the header, see TableFormat. `.jsonl`: one JSON object per line; `.json`: a
    list of objects, or an object with such a list as `data`; and `.parquet`, whose numbers of rows stand for lines, and
    whose class labels are read by name if `datasets` wrote it. Rows of full exports of Label Studio become those of its
    JSON-MIN, see `annotated`. A field of an inner object has the column "outer.inner".
    Text files are UTF-8, or UTF-16 with a byte-order mark, unless TableFormat has an encoding. Blank lines are skipped,
    and rows of several columns that are all empty, as spreadsheets write them.

    Args:
        path: the file.
        table: TableFormat; None: its defaults.

    Raises:
        ValueError: the file has another suffix, another encoding or is damaged, or lacks a column to rename; the
            message names the file and the line.
    """
    table, suffix = table or TableFormat(), path.suffix.lower()
    check_exists(path, "give a table")
    if is_in_memory(path):
        table = TableFormat(rename=table.rename)
    if suffix not in TABLE_SUFFIXES:
        raise ValueError(f"{name_of(path)} is not a table of a known format; convert it to {listed(TABLE_SUFFIXES)}.")
    if suffix in _SEPARATED:
        rows = separated_rows(path, table)
    elif suffix == ".parquet":
        rows = _parquet_rows(path)
    else:
        rows = _json_rows(path, table) if suffix == ".json" else _lines_of_json(path, table)
    parts = ((line, part) for line, fields in rows for part in annotated(fields, path, line))
    table_rows = (TableRow(path, line, fields, index=index) for index, (line, fields) in enumerate(parts))
    return _renamed((row for row in table_rows if not _is_empty(row)), table.rename)


def _is_empty(row: TableRow) -> bool:
    """Whether it is one of a table of several columns and has nothing in any, as spreadsheets write empty rows."""
    if len(row.fields) < 2 or not (row.source.suffix.lower() in _SEPARATED or is_in_memory(row.source)):
        return False
    return all(is_missing(value) or (isinstance(value, str) and not value.strip()) for value in row.fields.values())


def describe_table(path: Path, table: TableFormat) -> list[str]:
    """What is unusual of a text file: its separator, its encoding."""
    suffix = path.suffix.lower()
    if is_in_memory(path) or suffix == ".parquet":
        return []
    encoding = encoding_of(path, table.encoding)
    unusual = unusual_delimiter(path, table) if suffix in _SEPARATED else []
    return unusual if encoding.startswith("utf-8") else [*unusual, f"in {encoding}"]


def _renamed(rows: Iterator[TableRow], names: Mapping[str, str]) -> Iterator[TableRow]:
    is_first = bool(names)
    for row in rows:
        for name in names if is_first else ():
            row.field(name, "--set rename_columns")  # raises
        is_first = False
        fields = {name: value for name, value in row.fields.items() if name in names or name not in names.values()}
        yield replace(row, fields={names.get(name, name): value for name, value in fields.items()})


def _object(content: Any, place: str) -> dict[str, Any]:
    """A JSON object as fields by column, with those of inner objects."""
    if isinstance(content, list) and len(content) == 2 and isinstance(content[0], str) and isinstance(content[1], dict):
        content = {"text": content[0], **content[1]}  # as spaCy writes examples
    if not isinstance(content, dict):
        raise ValueError(f"{place}, is not a JSON object: {str(content)[:40]!r}; {_CORRECT}; {_OF_PANDAS}.")
    inner = {
        f"{name}.{key}": value for name, sub in content.items() if isinstance(sub, dict) for key, value in sub.items()
    }
    return {**content, **inner} if inner else content


def _lines_of_json(path: Path, table: TableFormat) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, content in enumerate(text_lines(path, table.encoding), start=1):
        if content.strip():
            place = where(path, line)
            cure = "rename the file to .json" if line == 1 and content.lstrip()[:1] == "[" else _CORRECT
            yield line, _object(parse_json(content, f"{place},", object, cure), place)


def _json_rows(path: Path, table: TableFormat) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a list, or of the list `data` of an object, one at a time, so that memory does not grow."""
    import ijson

    with utf8_file(path, table.encoding) as file:
        start = file.read(_SAMPLE)
    if _JSON_LINES.search(start):
        yield from _lines_of_json(path, table)
        return
    prefix = "item" if start.lstrip().startswith(b"[") else "data.item"
    number, cure = 0, f"give a list of objects, an object with such a list as `data`, or JSON lines; {_OF_PANDAS}"
    with utf8_file(path, table.encoding) as file:
        try:
            for number, fields in enumerate(ijson.items(_Shallow(file, path), prefix, use_float=True), start=1):
                yield number, _object(fields, where(path, number))
        except ijson.JSONError as error:
            reason = " ".join(str(error).split("(right here)")[0].split())
            place = f" after element {number}" if number else ""
            raise ValueError(f"{name_of(path)} is not valid JSON{place} ({reason[:100]}); {cure}.") from None
    if not number:
        # As to_json of pandas writes it, a column holds its values by the index of their rows.
        columns = read_json(path, cure=cure) if start.lstrip().startswith(b"{") else {}
        indexes = [list(column) if isinstance(column, dict) else [] for column in columns.values()]
        if not indexes or indexes.count(indexes[0]) < len(indexes) or not "".join(indexes[0]).isdecimal():
            raise ValueError(f"{name_of(path)} has no rows; {cure}.")
        for number, values in enumerate(zip(*(column.values() for column in columns.values())), start=1):
            yield number, _object(dict(zip(columns, values)), where(path, number))


class _Shallow:
    """A file whose JSON is nested at most `_MAX_DEPTH` deep; deeper JSON raises ValueError."""

    def __init__(self, file: Any, path: Path):
        self._file, self._path = file, path
        self._depth, self._start = 0, b""  # the start of a string or an escape that was not at its end

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        content = self._file.read(size)
        marks = _ESCAPE.sub(b"", self._start + content).translate(None, _NO_MARKS)
        parts = marks.removesuffix(b"\\").split(b'"')  # every other one is in a string
        self._start = b'"' * (len(parts) % 2 == 0) + b"\\" * marks.endswith(b"\\")
        steps = (1 if mark in b"[{" else -1 for mark in b"".join(parts[::2]))
        *_, self._depth = depths = [*itertools.accumulate(steps, initial=self._depth)]
        if max(depths) > _MAX_DEPTH:
            raise ValueError(
                f"{name_of(self._path)} is nested too deeply, in more than {_MAX_DEPTH} lists and objects; {_CORRECT}."
            )
        return content


def _parquet_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    import pyarrow as pa
    from pyarrow import parquet

    number, limit = 0, _BYTES_AT_ONCE + MAX_EXPANSION * path.stat().st_size
    try:
        metadata = parquet.read_metadata(path)
        schema = metadata.schema.to_arrow_schema()
        check_names(name_of(path), schema.names)
        # A text that is stored once for many rows is in memory once, until each row is made.
        leaves = [metadata.schema.column(index) for index in range(metadata.num_columns)]
        texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
        file = parquet.ParquetFile(path, metadata=metadata, read_dictionary=texts)
        features, size = features_of(schema.metadata), _stated_bytes(metadata, leaves)
        for batch in file.iter_batches(_ROWS_AT_ONCE) if size <= limit else ():
            of_batch = sum(map(_num_bytes, batch.columns))
            if (size := size + of_batch) > limit:
                break
            at_once = 1 if of_batch > _BYTES_AT_ONCE else _ROWS_AT_ONCE
            for start in range(0, len(batch), at_once):
                for fields in batch.slice(start, at_once).to_pylist():
                    number += 1
                    place = where(path, number)
                    yield number, _object(with_names(fields, features, place), place)
    except (pa.ArrowException, OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(
            f"{name_of(path)} is not a Parquet file, or is damaged ({reason}); write or download it again."
        ) from None
    if size > limit:
        raise ValueError(
            f"{name_of(path)} expands to more than {MAX_EXPANSION} times its size, which is unusual for text; check "
            "the file, or save it as .jsonl."
        )


def _stated_bytes(metadata: Any, leaves: Sequence[Any]) -> int:
    """How large a Parquet file says that its pages and its values, but for texts, are in memory."""
    size = 0
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for index, leaf in enumerate(leaves):
            column, width = group.column(index), max(8, leaf.length) * (1 + leaf.max_repetition_level)
            size += column.total_uncompressed_size + column.num_values * width
    return size


def _num_bytes(array: Any) -> int:
    """The bytes of an Arrow array whose texts are written out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(array.type):
        lengths = pc.call_function("binary_length", [array.dictionary])
        return pc.call_function("sum", [lengths.take(array.indices)]).as_py() or 0
    if pa.types.is_nested(array.type):
        inner = [array.keys, array.items] if pa.types.is_map(array.type) else array.flatten()
        return sum(map(_num_bytes, inner)) if isinstance(inner, list) else _num_bytes(inner)
    return array.nbytes


def check_exists(path: Path, cure: str) -> None:
    """Raises ValueError unless the path is a file."""
    if not path.is_file():
        problem = "is a folder" if path.is_dir() else "is not a file" if path.exists() else "does not exist"
        raise ValueError(f"{name_of(path)} {problem}; {cure}.")


def listed(names: Iterable[str]) -> str:
    """Joins at most eight names for an error message."""
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"
