"""One step of `fit` and of `evaluate`, as each replica runs it.

It differs from Keras' own in three places, so that the numbers do not depend on how many replicas share a batch:

1. a mean is divided by its weight over all replicas (a replica with few masked tokens does not count for more);
2. gradients are summed over replicas first and clipped once, by the norm of the full batch's gradient;
3. logged values are those of the full batch on every replica.

With gradient accumulation each replica takes its rows as several microbatches; the numbers stay those of the batch.
"""

import warnings
from functools import partial
from typing import Any

import tensorflow as tf
from keras import tree
from keras.utils import unpack_x_y_sample_weight

from albert_tf.models.losses import WeightedMean
from albert_tf.training_step.accumulation import Batch, accumulate
from albert_tf.training_step.apply_gradients import apply_once, sum_over_replicas
from albert_tf.training_step.execution import over_iterator
from albert_tf.training_step.step_monitor import StepMonitor


def make_train_function(model):
    """The function that `fit` calls with an iterator, for `steps_per_execution` steps; returns logs.

    The variables that are trained are those that are trainable now.
    """
    variables = model.trainable_variables
    if not variables:
        warnings.warn("The model does not have any trainable weights.", stacklevel=4)
    # A function that makes variables is traced twice; the optimizer's are made before.
    elif not model.optimizer.built:
        with model.distribute_strategy.scope():
            model.optimizer.build(variables)
    model.step_monitor = StepMonitor(variables, model.distribute_strategy)
    return over_iterator(model, partial(train_step, model, variables), model.step_monitor.add_input_stall)


def make_test_function(model):
    """The function that `evaluate` calls with an iterator, for `steps_per_execution` steps; returns logs."""
    return over_iterator(model, partial(test_step, model), add_input_stall=lambda seconds: None)


def warn_of_changed_variables(model) -> None:
    """Says that a change of `trainable` since the first `fit` has no effect."""
    if model.step_monitor is None:  # the train function is not ours
        return
    trained = {id(variable) for variable in model.step_monitor.variables}
    if trained != {id(variable) for variable in model.trainable_variables}:
        warnings.warn(
            "`trainable` has changed since the model was compiled, and `fit` still trains the variables of before; "
            "call compile() again.",
            stacklevel=4,
        )


def train_step(model, variables, data) -> dict[str, Any]:
    """One update from this replica's rows; returns the logs of the full batch."""
    batch, count = Batch(*unpack_x_y_sample_weight(data)), model.gradient_accumulation_steps
    weights = None
    if count > 1:  # the means of the microbatches are divided by the weights of all of them
        weights = sum_over_replicas(accumulate(batch, count, partial(_loss_weights, model))[0])
    (gradients, loss, means), (epsilons, logs) = accumulate(
        batch, count, partial(_forward_and_backward, model, variables, weights)
    )
    loss = _update_metrics(model, loss, means, epsilons, batch)
    if variables:
        gradients = _sum_gradients(gradients, len(variables))
        model.step_monitor.record(model.optimizer, loss, gradients)
        apply_once(model.optimizer, gradients, variables)
    return _current(model, logs)


def test_step(model, data) -> dict[str, Any]:
    """Loss and metrics of this replica's rows; returns the logs so far."""
    batch = Batch(*unpack_x_y_sample_weight(data))
    outputs = model(batch.x, training=False)
    terms = _loss_terms(model, batch, outputs, training=False)
    loss = _share_of_loss(terms, sum_over_replicas(_weights(terms)))
    means, epsilons = _reported(model, batch, outputs, terms)
    _update_metrics(model, loss, means, epsilons, batch)
    return model.compute_metrics(batch.x, batch.y, outputs, batch.sample_weight)


