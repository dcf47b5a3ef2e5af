"""`albert-tf export`: exports a model to a SavedModel."""

from pathlib import Path
from typing import Annotated

import typer

NAME = "export"
KEPT = "no version was written"


def run(
    folder: Annotated[Path, typer.Argument(help="Folder of a fine-tuned or pretrained model.")],
    name: Annotated[str, typer.Option(help="Name of the exported model.")],
    output: Annotated[Path, typer.Option(help="Folder of all exported models.")] = Path("saved_models"),
    version: Annotated[int | None, typer.Option(help="Version number; default: the next one.")] = None,
    max_length: Annotated[
        int | None, typer.Option(help="Maximum number of tokens; default: as in training.", min=3)
    ] = None,
) -> None:
    """Writes a SavedModel that takes raw text and only needs TensorFlow and tensorflow-text.

    Example: albert-tf export runs/task --name task
    """
    from albert_tf.cli.tables import print_table
    from albert_tf.export import export_saved_model

    report = export_saved_model(folder, output, name, version=version, max_length=max_length)
    rows = {
        "signatures": ", ".join(report.signatures),
        "largest difference from the Keras model": f"{report.largest_difference:.1e}",
    }
    print_table("", ("", "value"), rows.items())
    typer.echo(f"SavedModel in {report.folder}")
