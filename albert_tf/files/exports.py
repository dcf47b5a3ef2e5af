"""Which format of `albert-tf export` a folder holds, told by its files, for messages to those who pass it elsewhere."""

import pathlib
from typing import Any

SAVED_MODEL, ONNX, LITERT, TF_HUB = "SavedModel", "ONNX", "LiteRT", "TF Hub"
_FILES = {
    TF_HUB: ("encoder/saved_model.pb", "preprocess/saved_model.pb"),
    ONNX: ("model.json", "onnx"),
    LITERT: ("model.tflite",),
    SAVED_MODEL: ("saved_model.pb",),
}


def newest_first(folder: Any) -> list[Any]:
    """The folder itself and its numbered versions, in the order in which an export is looked for."""
    versions = (path for path in folder.glob("*") if path.name.isdecimal())
    return [folder, *sorted(versions, key=lambda path: -int(path.name))]


def export_format(folder: Any) -> str | None:
    """The format of an exported version, or of the newest one in the folder of a model; None if there is none."""
    formats = (
        name
        for version in newest_first(folder)
        for name, files in _FILES.items()
        if all((version / file).exists() for file in files)
    )
    return next(formats, None)


def why_not_run(folder: pathlib.Path) -> str | None:
    """A sentence about an export that takes no texts; None if it takes them or is none."""
    form = export_format(folder)
    if form == LITERT:
        return f"{folder} is a LiteRT export, which LiteRT runs; saved_models/README.md shows how."
    if form == TF_HUB:
        return f"{folder} does not take texts, like all modules for TF Hub; export it with --format saved_model."
    return None
