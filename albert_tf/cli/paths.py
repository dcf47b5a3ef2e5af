"""Arguments of several commands: new output folders, and the source of a config."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from albert_tf.files.atomic import move, remove_temporary, temporary_folder
from albert_tf.files.urls import file_infos, is_remote, kind_of, last_if_metadata, location, mirrored

if TYPE_CHECKING:
    from albert_tf.config import AlbertConfig

ConfigSource = Annotated[
    str, typer.Argument(help="A preset such as base_v2, a config file (.json), or a model's folder or name.")
]
_TEMPORARY = "partial"


@contextlib.contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A folder whose files are moved to `folder`, a path or URL, at the end; after an error there are none.

    It is within `folder`. A killed process leaves it, and perhaps some files, which `check_new_folder` allows.
    """
    with mirrored(folder) as output, temporary_folder(output / _TEMPORARY) as written:
        try:
            yield written
        except OSError as error:  # which names the file as it would be called
            inside = f"{written.name}{os.sep}"
            error.args = tuple(item.replace(inside, "") if isinstance(item, str) else item for item in error.args)
            if error.filename is not None:
                error.filename = str(error.filename).replace(inside, "")
            if error.filename2 is not None:
                error.filename2 = str(error.filename2).replace(inside, "")
            raise
        others = {file.name for file in output.iterdir()} - {file.name for file in written.iterdir()} - {written.name}
        if others:
            raise ValueError(f"{folder} holds {min(others)} of another command, which was killed; empty it.")
        for file in sorted(written.iterdir(), key=last_if_metadata):
            move(file, output / file.name)


def check_new_folder(folder: Path) -> None:
    """Raises ValueError unless `folder`, a path or URL, is new, empty, or was left by a killed process."""
    folder = location(folder)
    if is_remote(folder):
        is_used = bool(file_infos(folder))
    elif folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; use another folder.")
    else:
        is_used = not remove_temporary(folder / _TEMPORARY) and folder.exists() and any(folder.iterdir())
    if is_used:
        raise ValueError(f"{folder} is not empty; use another folder, or empty this one.")


def check_exists(*paths: str | Path) -> None:
    """Raises ValueError if a file or folder does not exist; commands call it before they import TensorFlow."""
    for path in map(location, paths):
        if kind_of(path) is None:
            raise ValueError(f"{path} does not exist; check the path.")


def existing_model(path: Path) -> Path:
    """The folder of a model or an export or, for a URL or a name, where it is downloaded to; raises ValueError."""
    from albert_tf.files.hub import model_folder

    path = model_folder(path)
    if not path.exists():
        raise ValueError(f"{path} does not exist; check the spelling.")
    return path


def checkpoint_folder(path: Path) -> Path:
    """The path of a checkpoint or, for a URL or a name, where it is downloaded to; does not import TensorFlow.

    Raises:
        ValueError: there is no checkpoint.
    """
    from albert_tf.checkpoints.reading import holds_weights, read
    from albert_tf.files.hub import model_folder

    path = model_folder(path)
    if not holds_weights(path):
        read(path)  # raises
    return path


def read_config(source: str) -> "AlbertConfig":
    """The config of a preset, a config file, or a model's folder or name."""
    from albert_tf.config import PRESETS, AlbertConfig
    from albert_tf.files.hub import model_folder

    if source in PRESETS:
        return AlbertConfig.from_preset(source)
    if not source.endswith(".json"):
        folder = model_folder(source, weights=False)
        files = (folder / name for name in ("config.json", "albert_config.json"))
        source = str(next((file for file in files if file.is_file()), source))
    return AlbertConfig.from_json(source) if source.endswith(".json") else AlbertConfig.from_preset(source)
