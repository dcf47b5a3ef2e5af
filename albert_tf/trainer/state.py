"""The state of a run on disk: weights, optimizer slots, counters and generators, so that it can be taken up again."""

import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.trainer.checkpoint_files import SavedState, remove_others, saved_states, seal, unseal
from albert_tf.trainer.recipe import TrainingRecipe


class TrainingState:
    """TensorFlow checkpoints of a model in training, each with a JSON file that says what made it.

    The newest ones are kept, and the one with the best score on held-out examples.

    Args:
        folder: where the checkpoints are.
        model: a compiled AlbertModel.
        training: TrainingRecipe: how many of the newest to keep, and what the best one is best in.
        about: what the JSON file says beside step, score and digests.

    Raises:
        ValueError: the model is not evaluated by what the best one is to be best in.
    """

    def __init__(self, folder: pathlib.Path, model, training: TrainingRecipe, about: Mapping[str, Any]):
        metrics = ("loss", *model.reported_terms())
        if training.best_metric not in metrics:
            raise ValueError(
                f"`best_metric` must be one that the model reports. Received: {training.best_metric!r}; "
                f"choose one of {metrics}."
            )
        model.optimizer.build(model.trainable_variables)
        self.folder, self.model, self.keep = folder, model, training.keep_checkpoints
        self.about = {**about, "optimizer": type(model.optimizer).__name__}
        self._higher_is_better = training.best_metric.endswith("accuracy")
        self._checkpoint = tf.train.Checkpoint(
            variables=[variable.value for variable in model.variables],
            optimizer=[variable.value for variable in model.optimizer.variables],
        )
        self._metrics: list[float] = []
        self.saved_step = -1

    @property
    def step(self) -> int:
        """Updates made so far."""
        return int(self.model.optimizer.iterations.numpy())

    def save(self, held_out: float | None = None) -> None:
        """Writes a checkpoint; one with values that are not finite is never written.

        Args:
            held_out: the model's score on held-out examples, where it has just been evaluated.

        Raises:
            ValueError: naming a variable that is not finite.
            OSError: where it cannot be written; checkpoints written before stay whole.
        """
        self._check_finite()
        prefix = self.folder / f"step-{self.step}"
        unseal(prefix)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._checkpoint.write(str(prefix))
            content = {"step": self.step, "held_out": held_out, "metrics": self._local_metrics(), **self.about}
            seal(prefix, content)
        except (tf.errors.OpError, OSError) as error:
            reason = getattr(error, "message", str(error)).splitlines()[0]
            raise OSError(
                f"A checkpoint must find room on the disk. Received: {reason} at step {self.step}; those before it in "
                f"{self.folder} are whole: make room and give the same command again."
            ) from None
        self.saved_step = self.step
        remove_others(self.folder, self._kept())

    def restore(self, saved: SavedState | None) -> None:
        """Takes up a checkpoint, if there is one.

        Raises:
            ValueError: it is that of another model or optimizer.
        """
        if saved is None:
            return
        here, there = self.about["optimizer"], saved.about.get("optimizer")
        if here != there:
            raise ValueError(
                f"A checkpoint must be of the recipe's optimizer. Received: {saved.prefix}, made with {there}, and a "
                f"recipe with {here}; go on with {there}, or start in another folder."
            )
        try:
            self._checkpoint.read(str(saved.prefix)).assert_existing_objects_matched()
        except (tf.errors.OpError, ValueError, IndexError, AssertionError) as error:
            raise ValueError(
                f"A checkpoint must be of the recipe's model. Received: {saved.prefix} ({str(error).splitlines()[0]}); "
                "go on with the recipe that made it, or start in another folder."
            ) from None
        self._metrics = saved.about["metrics"]

    def restore_metrics(self) -> None:
        """Gives the running means of a reporting interval, in which the run was stopped, their values back."""
        strategy, variables = self.model.distribute_strategy, self.model.metrics_variables
        if len(variables) != len(self._metrics):  # the recipe has changed, and what is counted with it
            return
        for variable, value in zip(variables, self._metrics):
            # In every replica its own: assigned from outside, a value would be dealt out among them.
            strategy.run(lambda variable=variable, value=value: variable.assign(value))

    def is_best(self, held_out: float) -> bool:
        """Whether a score is better than those of all checkpoints."""
        scores = [saved.held_out for saved in saved_states(self.folder) if saved.held_out is not None]
        return all(self._order(held_out) < self._order(score) for score in scores)

    def _kept(self) -> list[SavedState]:
        saved = [one for one in saved_states(self.folder) if one.step <= self.step]  # newer ones were damaged
        best = self._best(saved)
        return saved[-self.keep :] + ([best] if best else [])

    def _best(self, saved: list[SavedState]) -> SavedState | None:
        scored = {self._order(one.held_out): one for one in reversed(saved) if one.held_out is not None}
        return scored[min(scored)] if scored else None

    def _order(self, held_out: float) -> float:
        return -held_out if self._higher_is_better else held_out

    def _local_metrics(self) -> list[float]:
        local = self.model.distribute_strategy.experimental_local_results
        return [float(local(variable.value)[0].numpy()) for variable in self.model.metrics_variables]

    def _check_finite(self) -> None:
        for variable in self.model.trainable_variables:
            if not np.all(np.isfinite(variable.numpy())):
                raise ValueError(
                    f"Weights must stay finite. Received: {variable.path} with values that are not, at step "
                    f"{self.step}; lower the learning rate and start again from the last checkpoint in {self.folder}."
                )
