"""Checkpoints are written while training goes on: the arrays are copied first, the disk is a thread's business."""

import pathlib
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.trainer.checkpoint_files import SavedState, discard, remove_others, saved_states, seal


class CheckpointWriter:
    """Writes one checkpoint at a time and removes those that are not to be kept.

    The newest ones are kept, and the one with the best score on held-out examples.

    Args:
        folder: where the checkpoints are.
        keep: how many of the newest to keep.
        higher_is_better: whether the best score is the highest or the lowest.
    """

    def __init__(self, folder: pathlib.Path, keep: int, higher_is_better: bool):
        self.folder, self.keep, self.higher_is_better = folder, keep, higher_is_better
        self._thread: threading.Thread | None = None
        self._error: OSError | None = None

    def begin(self, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> None:
        """Starts writing; waits first for the checkpoint before.

        Args:
            arrays: by name; nobody else may change them.
            about: what the JSON file is to say, `step` and `held_out` among it.

        Raises:
            OSError: the checkpoint before could not be written.
        """
        self.wait()
        # Not a daemon: a process that ends has written what it began.
        self._thread = threading.Thread(target=self._write, args=(dict(arrays), about))
        self._thread.start()

    def wait(self) -> None:
        """Returns when the checkpoint that was begun is on the disk.

        Raises:
            OSError: it could not be written; those before it are whole.
        """
        if self._thread is not None:
            self._thread.join()
        error, self._thread, self._error = self._error, None, None
        if error is not None:
            raise error

    def is_best(self, held_out: float) -> bool:
        """Whether a score is better than those of all checkpoints."""
        self.wait()
        scores = [saved.held_out for saved in saved_states(self.folder) if saved.held_out is not None]
        return all(self._order(held_out) < self._order(score) for score in scores)

    def _write(self, arrays: dict[str, np.ndarray], about: Mapping[str, Any]) -> None:
        prefix = self.folder / f"step-{about['step']}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            discard(prefix)
            names = list(arrays)
            tf.raw_ops.SaveV2(
                prefix=str(prefix),
                tensor_names=names,
                shape_and_slices=[""] * len(names),
                tensors=[tf.convert_to_tensor(arrays.pop(name)) for name in names],
            )
            seal(prefix, about)
            remove_others(self.folder, self._kept(about["step"]))
        except (tf.errors.OpError, OSError) as error:
            reason = getattr(error, "message", str(error)).splitlines()[0]
            self._error = OSError(
                f"A checkpoint must find room on the disk. Received: {reason} at step {about['step']}; those before it "
                f"in {self.folder} are whole: make room and give the same command again."
            )

    def _kept(self, step: int) -> list[SavedState]:
        saved = [one for one in saved_states(self.folder) if one.step <= step]  # newer ones were damaged
        scored = {self._order(one.held_out): one for one in reversed(saved) if one.held_out is not None}
        return saved[-self.keep :] + ([scored[min(scored)]] if scored else [])

    def _order(self, held_out: float) -> float:
        return -held_out if self.higher_is_better else held_out
