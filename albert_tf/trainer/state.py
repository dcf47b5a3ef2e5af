"""The state of a run on disk: weights, optimizer slots, counters and generators, so that it can be taken up again."""

import pathlib
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.trainer.checkpoint_files import SavedState
from albert_tf.trainer.checkpoint_writer import CheckpointWriter
from albert_tf.trainer.recipe import TrainingRecipe
from albert_tf.trainer.run_folder import differences


class TrainingState:
    """TensorFlow checkpoints of a model in training, each with a JSON file that says what made it.

    The newest ones are kept, and the one with the best score on held-out examples.

    Args:
        folder: where the checkpoints are.
        model: a compiled AlbertBase.
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
        optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)  # what scales a loss is around another
        self.model, self.about = model, {**about, "optimizer": type(optimizer).__name__}
        self.writer = CheckpointWriter(folder, training.keep_checkpoints, training.best_metric.endswith("accuracy"))
        # By their places: Keras numbers the names of optimizers and generators, and another process does so otherwise.
        self._variables = {f"model/{place}": variable for place, variable in enumerate(model.variables)}
        self._variables |= {f"optimizer/{place}": variable for place, variable in enumerate(model.optimizer.variables)}
        self._metrics: list[float] = []
        self.saved_step = -1

    @property
    def step(self) -> int:
        """Updates made so far."""
        return int(self.model.optimizer.iterations.numpy())

    def save(self, held_out: float | None = None) -> None:
        """Writes a checkpoint while training goes on; one with values that are not finite is never written.

        Args:
            held_out: the model's score on held-out examples, where it has just been evaluated.

        Raises:
            ValueError: naming a variable that is not finite.
            OSError: where the checkpoint before could not be written; those before that stay whole.
        """
        step = self.step
        arrays = {name: np.array(variable.value.numpy()) for name, variable in self._variables.items()}
        for name, variable in self._variables.items():
            if variable.trainable and not np.all(np.isfinite(arrays[name])):
                raise ValueError(
                    f"Weights must stay finite. Received: {variable.path} with values that are not, at step {step}; "
                    f"lower the learning rate and start again from the last checkpoint in {self.writer.folder}."
                )
        self.writer.begin(arrays, {"step": step, "held_out": held_out, "metrics": self._local_metrics(), **self.about})
        self.saved_step = step

    def restore(self, saved: SavedState | None, allow_changed: bool = False) -> None:
        """Takes up a checkpoint, if there is one.

        Args:
            saved: the checkpoint.
            allow_changed: whether it may have been trained on other data, with a warning.

        Raises:
            ValueError: it is that of another model or optimizer, or of other data.
        """
        if saved is None:
            return
        here, there = self.about["optimizer"], saved.about.get("optimizer")
        if here != there:
            raise ValueError(
                f"A checkpoint must be of the recipe's optimizer. Received: {saved.prefix}, made with {there}, and a "
                f"recipe with {here}; go on with {there}, or start in another folder."
            )
        reader = tf.train.load_checkpoint(str(saved.prefix))
        there = {name: tuple(shape) for name, shape in reader.get_variable_to_shape_map().items()}
        if there != {name: tuple(variable.shape) for name, variable in self._variables.items()}:
            raise ValueError(
                f"A checkpoint must be of the recipe's model and precision. Received: {saved.prefix}, with other "
                "variables; go on with the recipe that made it, or start in another folder."
            )
        if others := differences(saved.about.get("data"), self.about.get("data")):
            changed = f"{saved.prefix}, trained on others: {'; '.join(others)}"
            if not allow_changed:
                raise ValueError(
                    f"Examples and vocabulary must be those that the run began with. Received: {changed}; bring them "
                    "back, give another folder, or go on by `--allow-changed`."
                )
            warnings.warn(f"The data of the run change: {changed}.", stacklevel=2)
        for name, variable in self._variables.items():
            variable.assign(reader.get_tensor(name))
        self._metrics = saved.about["metrics"]

    def restore_metrics(self) -> None:
        """Gives the running means of a reporting interval, in which the run was stopped, their values back."""
        strategy, variables = self.model.distribute_strategy, self.model.metrics_variables
        if len(variables) != len(self._metrics):  # the recipe has changed, and what is counted with it
            return
        for variable, value in zip(variables, self._metrics):
            # In every replica its own: assigned from outside, a value would be dealt out among them.
            strategy.run(lambda variable=variable, value=value: variable.assign(value))

    def _local_metrics(self) -> list[float]:
        local = self.model.distribute_strategy.experimental_local_results
        return [float(local(variable.value)[0].numpy()) for variable in self.model.metrics_variables]
