"""The state of a run on disk: weights, optimizer slots, counters and generators, so that it can be taken up again."""

import json
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.checkpoints import write_whole


class TrainingState:
    """TensorFlow checkpoints of a model in training, each with a JSON file that says what made it.

    Args:
        folder: where the checkpoints are.
        model: a compiled AlbertModel.
        keep: how many to keep.
        about: what the JSON file says beside the step.
    """

    def __init__(self, folder: pathlib.Path, model, keep: int, about: Mapping[str, Any]):
        model.optimizer.build(model.trainable_variables)
        self.folder, self.model, self.about = folder, model, about
        self._checkpoint = tf.train.Checkpoint(
            variables=[variable.value for variable in model.variables],
            optimizer=[variable.value for variable in model.optimizer.variables],
        )
        self._manager = tf.train.CheckpointManager(self._checkpoint, str(folder), keep, checkpoint_name="step")

    @property
    def step(self) -> int:
        """Updates made so far."""
        return int(self.model.optimizer.iterations.numpy())

    def save(self) -> None:
        """Writes a checkpoint; one with values that are not finite is never written.

        Raises:
            ValueError: naming a variable that is not finite.
            OSError: where it cannot be written; checkpoints written before stay whole.
        """
        for variable in self.model.trainable_variables:
            if not np.all(np.isfinite(variable.numpy())):
                raise ValueError(
                    f"Weights must stay finite. Received: {variable.path} with values that are not, at step "
                    f"{self.step}; lower the learning rate and start again from the last checkpoint in {self.folder}."
                )
        try:
            prefix = pathlib.Path(self._manager.save(checkpoint_number=self.step))
        except tf.errors.OpError as error:
            raise OSError(
                f"A checkpoint must find room on the disk. Received: {error.message.splitlines()[0]} at step "
                f"{self.step}; those before it in {self.folder} are whole: make room and give the same command again."
            ) from None
        content = {"step": self.step, **self.about}
        write_whole(prefix.with_name(prefix.name + ".json"), (json.dumps(content, indent=2) + "\n").encode())
        self._remove_orphans()

    def restore(self) -> int:
        """Takes up the newest checkpoint if there is one; returns the step."""
        newest = self._manager.latest_checkpoint
        if newest is not None:
            try:
                self._checkpoint.restore(newest).assert_existing_objects_matched()
            except (tf.errors.OpError, ValueError, IndexError, AssertionError) as error:
                reason = str(error).splitlines()[0]
                raise ValueError(
                    f"The newest checkpoint must be whole and of this model. Received: {newest} ({reason}); remove it "
                    "to go on from the one before."
                ) from None
        return self.step

    def _remove_orphans(self) -> None:
        kept = {pathlib.Path(prefix).name for prefix in self._manager.checkpoints}
        for file in self.folder.glob("step-*.json"):
            if file.stem not in kept:
                file.unlink()
