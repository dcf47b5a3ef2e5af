"""The numbered folders of exported models: `<output>/<name>/<version>`."""

import errno
import pathlib
import warnings
from typing import Any

from albert_tf.files.atomic import move
from albert_tf.files.exports import export_format
from albert_tf.files.urls import is_remote, kind_of


def version_folder(output: Any, name: str, version: int | None, form: str) -> Any:
    """The folder of a new version.

    Args:
        output: folder of all models.
        name: name of the model.
        version: version number. None: the next one.
        form: a format of `albert_tf.files.exports`.

    Raises:
        ValueError: the version exists, or `name` is not a folder name.

    Warns:
        UserWarning: the newest version there is of another format.
    """
    check_name(name)
    taken = [int(path.name) for path in (output / name).glob("*") if path.name.isdecimal()]
    if version is None:
        version = max(taken, default=0) + 1
    if version < 1 or version in taken:
        raise ValueError(
            f"`version` must be at least 1 and not exist yet. Received: version={version}; {output / name} has "
            f"{', '.join(map(str, sorted(taken))) or 'no versions'}. Omit it to get the next one."
        )
    if taken and (newest := export_format(output / name)) not in (None, form):
        warnings.warn(
            f"Version {max(taken)} in {output / name} is of another format, {newest}, and programs take the newest "
            f"version, whatever its format; use another name to keep {form} apart.",
            stacklevel=3,
        )
    return output / name / str(version)


def check_name(name: str) -> None:
    """Raises ValueError unless a folder can have this name."""
    if not name or name != pathlib.Path(name).name or name.startswith("."):
        raise ValueError(f"`name` must be a folder name without slashes or a leading dot. Received: name={name!r}.")


def publish(partial: pathlib.Path, folder: Any) -> None:
    """Renames a complete folder, so that a server never sees a partial version."""
    try:
        if is_remote(folder) and kind_of(folder) is not None:
            raise FileExistsError(errno.EEXIST, "exists")
        move(partial, folder)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            raise
        raise ValueError(f"{folder} was written by another process meanwhile; export again.") from None
