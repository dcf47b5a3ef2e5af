"""Tables of separated fields: TSV and CSV with any separator, and with or without a header."""

import collections
import csv
import io
import re
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from albert_tf.data.finetuning.table_format import TableFormat
from albert_tf.files.encodings import text_lines
from albert_tf.files.origins import name_of, where

TAB_SUFFIXES = (".tsv", ".txt")
_MAX_FIELD = 2**31 - 1  # characters of a field of a CSV file, instead of the 128 KiB of Python's module
# A field as spreadsheets write it if there are quotes in the text.
_DOUBLED = re.compile(r'"(?:[^"]|"")*""(?:[^"]|"")*"')
# A field between tabs that needs quotes.
NEEDS_QUOTES = re.compile('^"|[\t\r\n]')
_QUOTED = re.compile('"[^"]*"')
# A first line that spreadsheets write and read.
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\s*')


def separated_rows(path: Path, table: TableFormat) -> Iterator[tuple[int, dict[str, str]]]:
    """Yields the number of the first line and the fields by column of each row; errors as `read_rows`."""
    delimiter = delimiter_of(path, table)
    is_plain = delimiter == "\t" and path.suffix.lower() in TAB_SUFFIXES and table.delimiter is None
    rows = _tab_fields(path, table) if is_plain else _csv_fields(path, table, delimiter)
    if not table.header:
        # Rows may differ in length: only the selected columns are required.
        yield from ((line, {str(n): field for n, field in enumerate(fields)}) for line, fields in rows)
        return
    names = [name.strip() for name in next(rows, (1, []))[1]]
    check_names(f"The header of {name_of(path)}", names)
    ragged = []
    for line, fields in rows:
        if len(fields) == len(names):
            yield line, dict(zip(names, fields))
        elif table.drop_ragged:
            ragged.append(str(line))
        else:
            raise ValueError(
                f"{where(path, line)}, has {len(fields)} fields, but the header has {len(names)}; correct or delete "
                f"the line, or --set header=false if there is no header{_quoted_cure(is_plain, fields)}; `finetune "
                f"--set ragged_rows=drop` leaves out such lines."
            )
    if ragged:
        shown = f"{', '.join(ragged[:3])}{', ...' if len(ragged) > 3 else ''}"
        warnings.warn(
            f"{name_of(path)}: {len(ragged):,} rows were left out, because they have more or fewer fields than the "
            f"header: lines {shown}.",
            stacklevel=2,
        )


def separated_line(fields: Iterable[Any], delimiter: str) -> str:
    """A row of a table with its end; between tabs, few fields are in quotes, which readers of .tsv take for text."""
    if delimiter == "\t":
        texts = map(str, fields)
        quoted = (f'"{text.replace(chr(34), chr(34) * 2)}"' if NEEDS_QUOTES.search(text) else text for text in texts)
        return "\t".join(quoted) + "\n"
    line = io.StringIO()
    csv.writer(line, delimiter=delimiter, lineterminator="\n").writerow(fields)
    return line.getvalue()


def delimiter_of(path: Path, table: TableFormat) -> str:
    """The separator of a table: the given one, or that of its suffix unless the header has just another one."""
    default = _usual_delimiter(path)
    if table.delimiter is not None:
        return table.delimiter
    header = next((line for line in text_lines(path, table.encoding) if line.strip()), "")
    if match := _SEPARATOR_LINE.fullmatch(header):
        return match[1]
    if not table.header:
        return default
    others = [delimiter for delimiter in ",;\t|" if delimiter in _QUOTED.sub("", header)]
    return others[0] if len(others) == 1 else default


def _usual_delimiter(path: Path) -> str:
    return "\t" if path.suffix.lower() in TAB_SUFFIXES else ","


def unusual_delimiter(path: Path, table: TableFormat) -> list[str]:
    """What to say of the separator of a table; nothing if it is that of its suffix."""
    delimiter = delimiter_of(path, table)
    if delimiter == _usual_delimiter(path):
        return []
    return [f"separated by {'tabs' if delimiter == chr(9) else repr(delimiter)}"]


def _quoted_cure(is_plain: bool, fields: list[str]) -> str:
    is_quoted = is_plain and any(field.startswith('"') for field in fields)
    return ", or --set delimiter=tab if fields are in quotes" if is_quoted else ""


def _tab_fields(path: Path, table: TableFormat) -> Iterator[tuple[int, list[str]]]:
    quoted = 0
    for line, content in enumerate(text_lines(path, table.encoding), start=1):
        if content := content.removesuffix("\n").removesuffix("\r"):
            fields = content.split("\t")
            quoted += any(_DOUBLED.fullmatch(field) for field in fields)
            yield line, fields
    if quoted:
        warnings.warn(
            f"{name_of(path)}: {quoted:,} rows have fields in quotes with doubled quotes in them, which are kept as "
            "they are; set `delimiter` to 'tab' (--set delimiter=tab) to read them as a spreadsheet wrote them.",
            stacklevel=2,
        )


def _csv_fields(path: Path, table: TableFormat, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    limit = csv.field_size_limit(_MAX_FIELD)
    reader = csv.reader(text_lines(path, table.encoding, newline=""), strict=True, delimiter=delimiter)
    line = 1
    try:
        for fields in reader:
            if fields and not (line == 1 and _SEPARATOR_LINE.fullmatch(delimiter.join(fields))):
                yield line, fields
            line = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(
            f"{where(path, line)}, is not valid CSV ({error}): close quotes, and double them inside a field, or save "
            "the table as .tsv."
        ) from None
    finally:
        csv.field_size_limit(limit)


def check_names(table: str, names: Iterable[str]) -> None:
    """Raises ValueError if two columns of a table have the same name."""
    repeated = [name for name, count in collections.Counter(names).items() if name and count > 1]
    if repeated:
        raise ValueError(f"{table} has two columns {repeated[0]!r}; rename one of them.")
