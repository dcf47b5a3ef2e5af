"""`model.fit` for runs that go on where they were stopped, and stop when they are told to.

Keras calls an interval an epoch here: `log_every` updates.
"""

import signal
import threading
from collections.abc import Callable
from typing import Any

import keras

from albert_tf.trainer.callbacks import ProgressLine
from albert_tf.trainer.devices import Devices, shared_evenly
from albert_tf.trainer.recipe import TrainingRecipe
from albert_tf.trainer.run_state import TrainingState


class StopSignal:
    """Takes note of SIGTERM and Ctrl-C while it is entered; a second Ctrl-C interrupts at once.

    Clusters send SIGTERM to a machine that they are about to take away.

    Example:

    >>> with StopSignal() as stop:
    ...     stop.received
    False
    """

    def __init__(self):
        self.received = False

    def __enter__(self) -> "StopSignal":
        # Python delivers signals to the main thread alone.
        self._in_main_thread = threading.current_thread() is threading.main_thread()
        if self._in_main_thread:
            self._before = {number: signal.signal(number, self._note) for number in (signal.SIGTERM, signal.SIGINT)}
        return self

    def __exit__(self, *_) -> None:
        if self._in_main_thread:
            for number, handler in self._before.items():
                signal.signal(number, handler)

    def _note(self, *_) -> None:
        self.received = True
        signal.signal(signal.SIGINT, self._before[signal.SIGINT])


class TrainingStopped(RuntimeError):  # noqa: N818
    """Training was told to stop by SIGTERM or Ctrl-C, and what it had learnt is not kept."""


def fit(model, data, callbacks: list[Any], **arguments) -> None:
    """`model.fit`, silent and in the data's own order; a progress bar is closed even if it fails."""
    try:
        model.fit(data, callbacks=callbacks, shuffle=False, verbose=0, **arguments)
    finally:
        for callback in callbacks:
            if isinstance(callback, ProgressLine):
                callback.close()


class FitLoop:
    """Trains a model from its state's step to the end, or until the process is told to stop.

    Args:
        state: TrainingState of a compiled model.
        training: TrainingRecipe.
        devices: Devices.
        callbacks: of this process.
    """

    def __init__(self, state: TrainingState, training: TrainingRecipe, devices: Devices, callbacks: list[Any]):
        self.state, self.training, self.devices, self.callbacks = state, training, devices, callbacks

    def run(self, train, open_train: Callable[[int], Any], heldout) -> None:
        """Trains.

        Args:
            train: training data from the state's step on.
            open_train: opens them at another step.
            heldout: dataset, or None.
        """
        interval, total = self.training.log_every, self.training.num_train_steps // self.training.log_every
        done, begun = divmod(self.state.step, interval)
        with StopSignal() as signals:
            stop = _StopWhenTold(self.state, self.training, self.devices, signals)
            if begun:
                rest = {"initial_epoch": done, "epochs": done + 1, "steps_per_epoch": interval - begun}
                self._fit(train, heldout, rest, [stop, _CompleteInterval(self.state)])
                done += 1
                train = open_train(self.state.step) if done < total and not stop.is_told else None
            if done < total and not stop.is_told:
                intervals = {"initial_epoch": done, "epochs": total, "steps_per_epoch": interval}
                self._fit(train, heldout, intervals, [stop])
        self.state.writer.wait()

    def _fit(self, train, heldout, epochs: dict[str, int], callbacks: list[Any]) -> None:
        try:
            fit(
                self.state.model,
                train,
                [*self.callbacks, *callbacks],
                validation_data=None if heldout is None else shared_evenly(heldout),
                validation_freq=self.training.evaluate_every // self.training.log_every,
                **epochs,
            )
        except _StopFit:
            for callback in self.callbacks:
                callback.on_train_end()


class _StopFit(Exception):  # noqa: N818
    """Control flow: leaves `fit` before Keras puts averaged weights into the model, as it does at its end."""


class _StopWhenTold(keras.callbacks.Callback):
    """Saves and ends training after the step in which any process was told to stop.

    At the end of an interval it waits until metrics are logged. Several workers ask each other, which takes a
    millisecond, up to twenty times in an interval. Looking before a step, rather than after one, reads nothing from
    the device, so that steps can be queued ahead.
    """

    def __init__(self, state: TrainingState, training: TrainingRecipe, devices: Devices, signals: StopSignal):
        super().__init__()
        self.state, self.interval, self.devices, self.signals = state, training.log_every, devices, signals
        self.is_told = False
        at_once = training.steps_per_execution
        self._every = 1 if not devices.has_workers else at_once * max(1, self.interval // (20 * at_once))

    def on_train_batch_begin(self, batch, logs=None):
        if batch % self._every == 0:
            self._ask()
            if self.is_told:
                self._save_and_leave()

    def on_epoch_end(self, epoch, logs=None):
        self._ask()
        if self.is_told:
            self._save_and_leave()

    def _ask(self):
        self.is_told = self.devices.any_worker(self.signals.received)

    def _save_and_leave(self):
        if self.devices.is_chief and self.state.saved_step != self.state.step:
            self.state.save()
        raise _StopFit


class _CompleteInterval(keras.callbacks.Callback):
    """Completes the interval in which a run was stopped, its running means included."""

    def __init__(self, state: TrainingState):
        super().__init__()
        self.state = state

    def on_epoch_begin(self, epoch, logs=None):
        self.state.restore_metrics()

    def on_epoch_end(self, epoch, logs=None):
        raise _StopFit
