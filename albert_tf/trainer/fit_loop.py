"""`model.fit` for runs that can be interrupted and resumed.

One reporting interval, `log_every` updates, is one Keras epoch.
"""

import signal
import threading
from collections.abc import Callable
from typing import Any

import keras

from albert_tf.trainer.callbacks import ProgressLine
from albert_tf.trainer.devices import Devices, shared_evenly
from albert_tf.trainer.run_state import TrainingState


class TrainingStopped(RuntimeError):  # noqa: N818
    """SIGTERM or Ctrl-C interrupted training; the state of the run was saved.

    A command ends with `exit_status`, as in shells: 130 after Ctrl-C, 143 after SIGTERM.
    """

    def __init__(self, step: int, signal_number: int):
        super().__init__(f"Interrupted at step {step:,}; the state was saved, and the same command resumes.")
        self.exit_status = 128 + signal_number


def fit(
    state: TrainingState,
    devices: Devices,
    callbacks: list[Any],
    train: Any,
    open_train: Callable[[int], Any],
    heldout: Any = None,
) -> None:
    """Trains a model from the step of its state to the end, or until a callback stops it.

    Args:
        state: TrainingState of a compiled model.
        devices: Devices.
        callbacks: Keras callbacks of this process.
        train: training data from the current step on.
        open_train: opens the training data at a given step.
        heldout: dataset, or None.

    Raises:
        TrainingStopped: SIGTERM or Ctrl-C was received before the last update; the state was saved.
    """
    interval, total = state.training.log_every, state.training.num_train_steps // state.training.log_every
    done, partial = divmod(state.step, interval)
    with _SaveOnSignal(state, devices) as signals:
        callbacks = [*callbacks, signals]
        if partial:
            rest = {"initial_epoch": done, "epochs": done + 1, "steps_per_epoch": interval - partial}
            _fit(state, [*callbacks, _CompleteInterval(state)], train, heldout, rest)
            done += 1
            if state.model.stop_training:  # a callback has stopped training early
                done = total
            train = open_train(state.step) if done < total and not signals.stopped_by else None
        if done < total and not signals.stopped_by:
            intervals = {"initial_epoch": done, "epochs": total, "steps_per_epoch": interval}
            _fit(state, callbacks, train, heldout, intervals)
    state.writer.wait()
    if signals.stopped_by and state.step < state.training.num_train_steps:
        devices.barrier()  # a worker that exits early would be reported as lost
        raise TrainingStopped(state.step, signals.stopped_by)


def _fit(state: TrainingState, callbacks: list[Any], train: Any, heldout: Any, epochs: dict[str, int]) -> None:
    try:
        state.model.fit(
            train,
            callbacks=callbacks,
            validation_data=None if heldout is None else shared_evenly(heldout),
            validation_freq=state.training.evaluate_every // state.training.log_every,
            shuffle=False,
            verbose=0,
            **epochs,
        )
    except _StopFit:
        for callback in callbacks:
            callback.on_train_end()
    finally:
        for callback in callbacks:
            if isinstance(callback, ProgressLine):
                callback.close()


class _StopFit(Exception):  # noqa: N818
    """Control flow: leaves `fit` before `on_train_end`, where Keras overwrites weights by their averages."""


class _SaveOnSignal(keras.callbacks.Callback):
    """Saves and stops after the step in which any process received SIGTERM or Ctrl-C.

    As a context manager it handles these signals; a second Ctrl-C interrupts immediately. Clusters send SIGTERM before
    they preempt a machine. At the end of an interval, metrics are logged first. Workers synchronise, which takes a
    millisecond, at most twenty times per interval. The check runs before a step because it then reads nothing from the
    device, so that steps can be queued ahead.
    """

    def __init__(self, state: TrainingState, devices: Devices):
        super().__init__()
        self.state, self.devices, self.stopped_by, self._received, self._previous = state, devices, 0, 0, {}
        interval, chunk = state.training.log_every, state.training.steps_per_execution
        self._every = 1 if not devices.has_workers else chunk * max(1, interval // (20 * chunk))

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():  # only there may handlers be set
            self._previous = {number: signal.signal(number, self._record) for number in (signal.SIGTERM, signal.SIGINT)}
        return self

    def __exit__(self, *_):
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _record(self, number: int, _):
        self._received = self._received or number
        signal.signal(signal.SIGINT, self._previous[signal.SIGINT])

    def on_train_batch_begin(self, batch, logs=None):
        if batch % self._every == 0:
            self._stop_if_requested()

    def on_epoch_end(self, epoch, logs=None):
        self._stop_if_requested()

    def _stop_if_requested(self):
        if self.devices.any_worker(bool(self._received)):
            self.stopped_by = self._received or signal.SIGTERM  # if another worker received it
            if self.devices.is_chief and self.state.saved_step != self.state.step:
                self.state.save()
            raise _StopFit


class _CompleteInterval(keras.callbacks.Callback):
    """Completes the interval in which a run was interrupted, including its running means."""

    def __init__(self, state: TrainingState):
        super().__init__()
        self.state = state

    def on_epoch_begin(self, epoch, logs=None):
        self.state.restore_metrics()

    def on_epoch_end(self, epoch, logs=None):
        raise _StopFit
