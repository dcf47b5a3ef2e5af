"""Tables on the terminal, with untruncated cells and escaped control characters."""

import dataclasses
import json
import shutil
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, TextIO

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
JOINERS = "\u200c\u200d"  # part of ordinary Indic text and of emoji


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], num_text_columns: int = 1) -> None:
    """Prints a table to standard output.

    Args:
        title: printed above the table; may be empty.
        columns: the names of the columns.
        rows: the cells of each row.
        num_text_columns: the number of text columns, on the left; the other columns are right-aligned.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(printable(title)) if title else None, title_justify="left", title_style="bold")
    for index, name in enumerate(columns):
        justify = "left" if index < num_text_columns else "right"
        table.add_column(Text(printable(name)), justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    Console().print(table)


def print_json(value: Any) -> None:
    """Prints a value as JSON: dataclasses as objects, arrays as lists, paths as strings."""
    print(json.dumps(value, indent=2, ensure_ascii=False, default=_plain))


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    to_list = getattr(value, "tolist", None)
    return str(value) if to_list is None else to_list()


def wrapped(text: str, stream: TextIO | None) -> str:
    """Breaks a text between words if it is for a terminal, which would break anywhere."""
    if stream is None or not stream.isatty():
        return text
    return textwrap.fill(text, shutil.get_terminal_size().columns, break_long_words=False, break_on_hyphens=False)


def printable(text: str) -> str:
    r"""Escapes control characters, so that the content of a file cannot control the terminal.

    Example:

    >>> print(printable("a\x1b[2Jb 한국어"))
    a\x1b[2Jb 한국어
    """
    return "".join(
        character.encode("unicode_escape").decode() if _is_control(character) else character for character in text
    )


def _is_control(character: str) -> bool:
    return unicodedata.category(character).startswith(("C", "Zl", "Zp")) and character not in JOINERS


def score_rows(scores: Any, constant: Any = None) -> list[tuple[str, str]]:
    """Rows for a dataclass of scores, which may be nested, except those that are None, and for a `ConstantScore`."""
    rows = list(_rows_of(dataclasses.asdict(scores), ""))
    return rows if constant is None else [*rows, (constant.name, f"{constant.value:.4f}")]


def _rows_of(values: dict[str, Any], group: str) -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        label = f"{group} {name}".strip().replace("_", " ")
        if isinstance(value, dict):
            yield from _rows_of(value, label)
        elif value is not None:
            yield label, f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
