"""The step of `model.fit` and `model.evaluate` for TensorFlow and every tf.distribute strategy.

This is the one file of the room that imports TensorFlow. It differs from Keras' own step in three places, so that the
numbers do not depend on how many replicas share a batch:

1. a mean is divided by its weight over all replicas (a replica with few masked tokens does not count for more);
2. gradients are summed over replicas first and clipped once, by the norm of the whole batch's gradient;
3. logged values are those of the whole batch on every replica.
"""

import threading
from typing import Any

import tensorflow as tf
from keras import tree
from keras.utils import unpack_x_y_sample_weight

from albert_tf.models.losses import Term


def make_train_function(model):
    """The function that `fit` calls with an iterator, for `steps_per_execution` steps; returns logs."""
    # A function that makes variables is traced twice; the optimizer's are made before.
    if not model.optimizer.built:
        with model.distribute_strategy.scope():
            model.optimizer.build(model.trainable_variables)
    return _over_iterator(model, lambda data: _train_step(model, data))


def make_test_function(model):
    """The function that `evaluate` calls with an iterator, for `steps_per_execution` steps; returns logs."""
    return _over_iterator(model, lambda data: _test_step(model, data))


def first_local_batch(model, epoch_iterator):
    """The first batch of Keras' iterator as the first replica of this host gets it."""
    local = model.distribute_strategy.experimental_local_results
    batch = next(iterator for _, _, iterator in epoch_iterator)
    return tree.map_structure(lambda value: local(value)[0], next(batch))


def _over_iterator(model, step):
    strategy = model.distribute_strategy

    @tf.autograph.experimental.do_not_convert
    def one_step(data):
        logs = strategy.run(step, args=(data,))
        # Every replica returns the same numbers: those of the whole batch.
        return tree.map_structure(lambda value: strategy.experimental_local_results(value)[0], logs)

    if not model.run_eagerly:
        one_step = tf.function(one_step, reduce_retracing=True, jit_compile=model.jit_compile)

    def first_step(iterator):
        return one_step(iterator.get_next())

    # The loop ends where the data do; asking in a `tf.cond` of its own fails, because a step adds up over replicas.
    @tf.autograph.experimental.do_not_convert
    def several_steps(iterator):
        def more(done, logs, batch):
            return tf.logical_and(done < model.steps_per_execution, batch.has_value())

        def another_step(done, logs, batch):
            logs = one_step(batch.get_value())
            is_last = done + 1 >= model.steps_per_execution
            return done + 1, logs, tf.cond(is_last, lambda: batch, iterator.get_next_as_optional)

        start = tf.constant(1), first_step(iterator), iterator.get_next_as_optional()
        return tf.while_loop(more, another_step, start)[1]

    steps = first_step if model.steps_per_execution == 1 else several_steps
    if not model.run_eagerly:
        steps = tf.function(steps, reduce_retracing=True)

    def function(iterator):
        is_dataset = isinstance(iterator, (tf.data.Iterator, tf.distribute.DistributedIterator))
        # `train_on_batch` and `test_on_batch` come with a Python iterator over their one batch.
        return steps(iterator) if is_dataset else one_step(next(iterator))

    return function


def _train_step(model, data) -> dict[str, Any]:
    x, y, sample_weight = unpack_x_y_sample_weight(data)
    variables = model.trainable_variables
    with tf.GradientTape() as tape:
        outputs = model(x, training=True)
        loss, terms = _local_loss(model, x, y, outputs, sample_weight, training=True)
        scaled = model.optimizer.scale_loss(loss)
    gradients = tape.gradient(scaled, variables)
    _apply_once(model.optimizer, gradients, variables)
    return _logs(model, x, y, outputs, sample_weight, loss, terms)


def _test_step(model, data) -> dict[str, Any]:
    x, y, sample_weight = unpack_x_y_sample_weight(data)
    outputs = model(x, training=False)
    loss, terms = _local_loss(model, x, y, outputs, sample_weight, training=False)
    return _logs(model, x, y, outputs, sample_weight, loss, terms)


