"""`albert-tf export`: exports a model to a SavedModel, to ONNX or LiteRT files, or for TF Hub."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from albert_tf.cli.paths import checkpoint_folder
from albert_tf.cli.settings import Settings, read_settings
from albert_tf.cli.tables import print_table
from albert_tf.files.installation import install_command
from albert_tf.files.urls import kind_of, location
from albert_tf.inference.progress import progress_line

NAME = "export"
REMAINS = "no version was written"
_OF_TEXTS = ("windows", "pair_column")

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
    chosen = read_settings(settings, ("threshold", *_OF_TEXTS))
    _check_form(form, calibration is not None or float16, int8, chosen)
    options: dict[str, Any] = {"license": license, "precision": precision}
    options |= {"frozen": frozen, "xla": xla, "flash_attention": flash_attention, "attention": attention}
    for option, value in options.items():
        if form != "saved_model" and value not in (None, False, "float32"):
            raise ValueError(f"`--{option.replace('_', '-')}` is only for `--format saved_model`; leave it out.")
    location(output)  # raises if it is a URL that cannot be reached
    folder = checkpoint_folder(folder)
    arguments = {"source": folder, "output": output, "name": name, "version": version, "max_length": max_length}
    arguments |= chosen
    if form == "onnx":
        _export_onnx(arguments, calibration, float16)
    elif form == "litert":
        _export_litert(arguments | {"int8": int8})
    else:
        _export_graph(form, arguments, options)


def _check_form(form: str, is_for_onnx: bool, int8: bool, settings: dict[str, Any]) -> None:
    if form != "onnx" and is_for_onnx:
        raise ValueError("`--calibration` and `--float16` are only for `--format onnx`; leave them out.")
    if int8 and form != "litert":
        raise ValueError("`--int8` is only for `--format litert`; leave it out (onnx has an int8 file).")
    for name in settings.keys() & {*_OF_TEXTS} if form not in ("saved_model", "onnx") else ():
        raise ValueError(
            f"`{name}` is only for `--format saved_model` and `onnx`: the others read no windows and no pairs."
        )
    if "threshold" in settings and form == "hub":
        raise ValueError("`threshold` is not for `--format hub`, whose modules give no labels; leave it out.")


def _export_graph(form: str, arguments: dict[str, Any], options: dict[str, Any]) -> None:
    """Writes a SavedModel, or modules for TF Hub; `options` are those of SavedModels alone."""
    with progress_line("export"):
        from albert_tf.export import export_hub, export_saved_model

        if form == "hub":
            output = _folder_of_modules(arguments["output"], arguments["name"], arguments["version"])
            report = export_hub(arguments["source"], output, arguments["max_length"])
        else:
            report = export_saved_model(**arguments, **options)
    difference = ("largest difference from Keras", f"{report.largest_difference:.1e}")
    print_table("", ("", "value"), [("signatures", ", ".join(report.signatures)), difference], num_text_columns=2)
    typer.echo(f"{'SavedModels' if form == 'hub' else 'SavedModel'} in {report.folder}")


def _export_litert(arguments: dict[str, Any]) -> None:
    with progress_line("export"):
        from albert_tf.export import export_litert

        report = export_litert(**arguments)
    typer.echo(f"model.tflite of {report.size / 1e6:.1f} MB for {report.length} tokens in {report.folder}")


def _folder_of_modules(output: Path, name: str, version: int | None) -> Path:
    if name != Path(name).name or name.startswith("."):
        raise ValueError(f"`--name` must be a folder name without slashes or a leading dot. Received: {name!r}.")
    if version is not None:
        raise ValueError(f"`--version` must be omitted with --format hub. Received: {version}; choose another --name.")
    if kind_of(folder := location(output) / name) is not None:
        raise ValueError(f"{folder} exists, and modules for TF Hub have no versions; choose another --name.")
    return output / name


def _export_onnx(arguments: dict[str, Any], calibration: Path | None, float16: bool) -> None:
    """Writes ONNX files; `arguments` are those of `export_onnx` but for precisions and texts."""
    from albert_tf.files.text import read_lines

    texts = [] if calibration is None else [line.text for line in read_lines(calibration) if line.text.strip()]
    precisions = ("float32", "float16", "int8") if float16 else ("float32", "int8")
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
