"""Runs `steps_per_execution` steps per call on every replica, and measures the input stall.

The input stall is the time for which the host waits for the next batch. It is not measured where several steps are a
loop in the graph, which fetches its batches itself; TensorBoard's profiler shows it there.
"""

import collections
import concurrent.futures
import ctypes
import functools
import math
import sys
import time
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import tree

from albert_tf.layers.kernels import runs_on_cpu
from albert_tf.training_step.apply_gradients import has_programs

# Parameters of mallopt(3) and their values: those at which glibc's own adjustment ends.
_MMAP_THRESHOLD, _TRIM_THRESHOLD = (-3, 32 << 20), (-1, 64 << 20)
_MALLOPT = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None  # musl has none


def over_iterator(model, step: Callable, add_input_stall: Callable) -> Callable:
    """The function of an iterator that Keras calls in `fit` and `evaluate`.

    Args:
        model: a compiled model.
        step: function of this replica's data that returns logs, the same on every replica.
        add_input_stall: called with the input stall of each call in seconds, NaN where it is not measured.
    """
    start = _at_once if runs_on_cpu() else StartedSteps()
    traced: list[str] = []

    def note_shape(data):
        traced.append(_shape_of(model, data))
        if model.step_monitor is not None:
            model.step_monitor.on_compile(traced[-1], None)

    # One function per combination of ranks; TensorFlow would generalise it to unknown ranks.
    @functools.cache
    def functions(ranks):
        return _functions(model, step, note_shape)

    def function(iterator):
        # `train_on_batch` and `test_on_batch` pass a Python iterator over one batch.
        if not isinstance(iterator, (tf.data.Iterator, tf.distribute.DistributedIterator)):
            data = next(iterator)
            one_step, _ = functions(tuple(len(getattr(leaf, "shape", ())) for leaf in tree.flatten(data)))
            return one_step(data)
        specs = tf.nest.flatten(iterator.element_spec, expand_composites=True)
        shapes = [getattr(spec, "shape", None) for spec in specs]
        one_step, steps = functions(tuple(shape.rank if shape is not None else None for shape in shapes))
        traced.clear()
        begun = time.monotonic()
        has_one_shape = all(shape.is_fully_defined() for shape in shapes if shape is not None)
        if model.steps_per_execution > 1 and (has_one_shape or not model.jit_compile):
            logs, stall = start(steps, iterator), math.nan
        else:
            if not (model.jit_compile or model.run_eagerly):  # one program for batches of all shapes
                one_step = one_step.get_concrete_function(iterator.element_spec)
            logs, stall = _fetched_steps(functools.partial(start, one_step), iterator, model.steps_per_execution)
        if traced and model.step_monitor is not None:
            model.step_monitor.on_compile(traced[-1], time.monotonic() - begun)
        _reuse_large_buffers()  # after the first batch, with which TensorFlow forbids it
        add_input_stall(stall)
        return logs

    return function


def for_each_shape(model) -> Callable:
    """The function of data that Keras calls in `predict`, one for each shape: XLA's attention needs fixed ones."""
    functions: dict[tuple[Any, ...], Callable] = {}

    def function(data):
        shapes = tuple(str(getattr(leaf, "shape", None)) for leaf in tf.nest.flatten(data, expand_composites=True))
        if shapes not in functions:
            keras.Model.make_predict_function(model, force=True)  # which sets the attribute
            functions[shapes], model.predict_function = model.predict_function, function
        return functions[shapes](data)

    return function


class StartedSteps:
    """Starts steps, of which at most two are not done: each holds its buffers while it waits for the accelerator.

    What a step returns is copied from a GPU behind all that was started before the copy, so a thread begins to read it
    before the next step is started.
    """

    def __init__(self):
        self._reader = concurrent.futures.ThreadPoolExecutor(1)
        self._read: collections.deque[concurrent.futures.Future] = collections.deque()

    def __call__(self, function: Callable, *args) -> Any:
        """Calls the function, which returns tensors, once the last call but one is done."""
        while len(self._read) > 1:
            self._read.popleft().result()
        outputs = function(*args)
        first = tf.nest.flatten(outputs)[:1]  # of a program, all are there at once
        self._read.extend(self._reader.submit(np.asarray, tensor) for tensor in first)
        time.sleep(0)  # the thread's turn
        return outputs


