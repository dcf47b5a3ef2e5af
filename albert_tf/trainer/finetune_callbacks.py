"""Callbacks of fine-tuning: evaluation after each interval, and the loss that a run starts with."""

import math
from typing import Any

import keras
import numpy as np


class FirstTenth(keras.callbacks.Callback):
    """Appends the mean loss of the first tenth of the updates to a list, for runs that log a single interval."""

    def __init__(self, num_train_steps: int, losses: list[float]):
        super().__init__()
        self.batch, self.losses = num_train_steps // 10, losses

    def on_train_batch_begin(self, batch, logs=None):
        if batch == self.batch > 0:
            self.losses.append(float(self.model.get_metrics_result()["loss"]))


class Evaluate(keras.callbacks.Callback):
    """Evaluates the model after each interval, and stops after `patience` evaluations without a better score.

    Its scores are needed by the callbacks that follow: MetricsLog and SaveState.
    """

    def __init__(self, run: Any, history: list[float]):
        super().__init__()
        self.run, self.history = run, history

    def on_epoch_end(self, epoch, logs=None):
        evaluations = self.run.evaluations
        evaluation = evaluations[len(self.history)] = self.run.evaluate()
        self.history.append(evaluation.main_score)
        for number in evaluations.keys() - {len(self.history) - 1, index_of_best(self.history)}:
            del evaluations[number]
        if logs is not None:
            logs[f"val_{self.run.task.main_score}"] = evaluation.main_score
        if self.run.devices.any_worker(is_exhausted(self.history, self.run.options.patience)):
            self.model.stop_training = True


def is_exhausted(history: list[float], patience: int | None) -> bool:
    """Whether the best score is `patience` evaluations old."""
    return patience is not None and bool(history) and len(history) - 1 - index_of_best(history) >= patience


def index_of_best(history: list[float]) -> int:
    """The first of the best scores."""
    # Pearson's correlation is NaN if all predictions are equal; any number is better.
    return int(np.argmax([-math.inf if math.isnan(score) else score for score in history]))
