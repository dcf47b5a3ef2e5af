"""How fast a run goes: tokens per second, seconds per step, and the share of them in which devices wait for data.

Keras calls an interval an epoch here: `log_every` updates.
"""

import dataclasses
import time

import keras


@dataclasses.dataclass(frozen=True)
class Speed:
    """What an interval went by.

    Attributes:
        tokens_per_second: padding counts.
        seconds_per_step: wall time.
        input_wait_share: share of that time in which the device had no batch to work on.
    """

    tokens_per_second: float
    seconds_per_step: float
    input_wait_share: float


class Stopwatch:
    """Measures a model in training from when it is made.

    Args:
        model: in `fit`, on TensorFlow.
        tokens_per_step: int.
    """

    def __init__(self, model, tokens_per_step: int):
        self.model, self.tokens_per_step = model, tokens_per_step
        self._step, self._waited, self._time = model.optimizer.iterations.numpy(), self._waiting(), time.monotonic()

    def read(self) -> Speed:
        """The speed so far; for a step at least must have been made."""
        seconds = max(time.monotonic() - self._time, 1e-9)
        steps = max(int(self.model.optimizer.iterations.numpy() - self._step), 1)
        share = (self._waiting() - self._waited) / seconds
        return Speed(steps * self.tokens_per_step / seconds, seconds / steps, share)

    def _waiting(self) -> float:
        return self.model.step_record.seconds_waiting


class SpeedLog(keras.callbacks.Callback):
    """Adds an interval's learning rate and Speed to its logs; must come before those that write logs.

    Args:
        tokens_per_step: int.
    """

    def __init__(self, tokens_per_step: int):
        super().__init__()
        self.tokens_per_step = tokens_per_step

    def on_epoch_begin(self, epoch, logs=None):
        self._stopwatch = Stopwatch(self.model, self.tokens_per_step)

    def on_train_batch_end(self, batch, logs=None):
        self._speed = self._stopwatch.read()  # evaluation, which follows, does not count

    def on_epoch_end(self, epoch, logs=None):
        logs = {} if logs is None else logs
        logs["learning_rate"] = float(self.model.optimizer.learning_rate)
        logs.update(dataclasses.asdict(self._speed))
