"""`albert-tf verify`: whether a downloaded checkpoint is what it should be."""

from pathlib import Path
from typing import Annotated

import typer

NAME = "verify"


def run(
    folder: Annotated[Path, typer.Argument(help="Folder, file or prefix of a checkpoint of any kind.")],
) -> None:
    """Checks files, weights, vocabulary and published outputs; ends with 0 only if all pass, else with 2.

    Example: albert-tf verify albert_base_v2
    """
    import rich
    from rich.text import Text

    from albert_tf.cli.tables import plain_table
    from albert_tf.verify import verify

    checks = verify(folder)
    table = plain_table("", "check", "result")
    table.add_column("finding")
    for check in checks:
        result = Text("pass", "green") if check.passed else Text("fail", "bold red")
        table.add_row(check.name, result, Text(check.finding))
    rich.print(table)
    if not all(check.passed for check in checks):
        raise typer.Exit(2)
