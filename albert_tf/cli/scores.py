"""Scores of a classifier as a table."""

import dataclasses
from typing import TYPE_CHECKING, Any

from albert_tf.cli.tables import plain_table

if TYPE_CHECKING:
    from rich.table import Table


def scores_table(title: str, scores: Any) -> "Table":
    """A table of the scores, one a row; those that do not apply to the task are left out."""
    table = plain_table(title, "score", "value")
    for name, value in dataclasses.asdict(scores).items():
        if value is not None:
            table.add_row(name.replace("_", " "), f"{value:.4f}")
    return table
