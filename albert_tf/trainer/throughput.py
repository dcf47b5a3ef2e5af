"""Throughput of a run: tokens per second, seconds per step, and the share of time in which devices wait for data.

Keras calls an interval an epoch here: `log_every` updates.
"""

import dataclasses
import time

import keras


@dataclasses.dataclass(frozen=True)
class Speed:
    """Throughput of an interval.

    Attributes:
        tokens_per_second: padding included.
        seconds_per_step: wall time.
        input_wait_share: share of that time in which the device had no batch to work on.
    """

    tokens_per_second: float
    seconds_per_step: float
    input_wait_share: float

    def __str__(self) -> str:
        return (
            f"{self.tokens_per_second / 1000:.1f}k tokens/s  {self.seconds_per_step:.3g} s/step  "
            f"input wait {self.input_wait_share:.1%}"
        )


class Stopwatch:
    """Measures the throughput of a model in `fit` from when it is made.

    Each reading takes the step from the device and so waits for steps that are queued: read it rarely.

    Args:
        model: in `fit`, on TensorFlow.
        tokens_per_step: int.
    """

    def __init__(self, model, tokens_per_step: int):
        self.model, self.tokens_per_step = model, tokens_per_step
        self._begun = self._now()

    def read(self) -> Speed:
        """The throughput so far."""
        steps, seconds, waited = (after - before for after, before in zip(self._now(), self._begun, strict=True))
        steps, seconds = max(steps, 1), max(seconds, 1e-9)
        return Speed(steps * self.tokens_per_step / seconds, seconds / steps, waited / seconds)

    def _now(self) -> tuple[int, float, float]:
        step = int(self.model.optimizer.iterations.numpy())
        return step, time.monotonic(), self.model.step_monitor.input_stall_seconds


class SpeedLog(keras.callbacks.Callback):
    """Adds the learning rate and the interval's Speed to its logs; comes before callbacks that write or show logs.

    Args:
        tokens_per_step: int.
    """

    def __init__(self, tokens_per_step: int):
        super().__init__()
        self.tokens_per_step = tokens_per_step

    def on_epoch_begin(self, epoch, logs=None):
        self._stopwatch, self._speed = Stopwatch(self.model, self.tokens_per_step), None

    def on_test_begin(self, logs=None):
        self._speed = self._stopwatch.read()  # evaluation does not count

    def on_epoch_end(self, epoch, logs=None):
        logs = {} if logs is None else logs
        logs["learning_rate"] = float(self.model.optimizer.learning_rate)
        logs.update(dataclasses.asdict(self._speed or self._stopwatch.read()))
