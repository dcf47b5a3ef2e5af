"""The state of a run, saved and restored: weights, optimizer slots, counters and random generators."""

import pathlib
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.trainer.checkpoint_files import CheckpointWriter, SavedCheckpoint
from albert_tf.trainer.recipe import TrainingRecipe
from albert_tf.trainer.run_folder import differences, read_metrics


class TrainingState:
    """TensorFlow checkpoints of a model in training, each with a JSON file that says what made it.

    The newest ones are kept, and the one with the best score on held-out examples.

    Args:
        folder: where the checkpoints are.
        model: a compiled AlbertBase.
        training: TrainingRecipe: how many of the newest to keep, and which metric decides on the best.
        about: content of the JSON file besides step, score and digests.
        metrics_file: whose lines each checkpoint counts, so that lost ones are noticed; or None.

    Raises:
        ValueError: the model does not report `best_metric`.
    """

    def __init__(
        self,
        folder: pathlib.Path,
        model,
        training: TrainingRecipe,
        about: Mapping[str, Any],
        metrics_file: pathlib.Path | None = None,
    ):
        metrics = ("loss", *model.reported_terms())
        if training.best_metric not in metrics:
            raise ValueError(
                f"`best_metric` must be one that the model reports. Received: {training.best_metric!r}; "
                f"choose one of {metrics}."
            )
        model.optimizer.build(model.trainable_variables)
        optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)  # of a LossScaleOptimizer
        self.model, self.about = model, {**about, "optimizer": type(optimizer).__name__}
        self.metrics_file = metrics_file
        self.writer = CheckpointWriter(folder, training.keep_checkpoints, training.best_metric.endswith("accuracy"))
        # By index: Keras numbers the names of optimizers and generators, in each process differently.
        self._variables = {f"model/{index}": variable for index, variable in enumerate(model.variables)}
        self._variables |= {f"optimizer/{index}": variable for index, variable in enumerate(model.optimizer.variables)}
        self._metrics: list[float] = []
        self.saved_step = -1

    @property
    def step(self) -> int:
        """Updates made so far."""
        return int(self.model.optimizer.iterations.numpy())

    def save(self, held_out: float | None = None) -> None:
        """Writes a checkpoint while training goes on; one with values that are not finite is never written.

        Args:
            held_out: the model's score on held-out examples, if it has just been evaluated.

        Raises:
            ValueError: naming a variable that is not finite.
            OSError: the previous checkpoint could not be written; earlier ones are intact.
        """
        step = self.step
        arrays = {name: np.array(variable.value.numpy()) for name, variable in self._variables.items()}
        for name, variable in self._variables.items():
            if variable.trainable and not np.all(np.isfinite(arrays[name])):
                raise ValueError(
                    f"{variable.path} has values that are not finite at step {step}; lower the learning rate and start "
                    f"again from the last checkpoint in {self.writer.folder}."
                )
        lines = 0 if self.metrics_file is None else len(read_metrics(self.metrics_file))
        state = {"step": step, "held_out": held_out, "metrics": self._local_metrics(), "metrics_lines": lines}
        self.writer.begin(arrays, {**state, **self.about})
        self.saved_step = step

    def restore(self, saved: SavedCheckpoint | None, allow_changed: bool = False) -> None:
        """Restores a checkpoint, if there is one.

        Args:
            saved: a valid checkpoint, or None.
            allow_changed: whether it may have been trained on other data, with a warning.

        Raises:
            ValueError: the checkpoint is of another model or optimizer, or of other data.
        """
        if saved is None or saved.metadata is None:
            return
        here, there = self.about["optimizer"], saved.metadata["optimizer"]
        if here != there:
            raise ValueError(
                f"{saved.folder} was made with the optimizer {there}, and the recipe has {here}; go on with {there}, "
                "or start in another folder."
            )
        reader = tf.train.load_checkpoint(saved.prefix)
        shapes = {name: tuple(shape) for name, shape in reader.get_variable_to_shape_map().items()}
        if shapes != {name: tuple(variable.shape) for name, variable in self._variables.items()}:
            raise ValueError(
                f"{saved.folder} has other variables than the recipe's model and precision; go on with the recipe that "
                "made it, or start in another folder."
            )
        if others := differences(saved.metadata.get("data"), self.about.get("data")):
            if not allow_changed:
                raise ValueError(
                    f"{saved.folder} was trained on other examples or with another vocabulary: {'; '.join(others)}; "
                    "bring them back, give another folder, or go on by `--allow-changed`."
                )
            warnings.warn(f"The data of the run change: {'; '.join(others)}.", stacklevel=2)
        for name, variable in self._variables.items():
            variable.assign(reader.get_tensor(name))
        self._metrics = saved.metadata["metrics"]

    def restore_metrics(self) -> None:
        """Restores the running means of the reporting interval in which the run was stopped."""
        strategy, variables = self.model.distribute_strategy, self.model.metrics_variables
        if len(variables) != len(self._metrics):  # the recipe has changed, and its metrics with it
            return
        for variable, value in zip(variables, self._metrics):
            # Inside each replica: an assignment from outside would divide the value among them.
            strategy.run(lambda variable=variable, value=value: variable.assign(value))

    def _local_metrics(self) -> list[float]:
        local = self.model.distribute_strategy.experimental_local_results
        return [float(local(variable.value)[0].numpy()) for variable in self.model.metrics_variables]
