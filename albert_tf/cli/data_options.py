"""Options of the commands that read examples."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

Renames = Annotated[
    list[str] | None,
    typer.Option("--rename-columns", help="theirs=ours: a column of the data by the name that the task reads; repeat."),
]
Encoding = Annotated[str | None, typer.Option(help="Of text files that are not UTF-8, such as cp949.")]
Delimiter = Annotated[
    str | None, typer.Option(help="Between the fields of a table, such as ';'.  [default: by its header]")
]


def table_options(renames: Sequence[str] | None, encoding: str | None, delimiter: str | None) -> dict[str, Any]:
    """The options as those of `TaskOptions` that were given; raises ValueError for a pair without "="."""
    given = {"encoding": encoding, "delimiter": delimiter, "rename_columns": None}
    if renames:
        given["rename_columns"] = dict(_pair(rename) for rename in renames)
    return {name: value for name, value in given.items() if value is not None}


def _pair(rename: str) -> tuple[str, str]:
    theirs, separator, ours = rename.partition("=")
    if not (theirs and separator and ours):
        raise ValueError(f"`--rename-columns` must be theirs=ours, such as frage=question. Received: {rename!r}.")
    return theirs, ours
