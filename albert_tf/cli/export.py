"""`albert-tf export`: exports a model to a SavedModel, or to modules for TF Hub."""

from pathlib import Path
from typing import Annotated

import typer

NAME = "export"
KEPT = "no version was written"
_FORMATS = ("saved_model", "hub")


def run(
    folder: Annotated[Path, typer.Argument(help="Folder of a fine-tuned or pretrained model.")],
    name: Annotated[str, typer.Option(help="Name of the exported model.")],
    output: Annotated[Path, typer.Option(help="Folder of all exported models.")] = Path("saved_models"),
    version: Annotated[int | None, typer.Option(help="Version number; default: the next one.")] = None,
    max_length: Annotated[
        int | None, typer.Option(help="Maximum number of tokens; default: as in training, and 128 for hub.", min=3)
    ] = None,
    to: Annotated[str, typer.Option("--format", help=f"Format to write: {' or '.join(_FORMATS)}.")] = _FORMATS[0],
) -> None:
    """Writes a SavedModel that takes raw text and only needs TensorFlow and tensorflow-text.

    With --format hub: two SavedModels, NAME/preprocess and NAME/encoder, for fine-tuning with TF Hub.

    Example: albert-tf export runs/task --name task
    """
    from albert_tf.cli.tables import print_table
    from albert_tf.export import export_hub, export_saved_model

    if to not in _FORMATS:
        raise ValueError(f"`--format` must be {' or '.join(_FORMATS)}. Received: {to}.")
    if to == "hub":
        report = export_hub(folder, _folder_of_modules(output, name, version), max_length)
    else:
        report = export_saved_model(folder, output, name, version=version, max_length=max_length)
    rows = {
        "signatures": ", ".join(report.signatures),
        "largest difference from the Keras model": f"{report.largest_difference:.1e}",
    }
    print_table("", ("", "value"), rows.items())
    typer.echo(f"{'SavedModels' if to == 'hub' else 'SavedModel'} in {report.folder}")


def _folder_of_modules(output: Path, name: str, version: int | None) -> Path:
    if name != Path(name).name or name.startswith("."):
        raise ValueError(f"`--name` must be a folder name without slashes or a leading dot. Received: {name!r}.")
    if version is not None:
        raise ValueError(f"`--version` must be omitted with --format hub. Received: {version}; choose another --name.")
    return output / name
