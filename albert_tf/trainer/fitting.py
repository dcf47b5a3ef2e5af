"""`model.fit` for a run that may have been stopped anywhere, and may be told to stop.

Keras calls an interval an epoch here: `log_every` updates.
"""

from collections.abc import Callable
from typing import Any

import keras

from albert_tf.trainer.callbacks import ProgressLine
from albert_tf.trainer.devices import Devices, shared_evenly
from albert_tf.trainer.preemption import PreemptionNotice
from albert_tf.trainer.recipe import TrainingRecipe
from albert_tf.trainer.state import TrainingState


class Fitting:
    """Trains a model from where its state is to the end, or to where the process is told to stop.

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
            train: training data, open at the state's step.
            open_train: opens them at another step.
            heldout: dataset, or None.
        """
        interval, total = self.training.log_every, self.training.num_train_steps // self.training.log_every
        done, begun = divmod(self.state.step, interval)
        with PreemptionNotice() as notice:
            stop = _StopWhenTold(self.state, interval, self.devices, notice)
            if begun:
                rest = {"initial_epoch": done, "epochs": done + 1, "steps_per_epoch": interval - begun}
                self._fit(train, heldout, rest, [stop, _GoOnWithInterval(self.state)])
                done += 1
                train = open_train(self.state.step) if done < total and not stop.is_told else None
            if done < total and not stop.is_told:
                whole = {"initial_epoch": done, "epochs": total, "steps_per_epoch": interval}
                self._fit(train, heldout, whole, [stop])
        self.state.writer.wait()

    def _fit(self, train, heldout, epochs: dict[str, int], callbacks: list[Any]) -> None:
        callbacks = [*self.callbacks, *callbacks]
        try:
            self.state.model.fit(
                train,
                validation_data=None if heldout is None else shared_evenly(heldout),
                validation_freq=self.training.evaluate_every // self.training.log_every,
                callbacks=callbacks,
                shuffle=False,
                verbose=0,
                **epochs,
            )
        except BaseException as error:
            for callback in callbacks:
                if isinstance(error, _LeaveFit) or isinstance(callback, ProgressLine):
                    callback.on_train_end()
            if not isinstance(error, _LeaveFit):
                raise


class _LeaveFit(Exception):  # noqa: N818 - it is no error
    """Leaves `fit` without what Keras does at its end, which is to put averages in the place of weights."""


class _StopWhenTold(keras.callbacks.Callback):
    """Saves and ends training after the batch in which any process was told to stop.

    At the end of an interval, whose metrics have to be logged first, it waits for that. Several processes have to ask
    each other, which costs a millisecond, and do so twenty times in an interval.
    """

    def __init__(self, state: TrainingState, interval: int, devices: Devices, notice: PreemptionNotice):
        super().__init__()
        self.state, self.interval, self.devices, self.notice, self.is_told = state, interval, devices, notice, False

    def on_train_batch_end(self, batch, logs=None):
        step = self.state.step
        if self.devices.cluster is None or step % self.interval == 0 or step % max(1, self.interval // 20) == 0:
            self.is_told = self.devices.any(self.notice.received)
        if self.is_told and step % self.interval:
            self._save_and_leave()

    def on_epoch_end(self, epoch, logs=None):
        if self.is_told:
            self._save_and_leave()

    def _save_and_leave(self):
        if self.devices.is_chief and self.state.saved_step != self.state.step:
            self.state.save()
        raise _LeaveFit


class _GoOnWithInterval(keras.callbacks.Callback):
    """Ends the interval that a run was stopped in, with running means that go on from where they were."""

    def __init__(self, state: TrainingState):
        super().__init__()
        self.state = state

    def on_epoch_begin(self, epoch, logs=None):
        self.state.restore_metrics()

    def on_epoch_end(self, epoch, logs=None):
        raise _LeaveFit
