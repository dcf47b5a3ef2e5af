"""`albert-tf export`: exports a model to a SavedModel, to ONNX or LiteRT files, or for TF Hub."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from albert_tf.cli.paths import checkpoint_folder
from albert_tf.cli.settings import Settings, read_settings
from albert_tf.cli.tables import print_table
from albert_tf.files.installation import install_command
from albert_tf.inference.progress import progress_line

NAME = "export"
REMAINS = "no version was written"
# The formats that take an option or a setting, where not all do.
_FORMATS_OF = {
    **dict.fromkeys(("license", "precision", "frozen", "xla", "flash_attention", "attention"), ("saved_model",)),
    **dict.fromkeys(("calibration", "float16"), ("onnx",)),
    **dict.fromkeys(("windows", "pair_column"), ("saved_model", "onnx")),  # the others read no windows and no pairs
    **dict.fromkeys(("version", "threshold"), ("saved_model", "onnx", "litert")),
    "int8": ("litert",),
}

_Format = Annotated[
    Literal["saved_model", "onnx", "hub", "litert"],
    typer.Option(
        "--format",
        help="onnx: for OpenVINO, onnxruntime and transformers.js; hub: for TF Hub; litert: for phones.",
    ),
]
_Precision = Annotated[
    Literal["float32", "bfloat16"], typer.Option(help="saved_model: data type of weights and computation.")
]
_Calibration = Annotated[
    Path | None, typer.Option(help="onnx: file of typical texts, one a line, to calibrate the int8 file.")
]


def run(
    folder: Annotated[Path, typer.Argument(help="Folder of a fine-tuned or pretrained model, or its name.")],
    name: Annotated[str, typer.Option(help="Name of the exported model.")],
    output: Annotated[Path, typer.Option(help="Folder of all exported models.")] = Path("saved_models"),
    version: Annotated[int | None, typer.Option(help="Version number; default: the next one.")] = None,
    max_length: Annotated[
        int | None,
        typer.Option(help="Maximum number of tokens; default: as in training; for hub 128, for litert at most.", min=3),
    ] = None,
    settings: Settings = None,
    form: _Format = "saved_model",
    license: Annotated[str | None, typer.Option(help="saved_model: licence to state in MODEL.md.")] = None,
    precision: _Precision = "float32",
    frozen: Annotated[bool, typer.Option("--frozen", help="saved_model: weights as constants of the graph.")] = False,
    xla: Annotated[
        bool, typer.Option("--xla", help="saved_model: for GPUs, compile with XLA for few batch sizes and lengths.")
    ] = False,
    flash_attention: Annotated[
        bool,
        typer.Option("--flash-attention", help="saved_model: as --xla, in bfloat16 for NVIDIA GPUs alone, with cuDNN."),
    ] = False,
    attention: Annotated[
        bool, typer.Option("--attention", help="saved_model: add a signature with the attention of layers and heads.")
    ] = False,
    calibration: _Calibration = None,
    float16: Annotated[bool, typer.Option("--float16", help="onnx: also write a float16 file, for WebGPU.")] = False,
    int8: Annotated[bool, typer.Option("--int8", help="litert: round weights to 8 bits.")] = False,
) -> None:
    """Writes a model for use without albert_tf, in one of four formats.

    By default, a SavedModel that takes raw text and only needs TensorFlow and tensorflow-text; with --format onnx, a
    folder of ONNX files; with --format hub, two SavedModels, NAME/preprocess and NAME/encoder, for fine-tuning with TF
    Hub; with --format litert, a file of TensorFlow Lite for texts of one length, without the tokenizer.

    Example: albert-tf export runs/task --name task

    Example: albert-tf export runs/task --name task-onnx --format onnx

    Example: albert-tf export runs/task --name task --set windows=mean
    """
    chosen = read_settings(settings, ("threshold", "windows", "pair_column"))
    options: dict[str, Any] = {"version": version, "license": license, "frozen": frozen}
    options |= {"precision": None if precision == "float32" else precision}
    options |= {"xla": xla, "flash_attention": flash_attention, "attention": attention}
    options |= {"calibration": calibration, "float16": float16, "int8": int8}
    given = {name: value for name, value in options.items() if value is not None and value is not False} | chosen
    for option in given:
        if form not in _FORMATS_OF[option]:
            shown = option if option in chosen else f"--{option.replace('_', '-')}"
            raise ValueError(f"`{shown}` is only for `--format {', '.join(_FORMATS_OF[option])}`; leave it out.")
    arguments = {"source": checkpoint_folder(folder), "output": output, "name": name, "max_length": max_length, **given}
    write = {"onnx": _export_onnx, "litert": _export_litert, "hub": _export_hub, "saved_model": _export_saved_model}
    write[form](arguments)


def _export_saved_model(arguments: dict[str, Any]) -> None:
    with progress_line("export"):
        from albert_tf.export import export_saved_model

        report = export_saved_model(**arguments)
    _print_signatures(report)
    typer.echo(f"SavedModel in {report.folder}")


def _export_hub(arguments: dict[str, Any]) -> None:
    with progress_line("export"):
        from albert_tf.export import export_hub
        from albert_tf.export.versions import check_name

        check_name(arguments["name"])
        report = export_hub(arguments["source"], arguments["output"] / arguments["name"], arguments["max_length"])
    _print_signatures(report)
    typer.echo(f"SavedModels in {report.folder}")


def _print_signatures(report: Any) -> None:
    difference = ("largest difference from Keras", f"{report.largest_difference:.1e}")
    print_table("", ("", "value"), [("signatures", ", ".join(report.signatures)), difference], num_text_columns=2)


def _export_litert(arguments: dict[str, Any]) -> None:
    with progress_line("export"):
        from albert_tf.export import export_litert

        report = export_litert(**arguments)
    typer.echo(f"model.tflite of {report.size / 1e6:.1f} MB for {report.length} tokens in {report.folder}")


def _export_onnx(arguments: dict[str, Any]) -> None:
    from albert_tf.files.text import read_lines

    calibration, has_float16 = arguments.pop("calibration", None), arguments.pop("float16", False)
    texts = [] if calibration is None else [line.text for line in read_lines(calibration) if line.text.strip()]
    precisions = ("float32", "float16", "int8") if has_float16 else ("float32", "int8")
    with progress_line("export"):
        try:
            from albert_tf.export.onnx_folder import export_onnx
        except ImportError:
            raise ValueError(f"ONNX files need onnx and onnxruntime; {install_command('onnx')}.") from None
        report = export_onnx(**arguments, precisions=precisions, calibration=texts)
    rows = [
        (precision, f"{size / 1e6:.1f} MB", f"{report.largest_differences[precision]:.1e}")
        for precision, size in report.sizes.items()
    ]
    print_table("", ("", "size", "largest difference from the Keras model"), rows)
    typer.echo(f"ONNX files in {report.folder}")
