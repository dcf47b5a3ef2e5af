"""Runs a step over an iterator: `steps_per_execution` steps in one call, on every replica, and times the input.

The time that a device idles before its next batch arrives is the input stall.
"""

import functools
from collections.abc import Callable

import tensorflow as tf
from keras import tree


def over_iterator(model, step: Callable, add_input_stall: Callable) -> Callable:
    """A function of an iterator, as Keras calls it in `fit` and `evaluate`.

    Args:
        model: a compiled model.
        step: function of this replica's data that returns logs, the same on every replica.
        add_input_stall: is told the seconds for which the steps of a call waited for their batches.
    """

    # TensorFlow would make one function for tensors of different ranks, in which ranks are unknown.
    @functools.cache
    def functions(ranks):
        return _functions(model, step)

    def function(iterator):
        # `train_on_batch` and `test_on_batch` come with a Python iterator over their one batch.
        if not isinstance(iterator, (tf.data.Iterator, tf.distribute.DistributedIterator)):
            data = next(iterator)
            one_step, _ = functions(tuple(len(getattr(leaf, "shape", ())) for leaf in tree.flatten(data)))
            return one_step(data)
        specs = tf.nest.flatten(iterator.element_spec, expand_composites=True)
        _, steps = functions(tuple(spec.shape.rank if hasattr(spec, "shape") else None for spec in specs))
        logs, stall = steps(iterator)
        add_input_stall(stall)
        return logs

    return function


def first_local_batch(model, epoch_iterator):
    """The first batch of Keras' iterator as the first replica of this host gets it."""
    local = model.distribute_strategy.experimental_local_results
    batch = next(iterator for _, _, iterator in epoch_iterator)
    return tree.map_structure(lambda value: local(value)[0], next(batch))


def _functions(model, step) -> tuple[Callable, Callable]:
    """One step from data, and `steps_per_execution` steps from an iterator."""
    strategy = model.distribute_strategy

    def one_step(data):
        logs = strategy.run(step, args=(_without_optionals(data),))
        # Every replica returns the same numbers: those of the full batch.
        return tree.map_structure(lambda value: strategy.experimental_local_results(value)[0], logs)

    if not model.run_eagerly:
        # AutoGraph would put "in user code" and a trace before the sentence of an error.
        one_step = tf.function(one_step, autograph=False, reduce_retracing=True, jit_compile=model.jit_compile)

    def first_step(iterator):
        batch, seconds = _timed_next(iterator)
        return one_step(batch), seconds

    # The loop ends where the data do; asking in a `tf.cond` of its own fails, because a step adds up over replicas.
    def several_steps(iterator):
        def more(done, logs, stall, batch):
            return tf.logical_and(done < model.steps_per_execution, batch.has_value())

        def another_step(done, logs, stall, batch):
            logs = one_step(batch.get_value())
            is_last = done + 1 >= model.steps_per_execution
            next_batch = tf.cond(is_last, lambda: batch, iterator.get_next_as_optional)
            return done + 1, logs, stall + _input_stall_seconds(logs, next_batch), next_batch

        logs, stall = first_step(iterator)
        next_batch = iterator.get_next_as_optional()
        start = tf.constant(1), logs, stall + _input_stall_seconds(logs, next_batch), next_batch
        return tf.while_loop(more, another_step, start)[1:3]

    steps = first_step if model.steps_per_execution == 1 else several_steps
    return one_step, steps if model.run_eagerly else tf.function(steps, autograph=False, reduce_retracing=True)


def _without_optionals(data):
    """None where a dataset made from a generator has an Optional for a None, as Keras converts them."""
    return tree.map_structure(lambda leaf: None if isinstance(leaf, tf.experimental.Optional) else leaf, data)


def _timed_next(iterator):
    """The next batch, and the seconds until it was there, a float64 scalar."""
    begun = tf.timestamp()
    with tf.control_dependencies([begun]):
        batch = iterator.get_next()
    return batch, _time_of(batch) - begun


def _input_stall_seconds(logs, next_batch):
    """Seconds the device idled before the next batch arrived; 0 if it was prefetched.

    Neither waits for the other, so that a batch is fetched while the one before is worked on.

    Args:
        logs: what the step returned.
        next_batch: an Optional with a batch.
    """
    # A step that runs on an accelerator has ended when its values are on the host, where a branch needs them.
    first = next(iter(logs.values()), 0.0)
    ended = tf.cond(tf.math.is_finite(tf.cast(first, tf.float32)), tf.timestamp, tf.timestamp)
    return tf.maximum(_time_of(next_batch) - ended, 0.0)


def _time_of(values):
    with tf.control_dependencies(tf.nest.flatten(values, expand_composites=True)):
        return tf.timestamp()
