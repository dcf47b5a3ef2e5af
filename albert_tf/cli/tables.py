"""How tables look on the command line."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table


def plain_table(title: str, first: str, *others: str) -> "Table":
    """A table whose first column is text and whose other columns are numbers."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right")
    return table
