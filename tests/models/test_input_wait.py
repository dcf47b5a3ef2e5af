"""Proves that the seconds for which steps wait for their batches are those that the data took too long."""

import math
import time

import keras
import pytest
import tensorflow as tf

from albert_tf import AlbertForPreTraining
from albert_tf.optimizers import AdamW

from .small import CONFIG, make_pretraining_batch

STEPS, DELAY = 12, 0.2


def slow_batches(seconds: float) -> tf.data.Dataset:
    """The same batch again and again, each made only when it is asked for and after so many seconds."""
    inputs, labels = make_pretraining_batch(4)

    def wait(number):
        time.sleep(seconds)
        return number

    def batch(number):
        with tf.control_dependencies([tf.numpy_function(wait, [number], tf.int64)]):
            return tf.nest.map_structure(tf.identity, (inputs, labels))

    return tf.data.Dataset.range(10 * STEPS).map(batch)


def seconds_waiting(data, strategy=None, **compile_arguments) -> float:
    """Of the second half of the steps, when all is traced."""
    keras.utils.set_random_seed(0)
    with (strategy or tf.distribute.get_strategy()).scope():
        model = AlbertForPreTraining(CONFIG)
        model.compile(AdamW(1e-3), **compile_arguments)
    waited = []
    note = keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: waited.append(model.step_monitor.input_stall_seconds))
    model.fit(data, epochs=2, steps_per_epoch=STEPS, callbacks=[note], shuffle=False, verbose=0)
    return waited[1] - waited[0]


@pytest.mark.exhaustive
@pytest.mark.parametrize("way", ["alone", "xla", "mirrored"])
def test_slow_data_are_waited_for(way):
    strategy = tf.distribute.MirroredStrategy(["CPU:0"]) if way == "mirrored" else None
    waited = seconds_waiting(slow_batches(DELAY), strategy, jit_compile=way == "xla")
    # At most all of the delay; what a step takes may hide some of it, as batches may be fetched at the same time.
    assert 0.5 * STEPS * DELAY < waited < 1.25 * STEPS * DELAY


def test_a_loop_in_the_graph_does_not_measure():
    assert math.isnan(seconds_waiting(slow_batches(0.0), steps_per_execution=4))


@pytest.mark.exhaustive
def test_data_that_are_there_are_not_waited_for():
    data = slow_batches(0.0).take(1).cache().repeat().prefetch(4)
    assert seconds_waiting(data) < 0.25 * STEPS * DELAY
