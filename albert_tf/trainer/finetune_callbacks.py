"""The evaluations of fine-tuning: after each interval, and which of them has the weights to keep."""

import math
from typing import Any

import keras
import numpy as np

from albert_tf.tasks.learned import Evaluation
from albert_tf.trainer.devices import Devices
from albert_tf.trainer.task_options import TrainingOptions


class Evaluate(keras.callbacks.Callback):
    """Evaluates the model after each interval, and stops after `patience` evaluations without a better score.

    Its scores are needed by the callbacks that follow: MetricsLog and SaveState.

    Attributes:
        history: the score of each evaluation.
        kept: the evaluation of the weights to keep, unless an earlier process made it.
    """

    def __init__(self, evaluate: Any, log: str, history: list[float], options: TrainingOptions, devices: Devices):
        super().__init__()
        self.evaluate, self.log, self.history, self.options, self.devices = evaluate, log, history, options, devices
        self.kept: Evaluation | None = None

    def on_epoch_end(self, epoch, logs=None):
        evaluation = self.evaluate()
        self.history.append(evaluation.main_score)
        if self.index_to_keep == len(self.history) - 1:
            self.kept = evaluation
        if logs is not None:
            logs[self.log] = evaluation.main_score
        if self.devices.any_worker(self.is_exhausted):
            self.model.stop_training = True

    @property
    def is_exhausted(self) -> bool:
        """Whether the best score is `patience` evaluations old."""
        patience, history = self.options.patience, self.history
        return patience is not None and bool(history) and len(history) - 1 - index_of_best(history) >= patience

    @property
    def index_to_keep(self) -> int:
        """The evaluation of the weights to keep."""
        if self.options.keep == "best" and not all(map(math.isnan, self.history)):
            return index_of_best(self.history)
        return len(self.history) - 1


def index_of_best(history: list[float]) -> int:
    """The first of the best scores."""
    # Pearson's correlation is NaN if all predictions are equal; any number is better.
    return int(np.argmax([-math.inf if math.isnan(score) else score for score in history]))