def _local_loss(model, x, y, outputs, sample_weight, training: bool):
    """This replica's share of the whole batch's loss, and the model's terms summed over replicas.

    The shares of all replicas add up to the loss of the whole batch, and so do their gradients.
    """
    if model.uses_compiled_loss:
        loss = model.compute_loss(x, y, outputs, sample_weight, training=training)
        return loss * _correction_of_mean(model, x), {}
    terms = model.loss_terms(y, outputs, sample_weight)
    weights = _sum_over_replicas({name: term.weight for name, term in terms.items()})
    shares = [Term(term.total, weights[name], term.epsilon).mean() for name, term in terms.items()]
    return tf.add_n(shares), {name: term._replace(weight=weights[name]) for name, term in terms.items()}


def _correction_of_mean(model, x):
    """Keras gives every replica's mean the same weight; this gives it that of the replica's rows."""
    replicas = model.distribute_strategy.num_replicas_in_sync
    reductions = {getattr(loss, "reduction", "mean") for loss in tree.flatten(model.loss)}
    if replicas == 1 or not reductions <= {"mean", "sum_over_batch_size"}:
        return 1.0
    rows = _rows(x)
    return replicas * rows / _sum_over_replicas(rows)


def _rows(x):
    return tf.cast(tf.shape(tf.nest.flatten(x)[0])[0], tf.float32)


def _apply_once(optimizer, gradients, variables) -> None:
    # A variable that the loss does not reach is left alone, as in the reference: no decay, no moments.
    reached = [(gradient, variable) for gradient, variable in zip(gradients, variables) if gradient is not None]
    if not reached:
        raise ValueError("At least one variable must get a gradient. Received: a loss that reaches none of them.")
    # Rows looked up twice must be added before the norm is taken, so sparse gradients become dense here.
    summed = _sum_over_replicas([tf.convert_to_tensor(gradient) for gradient, _ in reached])
    _let_sum_come_first(getattr(optimizer, "inner_optimizer", optimizer))
    _thread.gradients_are_summed = True
    try:
        optimizer.apply(summed, [variable for _, variable in reached])
    finally:
        _thread.gradients_are_summed = False


# MirroredStrategy traces each replica in a thread of its own.
_thread = threading.local()


def _let_sum_come_first(optimizer) -> None:
    """Keras clips and then sums over replicas. Here the sum has come first, and must not come again in `apply`."""
    keras_sum = getattr(optimizer, "_all_reduce_sum_gradients", None)
    if keras_sum is None:
        raise ValueError(f"The optimizer must be a Keras optimizer on its TensorFlow backend. Received: {optimizer!r}.")
    if not isinstance(keras_sum, _SumUnlessSummed):
        optimizer._all_reduce_sum_gradients = _SumUnlessSummed(keras_sum)


class _SumUnlessSummed:
    """Keras' own sum over replicas, which does nothing in a thread whose gradients are summed already."""

    def __init__(self, keras_sum):
        self.keras_sum = keras_sum

    def __call__(self, gradients_and_variables):
        summed = getattr(_thread, "gradients_are_summed", False)
        return gradients_and_variables if summed else self.keras_sum(gradients_and_variables)


def _sum_over_replicas(values):
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return values
    return context.all_reduce(tf.distribute.ReduceOp.SUM, values)


def _logs(model, x, y, outputs, sample_weight, loss, loss_terms) -> dict[str, Any]:
    metric_terms = {} if model.uses_compiled_loss else model.metric_terms(y, outputs, sample_weight)
    totals, weights, loss, rows = _sum_over_replicas(
        (
            {name: term.total for name, term in {**loss_terms, **metric_terms}.items()},
            {name: term.weight for name, term in metric_terms.items()},
            loss,
            _rows(x),
        )
    )
    for name, term in {**loss_terms, **metric_terms}.items():
        model.update_term(name, Term(totals[name], weights.get(name, term.weight), term.epsilon))
    model.update_loss(loss, rows)
    return model.compute_metrics(x, y, outputs, sample_weight)
