"""Checkpoints on disk: which there are, which are whole, which to keep.

A checkpoint is TensorFlow's files `step-N.*` and, written last, `step-N.json`, which holds their digests. Without the
JSON file there is no checkpoint, however much of it a kill has left.
"""

import dataclasses
import json
import pathlib
import re
import shutil
import warnings
from collections.abc import Collection, Mapping
from typing import Any

from albert_tf.atomic_files import atomic_write, sha256

_NAME = re.compile(r"\.?(step-\d+)([._].*)?")


@dataclasses.dataclass(frozen=True)
class SavedState:
    """One checkpoint.

    Args:
        prefix: its files' path without what comes after the step.
        about: what its JSON file says; empty where it cannot be read.
    """

    prefix: pathlib.Path
    about: Mapping[str, Any]

    @property
    def step(self) -> int:
        """Updates that it comes after."""
        return int(self.prefix.name.rpartition("-")[2])

    @property
    def held_out(self) -> float | None:
        """The score by which checkpoints are compared, where the model was evaluated at this step."""
        return self.about.get("held_out")

    def fault(self) -> str | None:
        """Which file is not as it was written; None where all are."""
        digests = self.about.get("sha256")
        if not isinstance(digests, dict) or not digests:
            return f"{self.prefix.name}.json cannot be read"
        for name, digest in digests.items():
            file = self.prefix.with_name(name)
            if not file.is_file():
                return f"{name} is missing"
            if sha256(file) != digest:
                return f"{name} is not as it was written"
        return None


def seal(prefix: pathlib.Path, about: Mapping[str, Any]) -> SavedState:
    """Makes a checkpoint of files that have been written, by a JSON file with their digests."""
    digests = {file.name: sha256(file) for file in sorted(prefix.parent.glob(prefix.name + ".*"))}
    content = {**about, "sha256": digests}
    atomic_write(prefix.with_name(prefix.name + ".json"), (json.dumps(content, indent=2) + "\n").encode())
    return SavedState(prefix, content)


def discard(prefix: pathlib.Path) -> None:
    """Removes a checkpoint, or what is left of one: first what makes it one."""
    files = [
        path for path in prefix.parent.iterdir() if (match := _NAME.fullmatch(path.name)) and match[1] == prefix.name
    ]
    for path in sorted(files, key=lambda path: path.name != prefix.name + ".json"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def saved_states(folder: pathlib.Path) -> list[SavedState]:
    """All checkpoints of a folder, by their steps."""
    files = [file for file in folder.glob("step-*.json") if _NAME.fullmatch(file.name)]
    return sorted((SavedState(file.with_suffix(""), _read(file)) for file in files), key=lambda saved: saved.step)


def newest_whole(folder: pathlib.Path) -> SavedState | None:
    """The newest checkpoint whose files are as they were written, with a warning of newer ones that are not.

    Raises:
        ValueError: there are checkpoints, and none is whole.
    """
    faults = []
    for saved in reversed(saved_states(folder)):
        fault = saved.fault()
        if fault is None:
            if faults:
                warnings.warn(f"Left out as damaged: {'; '.join(faults)}. Going on from {saved.prefix}.", stacklevel=2)
            return saved
        faults.append(fault)
    if faults:
        raise ValueError(
            f"One checkpoint at least must be whole. Received: {folder} with damage in each ({'; '.join(faults)}); "
            "restore one from a copy, or remove them all to start anew."
        )
    return None


def remove_others(folder: pathlib.Path, kept: Collection[SavedState]) -> None:
    """Removes all checkpoints but these, and what interrupted writing has left."""
    names = {saved.prefix.name for saved in kept}
    found = {match[1] for path in folder.iterdir() if (match := _NAME.fullmatch(path.name))}
    for name in found - names:
        discard(folder / name)


def _read(file: pathlib.Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
