"""`--set KEY=VALUE`: the settings of a command that have no option of their own."""

from collections.abc import Collection, Sequence
from typing import Annotated, Any

import typer

from albert_tf.files.json import nearest, with_settings

Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Any other setting, by its name in recipes and with a value as there; may be repeated.",
        show_default=False,
    ),
]
# How tables are read, see `TableSettings`.
TABLE_SETTINGS = ("header", "rename_columns", "encoding", "delimiter")


def read_settings(settings: Sequence[str] | None, known: Collection[str]) -> dict[str, Any]:
    """The values of `--set` by name; raises ValueError for a name that is not known."""
    values = with_settings({}, settings or ())
    for name in values:
        if name not in known:
            otherwise = f"; it must be one of {', '.join(known)}."
            raise ValueError(f"Unknown key {name!r} in --set{nearest(name, known, otherwise)}")
    return values