def _forward_and_backward(model, variables, weights, batch: Batch):
    """Loss, gradients and metric terms of one microbatch.

    Args:
        model: the model.
        variables: list of variables.
        weights: the weight of each loss term over all microbatches and replicas; None where this is the only one.
        batch: Batch.

    Returns:
        What adds up over microbatches: the dense gradients by the number of their variable (without those that the loss
        does not reach), this microbatch's share of the loss, and the total and weight of each term. And what does not:
        the epsilon of each term, and the logs.
    """
    with tf.GradientTape() as tape:
        outputs = model(batch.x, training=True)
        terms = _loss_terms(model, batch, outputs, training=True)
        loss = _share_of_loss(terms, sum_over_replicas(_weights(terms)) if weights is None else weights)
        scaled = model.optimizer.scale_loss(loss)
    gradients = {
        number: _dense(gradient, variables[number].shape)
        for number, gradient in enumerate(tape.gradient(scaled, variables))
        if gradient is not None
    }
    means, epsilons = _reported(model, batch, outputs, terms)
    logs = model.compute_metrics(batch.x, batch.y, outputs, batch.sample_weight)
    return (gradients, loss, means), (epsilons, tree.map_structure(tf.convert_to_tensor, logs))


def _dense(gradient, shape):
    """A gradient whose rows that were looked up twice are added, so that it has a norm."""
    gradient = tf.convert_to_tensor(gradient)
    gradient.set_shape(shape)  # no operation, unlike `tf.ensure_shape`, for which XLA asks sizes at run time
    return gradient


def _loss_weights(model, batch: Batch):
    # Weights come from labels alone, so that this forward pass is pruned where shapes are known.
    return _weights(_loss_terms(model, batch, model(batch.x, training=False), training=False)), ()


def _loss_terms(model, batch: Batch, outputs, training: bool) -> dict[str, WeightedMean]:
    """What is minimised: the sum of these means."""
    if model.has_own_loss:
        loss = model._compute_loss(batch.x, batch.y, outputs, batch.sample_weight, training=training)
        return {"loss": WeightedMean(tf.cast(loss, tf.float32) * batch.rows, batch.rows)}
    terms = model.term_source().loss_terms(batch.y, outputs, batch.sample_weight)
    if added := model.losses:  # by `add_loss` and regularizers; the mean over microbatches counts them once
        total = tf.add_n([tf.cast(tf.reduce_sum(loss), tf.float32) for loss in added])
        terms = {**terms, "added_losses": WeightedMean(total * batch.rows, batch.rows)}
    return terms


def _weights(terms: dict[str, WeightedMean]) -> dict[str, Any]:
    return {name: term.weight for name, term in terms.items()}


def _share_of_loss(terms: dict[str, WeightedMean], weights: dict[str, Any]):
    """These rows' share of the loss: the shares of all replicas and microbatches add up to the full batch's loss."""
    return tf.add_n([term.factor * term._replace(weight=weights[name]).mean() for name, term in terms.items()])


def _reported(model, batch: Batch, outputs, terms: dict[str, WeightedMean]):
    """Total and weight of every loss and metric term, by name, and its epsilon."""
    if model.has_own_loss and batch.y is not None:
        terms = model.term_source().loss_terms(batch.y, outputs, batch.sample_weight)
    if batch.y is not None:
        terms = {**terms, **model.term_source().metric_terms(batch.y, outputs)}
    means = {name: (term.total, term.weight) for name, term in terms.items()}
    return means, {name: tf.constant(term.epsilon) for name, term in terms.items()}


def _sum_gradients(gradients: dict[int, Any], count: int) -> list[Any]:
    """Gradients summed over replicas; None where the loss does not reach a variable."""
    if not gradients:
        raise ValueError("At least one variable must get a gradient. Received: a loss that reaches none of them.")
    gradients = dict(zip(gradients, sum_over_replicas(list(gradients.values()))))
    return [gradients.get(number) for number in range(count)]


def _update_metrics(model, loss, means, epsilons, batch: Batch):
    """Adds the full batch to the reported means; returns its loss."""
    means, loss, rows = sum_over_replicas((means, loss, batch.rows))
    model.update_terms({name: WeightedMean(total, weight, epsilons[name]) for name, (total, weight) in means.items()})
    model.update_loss(loss, rows)
    return loss


def _current(model, logs) -> dict[str, Any]:
    """The logs that `compute_metrics` chose, with the values of metrics that were updated after it."""
    updated = model.get_metrics_result()
    return {name: updated.get(name, value) for name, value in logs.items()}
