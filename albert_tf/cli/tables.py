"""Tables on the terminal, with untruncated cells and escaped control characters."""

import dataclasses
import json
import math
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from albert_tf.files.json import finite

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
_MAX_LABELS, _MAX_COLUMNS = 20, 8
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


def print_json(value: Any, indent: int | None = 2) -> None:
    """Prints a value as JSON: dataclasses as objects, arrays as lists, paths as strings; NaN and infinity are null."""
    content = json.dumps(finite(value, _plain), indent=indent, ensure_ascii=False)
    print(content.encode("utf-8", "backslashreplace").decode())  # of lone surrogates, which labels from JSON may hold


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    to_list = getattr(value, "tolist", None)
    return str(value) if to_list is None else to_list()


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


def print_scores(
    title: str, scores: Any, constant: Any, file: str, more: Iterable[tuple[str, str]] = (), notes: Iterable[str] = ()
) -> None:
    """Prints tables of scores, of those of each label, and of the confusion of few labels, as far as there are such.

    Args:
        title: printed above the first table.
        scores: a dataclass of scores, which may be nested; those that are None are left out.
        constant: a `ConstantScore`, or None.
        file: what has the scores of all labels, if there are too many for a table.
        more: other rows of the first table.
        notes: sentences, printed below the tables.
    """
    values = dataclasses.asdict(scores)
    positive, by_label, confusion = (values.pop(name, None) for name in ("positive_label", "by_label", "confusion"))
    rows = [(f"f1 of {positive}" if positive and name == "f1" else name, shown) for name, shown in _rows_of(values)]
    rows += [] if constant is None else [(constant.name, shown_score(constant.value))]
    print_table(title, ("score", "value"), [*rows, *more])
    if by_label:
        _print_labels(scores.by_label, file)
    if confusion and len(by_label or ()) <= _MAX_COLUMNS:  # of more, the matrix is in the file
        _print_confusion(list(by_label or ()), confusion)
    for note in notes:
        typer.echo(printable(note))


def _print_labels(by_label: Mapping[str, Any], file: str) -> None:
    from albert_tf.metrics.labels import most_frequent

    names = most_frequent(by_label, _MAX_LABELS)
    title = "" if len(names) == len(by_label) else f"the most frequent of {len(by_label):,} labels; all are in {file}"
    rows = (
        (name, *map(shown_score, (scores.precision, scores.recall, scores.f1)), f"{scores.examples:,}")
        for name, scores in ((name, by_label[name]) for name in names)
    )
    print_table(title, ("label", "precision", "recall", "f1", "examples"), rows)


def _print_confusion(names: list[str], confusion: dict[str, dict[str, int]]) -> None:
    rows = ((name, *(f"{confusion.get(name, {}).get(other, 0):,}" for other in names)) for name in names)
    print_table("rows are labels, columns predictions", ("label", *names), rows)


def _rows_of(values: dict[str, Any], group: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        label = f"{group} {name}".strip().replace("_", " ")
        if isinstance(value, dict):
            yield from _rows_of(value, label)
        elif value is not None:
            yield label, f"{value:,}" if isinstance(value, int) else shown_score(value)


def shown_score(score: float | None) -> str:
    """A score with four digits."""
    return "undefined" if score is None or math.isnan(score) else f"{score:.4f}"