def _at_once(function: Callable, *args):
    return function(*args)


def _functions(model, step, note_shape: Callable) -> tuple[Any, Any]:
    """One step from data, and `steps_per_execution` steps from an iterator; `note_shape` is called when they trace."""
    strategy = model.distribute_strategy
    with strategy.scope():
        is_program = model.jit_compile and not has_programs(model)

    def one_step(data):
        if not model.run_eagerly:
            note_shape(data)
        # In datasets made from generators, Keras has converted None to Optional.
        data = tree.map_structure(lambda leaf: None if isinstance(leaf, tf.experimental.Optional) else leaf, data)
        logs = strategy.run(step, args=(data,))
        # Every replica returns the logs of the full batch.
        return tree.map_structure(lambda value: strategy.experimental_local_results(value)[0], logs)

    if not model.run_eagerly:
        # AutoGraph would prepend "in user code" and a trace to error messages.
        # For XLA, shapes stay as they are.
        generalizes = not model.jit_compile
        one_step = tf.function(one_step, autograph=False, reduce_retracing=generalizes, jit_compile=is_program)

    # The loop ends with the data. A separate `tf.cond` is not possible, because a step sums over replicas; so does the
    # question whether they all have a next batch, and two sums that start together may be taken for one.
    def several_steps(iterator):
        def more(done, logs, batch):
            return tf.logical_and(done < model.steps_per_execution, batch.has_value())

        def another_step(done, logs, batch):
            logs = one_step(batch.get_value())
            is_last = done + 1 >= model.steps_per_execution
            with tf.control_dependencies(list(logs.values())):
                return done + 1, logs, tf.cond(is_last, lambda: batch, iterator.get_next_as_optional)

        logs = one_step(iterator.get_next())
        with tf.control_dependencies(list(logs.values())):
            batch = iterator.get_next_as_optional()
        return tf.while_loop(more, another_step, (tf.constant(1), logs, batch))[1]

    return one_step, several_steps if model.run_eagerly else tf.function(
        several_steps, autograph=False, reduce_retracing=True
    )


def _shape_of(model, data) -> str:
    """The shape of a replica's first input, such as "32 x 128", or "" if it is not fixed."""
    shape = getattr(model.distribute_strategy.experimental_local_results(tree.flatten(data)[0])[0], "shape", None)
    return " x ".join(map(str, shape)) if shape is not None and shape.is_fully_defined() else ""


def _fetched_steps(one_step: Callable, iterator, count: int) -> tuple[Any, float]:
    """The logs of the last of up to `count` steps, and the input stall; XLA needs to know the shape of each batch."""
    logs, stall = None, 0.0
    for _ in range(count):
        begun = time.monotonic()
        try:
            batch = next(iterator)
        except (StopIteration, tf.errors.OutOfRangeError):
            if logs is None:
                raise
            break
        stall += time.monotonic() - begun
        logs = one_step(batch)
    return logs, stall


def _reuse_large_buffers() -> None:
    """Lets glibc reuse buffers of up to 32 MiB; takes a microsecond.

    Under Python 3.11, the first batch of a `tf.data.Dataset.from_generator` makes TensorFlow 2.21 set glibc's
    M_TRIM_THRESHOLD to 128 KiB, which also stops the adjustment of M_MMAP_THRESHOLD. From then on each buffer of a step
    is mapped, filled with zeros and unmapped again, which takes up to half of the step.
    """
    if _MALLOPT is not None:
        for setting in (_MMAP_THRESHOLD, _TRIM_THRESHOLD):
            _MALLOPT(*setting)
