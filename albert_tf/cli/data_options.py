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
Threshold = Annotated[
    list[str] | None,
    typer.Option(
        "--threshold",
        help="Any number of labels per text: those with probabilities above it; or label=number, repeat.",
        show_default=False,
    ),
]


def table_options(renames: Sequence[str] | None, encoding: str | None, delimiter: str | None) -> dict[str, Any]:
    """The options as those of `TaskOptions` that were given; raises ValueError for a pair without "="."""
    given = {"encoding": encoding, "delimiter": delimiter, "rename_columns": None}
    if renames:
        given["rename_columns"] = dict(_pair(rename) for rename in renames)
    return {name: value for name, value in given.items() if value is not None}


def threshold_option(values: Sequence[str] | None) -> dict[str, Any]:
    """The option `threshold` if it was given: a number, or numbers by label."""
    if not values:
        return {}
    pairs = [value.rpartition("=") for value in values]
    try:
        if len(values) == 1 and not pairs[0][1]:
            return {"threshold": float(values[0])}
        if all(label for label, *_ in pairs):
            return {"threshold": {label: float(number) for label, _, number in pairs}}
    except ValueError:
        pass
    raise ValueError(
        f"`--threshold` must be a number such as 0.4, or label=number, repeated. Received: {', '.join(values)}."
    )


def _pair(rename: str) -> tuple[str, str]:
    theirs, separator, ours = rename.partition("=")
    if not (theirs and separator and ours):
        raise ValueError(f"`--rename-columns` must be theirs=ours, such as frage=question. Received: {rename!r}.")
    return theirs, ours
