"""Proves that `fit` reads the logs of a step only where a callback takes them."""

import keras
import numpy as np
import pytest

from albert_tf import AlbertForSequenceClassification
from albert_tf.training_step import QueuedCallbacks, queued_callbacks

from .small import CONFIG, make_inputs


class Loss:
    """A value on a device; counts how often it is read."""

    reads = 0

    def __float__(self):
        self.reads += 1
        return 0.5


class AtEpochs(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        raise AssertionError("not called here")


def ended(callbacks, *, seconds=0.0, monkeypatch, **bar):
    """How often the loss of three batches was read, with this time between them."""
    listed = QueuedCallbacks(callbacks, model=keras.Model(), add_history=True, epochs=1, steps=None, **bar)
    loss = Loss()
    for batch in range(3):
        monkeypatch.setattr(queued_callbacks.time, "monotonic", lambda batch=batch: batch * seconds)
        listed.on_train_batch_end(batch, {"loss": loss})
        listed.on_test_batch_end(batch, {"loss": loss})
    return loss.reads


@pytest.mark.parametrize("method", ["on_train_batch_end", "on_test_batch_end"])
def test_logs_are_read_for_callbacks_that_take_them(method, monkeypatch):
    assert ended([], monkeypatch=monkeypatch) == ended([AtEpochs()], monkeypatch=monkeypatch) == 0
    seen = []
    taking = keras.callbacks.LambdaCallback()
    setattr(taking, method, lambda batch, logs: seen.append(logs))
    assert ended([taking], monkeypatch=monkeypatch) == 3
    assert seen == [{"loss": 0.5}] * 3


def test_the_progress_bar_reads_them_once_a_second(monkeypatch, capsys):
    bar = keras.callbacks.ProgbarLogger()
    bar.target = 3
    assert ended([bar], monkeypatch=monkeypatch, verbose=1) == 1
    assert ended([bar], seconds=1.5, monkeypatch=monkeypatch, verbose=1) == 3
    assert bar.seen == 3


class Steps(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.seen = []

    def on_train_begin(self, logs=None):
        self.seen.append(self.params["steps"])

    def on_test_begin(self, logs=None):
        self.seen.append(self.params["steps"])


def test_callbacks_know_the_number_of_steps(capsys):
    model = AlbertForSequenceClassification(CONFIG, num_labels=3)
    model.compile("sgd", run_eagerly=True)
    inputs, labels, steps = make_inputs(5), np.arange(5) % 3, Steps()
    held_out = make_inputs(3), labels[:3]
    history = model.fit(inputs, labels, batch_size=2, validation_data=held_out, callbacks=[steps], verbose=1).history
    assert set(history) >= {"loss", "val_loss"}
    shown = capsys.readouterr().out
    assert "3/3" in shown
    assert f"loss: {history['loss'][0]:.4f}" in shown
    model.evaluate(inputs, labels, batch_size=1, callbacks=[steps], verbose=0)
    assert steps.seen == [3, 3, 5]
    given = keras.callbacks.CallbackList([], add_history=True, model=model, verbose=0, epochs=1, steps=3)
    assert model.fit(inputs, labels, batch_size=2, callbacks=given, verbose=0).history.keys() == {
        "loss",
        "cross_entropy",
        "accuracy",
    }


def test_epochs_that_keras_limits_are_what_callbacks_see():
    model, steps = AlbertForSequenceClassification(CONFIG, num_labels=2), Steps()
    model.compile("sgd", run_eagerly=True)
    keras.config.set_max_epochs(1)
    try:
        with pytest.warns(UserWarning, match="Limiting epochs to 1"):
            model.fit(make_inputs(2), np.zeros(2, "int32"), epochs=3, callbacks=[steps], verbose=0)
    finally:
        keras.config.set_max_epochs(None)
    assert steps.params["epochs"] == 1
