"""The output folder of `prepare`: empty, incomplete (it has a workspace) or complete (it has a manifest)."""

from pathlib import Path

from pydantic import BaseModel

from albert_tf.data.manifest import (
    MANIFEST_NAME,
    TOKENIZER_FOLDER,
    Manifest,
    PreparationSettings,
    Record,
    load_record,
    save_record,
)
from albert_tf.data.shard_files import find_fault
from albert_tf.files.atomic import remove_temporary, sha256
from albert_tf.files.json import has_file
from albert_tf.files.urls import is_remote, make_folder, remove_tree

_WORKSPACE_NAME = ".prepare"


def open_folder(folder: Path, recipe: PreparationSettings) -> Manifest | None:
    """Checks whether `folder` may be used for `recipe`.

    Returns:
        The manifest if the folder already holds these examples, undamaged, else None.

    Raises:
        ValueError: the folder holds examples of another recipe, or other files.
    """
    if has_file(folder / MANIFEST_NAME):
        manifest = Manifest.load(folder)
        _check_same(folder, manifest.recipe, recipe)
        return manifest if _is_intact(folder, manifest) else None
    unfinished = Workspace(folder).load("recipe", PreparationSettings)
    if unfinished and any(folder.glob("*.tfrecord")):
        _check_same(folder, unfinished, recipe)
    elif not unfinished and folder.exists() and {path.name for path in folder.iterdir()} - {_WORKSPACE_NAME}:
        raise ValueError(f"{folder} is not empty and not made by `prepare`; give another output folder.")
    return None


def _is_intact(folder: Path, manifest: Manifest) -> bool:
    """Whether the shards and the tokenizer's files are those that were written."""
    files = ((folder / TOKENIZER_FOLDER / Path(file.name).name, file) for file in manifest.tokenizer)
    shards = ((folder / shard.name, shard) for shard in manifest.shards)
    return all(path.is_file() and sha256(path) == file.sha256 for path, file in files) and all(
        path.is_file() and find_fault(path, shard.records, shard.bytes) is None for path, shard in shards
    )


def _check_same(folder: Path, existing: PreparationSettings, wanted: PreparationSettings) -> None:
    if existing != wanted:
        raise ValueError(
            f"{folder} holds examples made with other settings: {'; '.join(existing.differences(wanted))}. "
            f"Give another output folder, or delete this one."
        )


class Workspace:
    """A hidden folder beside the shards with the state that a later run resumes from.

    Args:
        output_dir: the output folder.
    """

    def __init__(self, output_dir: Path):
        self.output_dir = output_dir
        self.folder = output_dir / _WORKSPACE_NAME

    def start(self, recipe: PreparationSettings) -> None:
        """Creates the workspace, or reuses that of an interrupted run of the same recipe; call it under the lock."""
        if self.folder.is_dir() and self.load("recipe", PreparationSettings) != recipe:
            remove_tree(self.folder)
        make_folder(self.folder)
        remove_temporary(self.folder / "*.json")
        remove_temporary(self.output_dir / "*.tfrecord")
        remove_temporary(self.output_dir / MANIFEST_NAME)
        self.save("recipe", recipe)
        (self.output_dir / MANIFEST_NAME).unlink(missing_ok=True)  # exists if a file of the folder was lost or damaged

    def save(self, name: str, record: BaseModel) -> None:
        """Saves a record for a later run."""
        save_record(self.folder / f"{name}.json", record)

    def load(self, name: str, kind: type[Record]) -> Record | None:
        """Loads a record, or returns None if it was not saved.

        Raises:
            ValueError: the record is damaged.
        """
        path = self.folder / f"{name}.json"
        return load_record(path, kind, f"delete {self.output_dir} and prepare it again") if has_file(path) else None

    def finish(self, manifest: Manifest) -> None:
        """Writes the manifest, which makes the folder complete, and removes the workspace."""
        save_record(self.output_dir / MANIFEST_NAME, manifest)
        self.remove()

    def remove(self) -> None:
        """Removes the workspace, and the output folder if it is then empty."""
        remove_tree(self.folder)
        if not is_remote(self.output_dir) and not any(self.output_dir.iterdir()):
            self.output_dir.rmdir()
