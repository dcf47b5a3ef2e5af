"""Proves the limit of queued steps, messages about compiling, the seconds without a batch, and glibc's buffers."""

import concurrent.futures
import math
import platform
import threading
import time

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertForPreTraining, AlbertForSequenceClassification
from albert_tf.optimizers import AdamW
from albert_tf.training_step import execution

from .small import CONFIG, make_inputs, make_pretraining_batch

PROGRAM = """
import resource
import numpy as np
import tensorflow as tf
from albert_tf import AlbertForMaskedLM
from tests.models.small import CONFIG, make_pretraining_batch

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        np.ones(1 << 19)  # 4 MiB, 1,024 pages
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

inputs, labels = make_pretraining_batch()
batch = inputs, {name: labels[name] for name in ("masked_lm_ids", "masked_lm_weights")}
spec = tf.nest.map_structure(lambda array: tf.TensorSpec(array.shape, array.dtype), batch)
dataset = tf.data.Dataset.from_generator(lambda: iter([batch] * 2), output_signature=spec)
list(dataset)
faults()
returned = faults()
model = AlbertForMaskedLM(CONFIG)
model.compile("sgd")
model.fit(dataset, verbose=0)
faults()
print(returned, faults())
"""


@pytest.mark.exhaustive
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these settings")
def test_training_from_a_generator_reuses_large_buffers(run_python):
    returned, reused = map(int, run_python("-c", PROGRAM).stdout.split())
    assert reused < 50, f"{reused} page faults for 50 buffers of 1,024 pages; {returned} before training"


class Output:
    """The output of a step, on a device that copies it once all steps enqueued before the copy are done."""

    def __init__(self, started):
        self._started = started

    def __array__(self, *arguments, **options):
        return np.asarray(self._started[-1].result())


def run_steps(start, count=8):
    """The most steps that were started and not done, and the steps that ended before the next one was started."""
    begun = [threading.Event() for _ in range(count + 1)]
    started, done, alone, at_once = [], [], [], []

    def step(number):
        if not begun[number + 1].wait(0.2):
            alone.append(number)
        done.append(number)

    with concurrent.futures.ThreadPoolExecutor(1) as device:

        def started_step(number):
            started.append(device.submit(step, number))
            at_once.append(len(started) - len(done))
            begun[number].set()
            return {"loss": Output(started)}

        for number in range(count):
            start(started_step, number)
    return max(at_once), alone


def test_two_steps_wait_for_an_accelerator_at_most_and_the_next_one_is_there_when_one_ends():
    most, alone = run_steps(execution.StartedSteps())
    assert most == 2
    assert 7 in alone  # the last one
    assert len(alone) <= 3
    assert run_steps(lambda step, number: np.asarray(step(number)["loss"]))[1] == list(range(8))


ROWS = 7
DATA = make_inputs(ROWS), np.arange(ROWS) % 3


def trained(**compile_arguments):
    keras.utils.set_random_seed(3)
    model = AlbertForSequenceClassification(CONFIG.replace(num_hidden_layers=1), num_labels=3)
    model.compile(keras.optimizers.SGD(0.1), **compile_arguments)
    compiled = []
    model.make_train_function()
    model.step_monitor.on_compile = lambda shape, seconds: compiled.append((shape, seconds is None))
    model.fit(tf.data.Dataset.from_tensor_slices(DATA).batch(3), epochs=2, shuffle=False, verbose=0)
    return model.get_weights(), compiled


@pytest.mark.parametrize("steps_per_execution", [1, pytest.param(2, marks=pytest.mark.exhaustive)])
def test_steps_that_wait_are_the_same_bits(steps_per_execution, monkeypatch):
    expected, _ = trained(steps_per_execution=steps_per_execution)
    monkeypatch.setattr(execution, "runs_on_cpu", lambda: False)
    found, _ = trained(steps_per_execution=steps_per_execution)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.exhaustive
def test_xla_compiles_each_shape_once_and_says_so():
    expected, compiled = trained()
    assert compiled == [("", True), ("", False)]  # one graph for all
    length = DATA[0]["input_ids"].shape[1]
    found, compiled = trained(jit_compile=True)
    shapes = [f"3 x {length}", f"1 x {length}"]
    assert compiled == [(shape, begins) for shape in shapes for begins in (True, False)]
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5, rtol=0)


@pytest.mark.exhaustive
@pytest.mark.parametrize("strategy", [tf.distribute.get_strategy(), tf.distribute.MirroredStrategy(["/cpu:0"])])
def test_xla_predicts_with_fixed_shapes_whatever_came_before(strategy):
    shapes = []

    class Recording(AlbertForSequenceClassification):
        def call(self, inputs, training=False):
            shapes.append(tuple(inputs["input_ids"].shape))
            return super().call(inputs, training=training)

    with strategy.scope():
        model = Recording(CONFIG.replace(num_hidden_layers=1), num_labels=3)
        expected = model.predict(DATA[0], verbose=0)["logits"]
        shapes.clear()
        model.compile(jit_compile=True)
    for rows in (3, 2, 3):
        found = model.predict(DATA[0], batch_size=rows, verbose=0)["logits"]
        np.testing.assert_allclose(found, expected, atol=1e-5, rtol=0)
    length = DATA[0]["input_ids"].shape[1]
    assert shapes == [(rows, length) for rows in (3, 1, 2)]
    np.testing.assert_allclose(model.predict_on_batch(DATA[0])["logits"], expected, atol=1e-5, rtol=0)


# === Batches that are waited for ===

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


@pytest.mark.exhaustive
def test_a_loop_in_the_graph_does_not_measure():
    assert math.isnan(seconds_waiting(slow_batches(0.0), steps_per_execution=4))


@pytest.mark.exhaustive
def test_data_that_are_there_are_not_waited_for():
    data = slow_batches(0.0).take(1).cache().repeat().prefetch(4)
    assert seconds_waiting(data) < 0.25 * STEPS * DELAY
