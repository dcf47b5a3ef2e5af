"""`albert-tf report`: an HTML page about a run."""

from pathlib import Path
from typing import Annotated

import typer

from albert_tf.cli.tables import AsJson, print_json, print_table
from albert_tf.inference.progress import progress_line

NAME = "report"


def run(
    folder: Annotated[Path, typer.Argument(help="Folder of a run, finished or not.")],
    output: Annotated[Path | None, typer.Option(help="File to write; default: report.html in the folder.")] = None,
    as_json: AsJson = False,
) -> None:
    """Writes a self-contained HTML page about a run: curves, throughput, results, configuration.

    Example: albert-tf report runs/base
    """
    with progress_line("report"):
        from albert_tf.report import write_report

        report = write_report(folder, output)
    if as_json:
        print_json(report)
        return
    if report.speed is not None:
        print_table(f"{report.step:,} updates", ("median of the intervals", "value"), report.throughput.items())
    typer.echo(f"page in {report.file}")
