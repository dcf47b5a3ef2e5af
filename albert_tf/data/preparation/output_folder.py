"""The output folder of `prepare`: empty, unfinished (a workspace is in it) or finished (a manifest is in it)."""

import shutil
from pathlib import Path

from pydantic import BaseModel

from albert_tf.atomic_files import remove_temporary
from albert_tf.data.manifest import MANIFEST_NAME, Manifest, Recipe, Record, load_record, save_record

_WORKSPACE_NAME = ".prepare"


def check_name(folder: Path) -> None:
    """Raises ValueError where the output folder would replace a file."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"The output folder {folder} is a file; give another name.")


def open_folder(folder: Path, recipe: Recipe) -> Manifest | None:
    """Checks whether `folder` may be used for `recipe`.

    Returns:
        Its manifest if it already holds these examples, or None if they are to be made.

    Raises:
        ValueError: the folder holds examples of another recipe, or other things.
    """
    if (folder / MANIFEST_NAME).is_file():
        manifest = Manifest.load(folder)
        _refuse_other(folder, manifest.recipe, recipe)
        return manifest
    begun = Workspace(folder).load("recipe", Recipe)
    if begun and any(folder.glob("*.tfrecord")):
        _refuse_other(folder, begun, recipe)
    elif not begun and folder.exists() and {path.name for path in folder.iterdir()} - {_WORKSPACE_NAME}:
        raise ValueError(f"{folder} is not empty and not made by `prepare`; give another output folder.")
    return None


def _refuse_other(folder: Path, existing: Recipe, wanted: Recipe) -> None:
    if existing != wanted:
        raise ValueError(
            f"{folder} holds examples made with other settings: {'; '.join(existing.differences(wanted))}. "
            f"Give another output folder, or delete this one."
        )


class Workspace:
    """A hidden folder beside the shards for what a later run needs to go on.

    Args:
        output_dir: the folder that is being made.
    """

    def __init__(self, output_dir: Path):
        self.output_dir = output_dir
        self.folder = output_dir / _WORKSPACE_NAME

    def start(self, recipe: Recipe) -> None:
        """Makes the workspace, or takes over that of an unfinished run of the same recipe; under the folder's lock."""
        if self.folder.is_dir() and self.load("recipe", Recipe) != recipe:
            shutil.rmtree(self.folder)
        self.folder.mkdir(exist_ok=True)
        remove_temporary(self.folder / "*.json")
        remove_temporary(self.output_dir / "*.tfrecord")
        remove_temporary(self.output_dir / MANIFEST_NAME)
        self.save("recipe", recipe)

    def save(self, name: str, record: BaseModel) -> None:
        """Keeps a record for a later run."""
        save_record(self.folder / f"{name}.json", record)

    def load(self, name: str, kind: type[Record]) -> Record | None:
        """Returns a record that an earlier run kept, or None.

        Raises:
            ValueError: the record is damaged.
        """
        path = self.folder / f"{name}.json"
        return load_record(path, kind, f"delete {self.output_dir} and prepare it again") if path.exists() else None

    def finish(self, manifest: Manifest) -> None:
        """Writes the manifest, which makes the folder complete, and removes the workspace."""
        save_record(self.output_dir / MANIFEST_NAME, manifest)
        self.remove()

    def remove(self) -> None:
        """Removes the workspace, and the folder too if nothing else is in it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if not any(self.output_dir.iterdir()):
            self.output_dir.rmdir()
