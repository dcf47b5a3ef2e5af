"""Checkpoints of a run on disk: written in the background, verified before use; the newest and the best are kept.

A checkpoint is a folder `step-N` with TensorFlow's files `state.*` and `state.json`, which holds their digests and its
own checksum. It is written as `.step-N` and renamed when complete, so a killed process never leaves a partial one.
"""

import dataclasses
import pathlib
import re
import shutil
import warnings
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.files.atomic import reason_of, sha256, write_json
from albert_tf.files.json import read_json, verify_checksum, with_checksum
from albert_tf.files.urls import upload_changes

_FILES, _METADATA = "state", "state.json"
_NAME = re.compile(r"step-\d+")


@dataclasses.dataclass(frozen=True)
class SavedCheckpoint:
    """One checkpoint.

    Args:
        folder: `checkpoints/step-N`.
        metadata: content of its JSON file; None if it cannot be read.
    """

    folder: pathlib.Path
    metadata: Mapping[str, Any] | None

    @property
    def step(self) -> int:
        """The number of updates."""
        return int(self.folder.name.rpartition("-")[2])

    @property
    def held_out(self) -> float | None:
        """The held-out score, if the model was evaluated at this step."""
        return None if self.metadata is None else self.metadata["held_out"]

    @property
    def prefix(self) -> str:
        """The argument of `tf.train.load_checkpoint`."""
        return str(self.folder / _FILES)

    def corruption(self) -> str | None:
        """Describes the first damaged file; None if all are intact."""
        if self.metadata is None:
            return f"{self.folder.name}/{_METADATA} is missing or damaged"
        for name, digest in self.metadata["sha256"].items():
            try:
                if sha256(self.folder / name) != digest:
                    return f"{self.folder.name}/{name} is damaged"
            except OSError as error:
                return f"{self.folder.name}/{name} cannot be read ({error.strerror})"
        return None


def saved_checkpoints(folder: pathlib.Path) -> list[SavedCheckpoint]:
    """All checkpoints in a folder, in order of their steps."""
    folders = [path for path in folder.glob("step-*") if _NAME.fullmatch(path.name) and path.is_dir()]
    return sorted((SavedCheckpoint(path, _read_metadata(path)) for path in folders), key=lambda saved: saved.step)


def latest_valid_checkpoint(folder: pathlib.Path) -> SavedCheckpoint | None:
    """The newest checkpoint that is intact, with a warning about damaged newer ones.

    Returns:
        SavedCheckpoint, or None if nothing was ever saved.

    Raises:
        ValueError: all checkpoints are damaged.
    """
    problems = []
    for saved in reversed(saved_checkpoints(folder)):
        problem = saved.corruption()
        if problem is None:
            if problems:
                warnings.warn(f"Damaged: {'; '.join(problems)}. Resuming from {saved.folder}.", stacklevel=2)
            return saved
        problems.append(problem)
    if problems:
        raise ValueError(
            f"{folder} has no valid checkpoint ({'; '.join(problems[:5])}); restore one from a copy, or remove the "
            "folder to start from step 0."
        )
    return None


def _read_metadata(folder: pathlib.Path) -> dict[str, Any] | None:
    try:
        return verify_checksum(read_json(folder / _METADATA), folder / _METADATA)
    except ValueError:
        return None


class CheckpointWriter:
    """Writes checkpoints in a background thread; keeps the newest ones and the one with the best held-out score.

    Args:
        folder: folder of the checkpoints.
        keep: how many of the newest to keep.
        higher_is_better: whether the best score is the highest or the lowest.
    """

    def __init__(self, folder: pathlib.Path, keep: int, higher_is_better: bool):
        self.folder, self.keep, self.higher_is_better = folder, keep, higher_is_better
        self._thread = ThreadPoolExecutor(1)  # Python waits for it before it exits
        self._writing: Future[None] | None = None

    def begin(self, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any]) -> None:
        """Starts writing arrays, which must not be changed afterwards; raises the error of the checkpoint before."""
        self.wait()
        self._writing = self._thread.submit(self._write, dict(arrays), metadata)

    def wait(self) -> None:
        """Waits until the current checkpoint is written.

        Raises:
            OSError, ValueError: it could not be written, or not uploaded; earlier ones are intact.
        """
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def checkpoint(self, step: int) -> SavedCheckpoint | None:
        """The checkpoint of a step; None if it was not kept."""
        self.wait()
        return next((saved for saved in saved_checkpoints(self.folder) if saved.step == step), None)

    def _write(self, arrays: dict[str, np.ndarray], metadata: Mapping[str, Any]) -> None:
        folder, partial = (self.folder / f"{dot}step-{metadata['step']}" for dot in ("", "."))
        try:
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            names = list(arrays)
            tf.raw_ops.SaveV2(
                prefix=str(partial / _FILES),
                tensor_names=names,
                shape_and_slices=[""] * len(names),
                tensors=[tf.convert_to_tensor(arrays.pop(name)) for name in names],
            )
            digests = {file.name: sha256(file) for file in sorted(partial.iterdir())}
            write_json(partial / _METADATA, with_checksum({**metadata, "sha256": digests}))
            if folder.exists():  # it was damaged, and training has reached this step again
                shutil.rmtree(folder)
            partial.rename(folder)
            self._delete_old(metadata["step"])
            upload_changes(self.folder)
        except (tf.errors.OpError, OSError) as error:
            raise OSError(
                f"Could not write the checkpoint of step {metadata['step']} to {self.folder}: {reason_of(error)}. "
                "Earlier checkpoints are intact; free disk space and run the same command again."
            ) from None

    def _delete_old(self, step: int) -> None:
        checkpoints = saved_checkpoints(self.folder)
        valid = [saved for saved in checkpoints if saved.step <= step]  # newer ones are damaged
        sign = -1 if self.higher_is_better else 1
        best = {sign * saved.held_out: saved for saved in reversed(valid) if saved.held_out is not None}
        needed = [saved.folder for saved in (*valid[-self.keep :], *([best[min(best)]] if best else []))]
        for partial in self.folder.glob(".step-*"):  # of a process that was killed
            shutil.rmtree(partial)
        for saved in checkpoints:
            if saved.folder not in needed:  # hidden first, so that a kill leaves no partial checkpoint
                shutil.rmtree(saved.folder.rename(self.folder / f".{saved.folder.name}"))
