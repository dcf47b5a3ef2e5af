"""`albert-tf export`: exports a model to a SavedModel or to ONNX files."""

from pathlib import Path
from typing import Annotated, Literal

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
    form: Annotated[
        Literal["saved_model", "onnx"], typer.Option("--format", help="onnx: for OpenVINO, onnxruntime and browsers.")
    ] = "saved_model",
    calibration: Annotated[
        Path | None, typer.Option(help="onnx: file with a text per line like those of use, for the int8 file.")
    ] = None,
    float16: Annotated[bool, typer.Option("--float16", help="onnx: also write a float16 file, for WebGPU.")] = False,
) -> None:
    """Writes a SavedModel that takes raw text and only needs TensorFlow and tensorflow-text, or a folder of ONNX files.

    Example: albert-tf export runs/task --name task

    Example: albert-tf export runs/task --name task --format onnx
    """
    if form == "onnx":
        _export_onnx(folder, output, name, version, max_length, calibration, float16)
        return
    if calibration is not None or float16:
        raise ValueError("`--calibration` and `--float16` must be given with `--format onnx` alone; leave them out.")
    from albert_tf.cli.tables import print_table
    from albert_tf.export import export_saved_model

    report = export_saved_model(folder, output, name, version=version, max_length=max_length)
    rows = {
        "signatures": ", ".join(report.signatures),
        "largest difference from the Keras model": f"{report.largest_difference:.1e}",
    }
    print_table("", ("", "value"), rows.items())
    typer.echo(f"SavedModel in {report.folder}")


def _export_onnx(
    folder: Path,
    output: Path,
    name: str,
    version: int | None,
    max_length: int | None,
    calibration: Path | None,
    float16: bool,
) -> None:
    from albert_tf.cli.tables import print_table
    from albert_tf.text_files import read_lines

    try:
        from albert_tf.export.onnx_folder import export_onnx
    except ImportError:
        raise ValueError("ONNX files need onnx and onnxruntime; pip install 'albert-tf[onnx]'.") from None
    texts = [] if calibration is None else [line.text for line in read_lines(calibration) if line.text.strip()]
    precisions = ("float32", "float16", "int8") if float16 else ("float32", "int8")
    report = export_onnx(folder, output, name, version, max_length, precisions, texts)
    rows = [
        (precision, f"{size / 1e6:.1f} MB", f"{report.largest_differences[precision]:.1e}")
        for precision, size in report.sizes.items()
    ]
    print_table("", ("", "size", "largest difference from the Keras model"), rows)
    typer.echo(f"ONNX files in {report.folder}")
