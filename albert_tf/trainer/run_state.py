"""Saves and restores the state of a run: weights, optimizer slots, counters and random generators."""

import pathlib
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.trainer.checkpoint_files import CheckpointWriter, SavedCheckpoint
from albert_tf.trainer.recipe import TrainingRecipe
from albert_tf.trainer.run_folder import differences


class TrainingState:
    """TensorFlow checkpoints of a model in training, each with metadata in a JSON file.

    The newest checkpoints are kept, and the one with the best held-out score.

    Args:
        folder: folder of the checkpoints.
        model: a compiled AlbertBase.
        training: TrainingRecipe, for `keep_checkpoints` and `best_metric`.
        metadata: content of the JSON file besides step, score and digests.
        higher_is_better: whether the best checkpoint has the highest score, for scores that the model does not report
            itself. None: `best_metric` is a metric of the model, the highest accuracy or else the lowest loss.

    Raises:
        ValueError: the model does not report `best_metric`.
    """

    def __init__(
        self,
        folder: pathlib.Path,
        model,
        training: TrainingRecipe,
        metadata: Mapping[str, Any],
        higher_is_better: bool | None = None,
    ):
        if higher_is_better is None:
            metric, known = training.best_metric, ("loss", *model.reported_terms())
            if metric not in known:
                raise ValueError(f"`best_metric` must be one of {known}. Received: best_metric={metric!r}.")
            higher_is_better = metric.endswith("accuracy")
        model.optimizer.build(model.trainable_variables)
        optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)  # of a LossScaleOptimizer
        self.model, self.training = model, training
        self.metadata = {**metadata, "optimizer": type(optimizer).__name__}
        self.writer = CheckpointWriter(folder, training.keep_checkpoints, higher_is_better)
        # By index, because Keras numbers optimizers and generators differently in each process.
        self._variables = {f"model/{index}": variable for index, variable in enumerate(model.variables)}
        self._variables |= {f"optimizer/{index}": variable for index, variable in enumerate(model.optimizer.variables)}
        self._metrics: list[float] = []
        self.saved_step = -1

    @property
    def step(self) -> int:
        """Updates made so far."""
        return int(self.model.optimizer.iterations.numpy())

    def save(self, held_out: float | None = None) -> None:
        """Writes a checkpoint in the background.

        Args:
            held_out: the held-out score, if the model has just been evaluated.

        Raises:
            ValueError: a variable is not finite; nothing is written.
            OSError: the previous checkpoint could not be written; earlier ones are intact.
        """
        step = self.step
        arrays = {name: np.array(variable.value.numpy()) for name, variable in self._variables.items()}
        for name, variable in self._variables.items():
            if variable.trainable and not np.all(np.isfinite(arrays[name])):
                raise ValueError(
                    f"{variable.path} is not finite at step {step}; lower the learning rate. The last checkpoint "
                    f"before it is in {self.writer.folder}."
                )
        state = {"step": step, "held_out": held_out, "metrics": self._local_metrics()}
        self.writer.begin(arrays, {**state, **self.metadata})
        self.saved_step = step

    def restore(self, saved: SavedCheckpoint | None, allow_changed: bool = False) -> None:
        """Restores a checkpoint, if there is one.

        Args:
            saved: a valid checkpoint, or None.
            allow_changed: whether to only warn if it was trained on other data.

        Raises:
            ValueError: the checkpoint belongs to another model or optimizer, or to other data.
        """
        if saved is None or saved.metadata is None:
            return
        here, there = self.metadata["optimizer"], saved.metadata["optimizer"]
        if here != there:
            raise ValueError(
                f"{saved.folder} was saved with the optimizer {there}, but the recipe has {here}; resume with {there}, "
                "or use another folder."
            )
        # Shared weights have the same shapes at any depth.
        if other := differences(saved.metadata.get("network"), self.metadata.get("network")):
            raise ValueError(
                f"{saved.folder} was saved with another model: {'; '.join(other)}; resume with the original [model], "
                "or use another folder."
            )
        reader = tf.train.load_checkpoint(saved.prefix)
        shapes = {name: tuple(shape) for name, shape in reader.get_variable_to_shape_map().items()}
        if shapes != {name: tuple(variable.shape) for name, variable in self._variables.items()}:
            raise ValueError(
                f"The variables in {saved.folder} do not match the recipe's model and precision; resume with the "
                "original recipe, or use another folder."
            )
        if changed := differences(saved.metadata.get("data"), self.metadata.get("data")):
            if not allow_changed:
                raise ValueError(
                    f"{saved.folder} was trained on other examples or with another vocabulary: {'; '.join(changed)}; "
                    "restore them, use another folder, or pass `--allow-changed`."
                )
            warnings.warn(f"The data of the run have changed: {'; '.join(changed)}.", stacklevel=2)
        for name, variable in self._variables.items():
            variable.assign(reader.get_tensor(name))
        self._metrics, self.saved_step = saved.metadata["metrics"], self.step

    def restore_metrics(self) -> None:
        """Restores the running means of the interval in which the run was interrupted."""
        strategy, variables = self.model.distribute_strategy, self.model.metrics_variables
        if len(variables) != len(self._metrics):  # the recipe has changed
            return
        for variable, value in zip(variables, self._metrics):
            # Assigned in replica context; in cross-replica context the value would be divided among replicas.
            strategy.run(lambda variable=variable, value=value: variable.assign(value))

    def _local_metrics(self) -> list[float]:
        local = self.model.distribute_strategy.experimental_local_results
        return [float(local(variable.value)[0].numpy()) for variable in self.model.metrics_variables]
