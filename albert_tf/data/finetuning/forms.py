"""The forms in which examples of a task are written, and which of them a table has."""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from albert_tf.data.finetuning.stored_rows import StoredRows
from albert_tf.data.finetuning.table_format import TableFormat
from albert_tf.data.finetuning.tables import TableRow, describe_table, listed, read_rows
from albert_tf.files.origins import name_of

Example = TypeVar("Example")
# Of Python's or of JSON, within the cell of a table.
_WRITTEN_OUT = re.compile(r"""\{['"].*\}|\[(array\(|[\[{'"]).*\]|array\(.*\)""", re.DOTALL)


@dataclass(frozen=True)
class Form(Generic[Example]):
    """One form.

    Attributes:
        name: what its users call it.
        columns: the columns by which it is recognised; "|" separates names of one column.
        read: makes the examples of a row.
    """

    name: str
    columns: tuple[str, ...]
    read: Callable[[TableRow], Iterable[Example]]

    def missing(self, fields: Mapping[str, Any]) -> list[str]:
        """The columns that a row lacks."""
        return [column for column in self.columns if not any(name in fields for name in column.split("|"))]


class Examples(StoredRows[Example]):
    """Examples on disk.

    Attributes:
        form: what the file was recognised as.
    """

    form = ""


def read_examples(
    path: Path, forms: Sequence[Form[Example]], table: TableFormat, task: str
) -> tuple[str, Iterator[Example]]:
    """The form of a table, and its examples.

    Args:
        path: a table, see `read_rows`.
        forms: those of the task; the first one whose columns the first row has is taken.
        table: TableFormat.
        task: name of the task, for messages.

    Raises:
        ValueError: the file has none of the forms; the iterator raises it if a later row has another one.
    """
    rows = read_rows(path, table)
    first = next(rows, None)
    if first is None:
        raise ValueError(f"{name_of(path)} has no rows; is it the right file?")
    form = next((form for form in forms if not form.missing(first.fields)), None)
    if form is None:
        raise ValueError(_unknown(first, forms, task))
    name = ", ".join([form.name, *describe_table(path, table)])
    return name, _examples(form, itertools.chain([first], rows))


def _examples(form: Form[Example], rows: Iterable[TableRow]) -> Iterator[Example]:
    for row in rows:
        if missing := form.missing(row.fields):
            raise ValueError(
                f"{row.where}, has no column {' or '.join(map(repr, missing[0].split('|')))}, unlike the rows before "
                f"({form.name}); correct it, or give rows of different forms in files of their own."
            )
        for name in (name for column in form.columns for name in column.split("|")):
            if isinstance(value := row.fields.get(name), str) and _WRITTEN_OUT.fullmatch(value):
                raise ValueError(
                    f"{row.where}: {name} is a list or a dict that was written as text, {value[:40]!r}, as to_csv of "
                    "pandas does; save the table as .parquet, or as .jsonl with to_json(path, orient='records', "
                    "lines=True)."
                )
        yield from form.read(row)


def _unknown(row: TableRow, forms: Sequence[Form], task: str) -> str:
    """The error for a row of none of the forms: its columns, and those that are recognised."""
    known = "; ".join(f"{form.name}: {', '.join(column.split('|')[0] for column in form.columns)}" for form in forms)
    return (
        f"{row.where}, has none of the forms of {task}; its columns are {listed(row.fields) or 'none'}. Rename them to "
        f"those of one of these (--set rename_columns.theirs=ours), or check `task`: {known}.{row.hint}"
    )


def value_of(fields: Mapping[str, Any], *names: str) -> Any:
    """The value of the first of some columns that is not empty, otherwise of the first that is there, or None."""
    values = [fields[name] for name in names if name in fields]
    return next((value for value in values if value not in (None, "", [], {})), values[0] if values else None)


def string_of(row: TableRow, *names: str) -> str:
    """As `value_of`; raises ValueError if it is not a string."""
    value = value_of(row.fields, *names)
    if not isinstance(value, str):
        raise ValueError(f"{row.where}: {names[0]}={str(value)[:40]!r} is not a string; correct it.")
    return value
