"""Proves the limit of queued steps, the messages about compiling, and that glibc reuses large buffers."""

import concurrent.futures
import platform
import time

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertForSequenceClassification
from albert_tf.training_step import execution

from .small import CONFIG, make_inputs

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
    """A tensor of a device that computes one step after the other, while the host goes on."""

    def __init__(self, future):
        self._future = future

    def __array__(self, *arguments, **options):
        return np.asarray(self._future.result())


def most_steps_at_once(start) -> int:
    """The most steps that were started and not done."""
    done, most = [], 0

    def step(number):
        time.sleep(0.02)
        done.append(number)

    with concurrent.futures.ThreadPoolExecutor(1) as device:
        for number in range(8):
            start(lambda number=number: {"loss": Output(device.submit(step, number))})
            most = max(most, number + 1 - len(done))
    return most


def test_two_steps_wait_for_an_accelerator_at_most():
    assert most_steps_at_once(execution.StartedSteps()) == 2
    assert most_steps_at_once(lambda step: step()) > 4


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
