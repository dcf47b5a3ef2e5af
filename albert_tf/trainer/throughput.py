"""Throughput of a run: tokens per second, seconds per step, and the fraction of time spent waiting for data."""

import dataclasses
import time

import keras

from albert_tf.trainer.run_folder import Speed


class Stopwatch:
    """Measures the throughput of `model.fit` since construction.

    Each reading synchronises with the device, so read it rarely.
    """

    def __init__(self, model, tokens_per_step: int):
        self.model, self.tokens_per_step = model, tokens_per_step
        self._start = self._now()

    def read(self) -> Speed:
        """The throughput so far."""
        steps, seconds, waited = (now - start for now, start in zip(self._now(), self._start, strict=True))
        steps, seconds = max(steps, 1), max(seconds, 1e-9)
        return Speed(steps * self.tokens_per_step / seconds, seconds / steps, waited / seconds)

    def _now(self) -> tuple[int, float, float]:
        step = int(self.model.optimizer.iterations.numpy())
        return step, time.monotonic(), self.model.step_monitor.input_stall_seconds


class SpeedLog(keras.callbacks.Callback):
    """Adds the learning rate and the interval's Speed to the logs; must come before callbacks that use logs."""

    def __init__(self, tokens_per_step: int):
        super().__init__()
        self.tokens_per_step = tokens_per_step

    def on_epoch_begin(self, epoch, logs=None):
        self._stopwatch, self._speed = Stopwatch(self.model, self.tokens_per_step), None

    def on_test_begin(self, logs=None):
        self._speed = self._stopwatch.read()  # excludes evaluation

    def on_epoch_end(self, epoch, logs=None):
        logs = {} if logs is None else logs
        logs["learning_rate"] = float(self.model.optimizer.learning_rate)
        logs.update(dataclasses.asdict(self._speed or self._stopwatch.read()))
