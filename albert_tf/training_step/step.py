"""The train and test step of each replica.

They differ from Keras' in three respects, so that results do not depend on the number of replicas:

1. Means are divided by the weight over all replicas (tokens on a replica with few masked tokens do not weigh more).
2. Gradients are summed over replicas before they are clipped, by the norm of the full batch's gradient.
3. Logs are those of the full batch on every replica.

The same holds for microbatches with gradient accumulation.

With XLA, a step of one device is a program. Under a strategy it is several, because a program cannot sum over replicas:
the weights of the loss terms, where there are several replicas; loss and gradients; after the sums, the update.
"""

import warnings
from functools import partial
from typing import Any

import tensorflow as tf
from keras import tree

from albert_tf.models.inputs import is_overridden
from albert_tf.models.losses import WeightedMean, counting
from albert_tf.training_step.accumulation import Batch, accumulate
from albert_tf.training_step.apply_gradients import (
    apply_once,
    as_program,
    has_programs,
    sum_over_replicas,
    update_as_program,
)
from albert_tf.training_step.execution import over_iterator
from albert_tf.training_step.step_monitor import StepMonitor


def make_train_function(model):
    """The function of an iterator that `fit` calls; trains the variables that are trainable now."""
    variables = model.trainable_variables
    if not variables:
        warnings.warn("The model does not have any trainable weights.", stacklevel=4)
    # Built here, because a function that creates variables would be traced twice.
    elif not model.optimizer.built:
        with model.distribute_strategy.scope():
            model.optimizer.build(variables)
    model.step_monitor = StepMonitor(variables, model.distribute_strategy)
    return over_iterator(model, partial(train_step, model, variables), model.step_monitor.add_input_stall)


def make_test_function(model):
    """The function of an iterator that `evaluate` calls."""
    return over_iterator(model, partial(test_step, model), add_input_stall=lambda seconds: None)


def warn_of_changed_variables(model) -> None:
    """Warns that a change of `trainable` since the first `fit` has no effect."""
    if model.step_monitor is None:  # not our train function
        return
    trained = {id(variable) for variable in model.step_monitor.variables}
    if trained != {id(variable) for variable in model.trainable_variables}:
        warnings.warn(
            "`trainable` has changed since the model was compiled, but `fit` still trains the same variables; call "
            "compile() again.",
            stacklevel=4,
        )


def train_step(model, variables, data) -> dict[str, Any]:
    """One update with this replica's rows; returns the logs of the full batch."""
    batch, count = Batch.of(data), model.gradient_accumulation_steps
    weights = None
    if count > 1 or _sums_weights_first(model):  # means are divided by the weights of all microbatches
        weights = sum_over_replicas(
            as_program(model, lambda: accumulate(batch, count, partial(_loss_weights, model))[0])
        )
    (gradients, loss, means), (epsilons, logs) = as_program(
        model, lambda: accumulate(batch, count, partial(_forward_and_backward, model, variables, weights))
    )
    means, loss, rows = sum_over_replicas((means, loss, batch.rows))

    def update(gradients, means, epsilons, loss, rows, logs):
        _update_metrics(model, means, epsilons, loss, rows)
        if variables:
            model.step_monitor.record(model.optimizer, loss, gradients)
            apply_once(model, gradients, variables)
        updated = model.get_metrics_result()  # since `compute_metrics`
        return {name: updated.get(name, value) for name, value in logs.items()}

    if not variables:
        return update(None, means, epsilons, loss, rows, logs)
    gradients = _sum_gradients(gradients, len(variables))
    return update_as_program(model, variables[0].value, update, gradients, means, epsilons, loss, rows, logs)


def test_step(model, data) -> dict[str, Any]:
    """Loss and metrics of this replica's rows; returns the logs so far."""
    batch = Batch.of(data)

    def forward():
        outputs = model(batch.x, training=False)
        return outputs, _loss_terms(model, batch, outputs, training=False)

    weights = None
    if _sums_weights_first(model):
        weights = sum_over_replicas(as_program(model, lambda: _weights(forward()[1])))

    def evaluate():
        outputs, terms = forward()
        loss = _loss_contribution(terms, sum_over_replicas(_weights(terms)) if weights is None else weights)
        return outputs, loss, *_reported(model, batch, outputs, terms)

    outputs, loss, means, epsilons = as_program(model, evaluate)
    means, loss, rows = sum_over_replicas((means, loss, batch.rows))

    def update():
        _update_metrics(model, means, epsilons, loss, rows)
        return model.compute_metrics(batch.x, batch.y, outputs, batch.sample_weight)

    return as_program(model, update)


def _sums_weights_first(model) -> bool:
    """Whether the weights of loss terms are summed over replicas before the program that divides by them."""
    return has_programs(model) and tf.distribute.get_replica_context().num_replicas_in_sync > 1


def _forward_and_backward(model, variables, weights, batch: Batch):
    """Loss, gradients and metric terms of one microbatch.

    Args:
        model: the model.
        variables: list of variables.
        weights: the weight of each loss term over all microbatches and replicas; None if they are summed here.
        batch: Batch.

    Returns:
        Two tuples. To be summed over microbatches: dense gradients by the index of their variable (without those that
        are None), the contribution to the loss, and total and weight of each term. Not to be summed: the epsilon of
        each term, and the logs.
    """
    with tf.GradientTape() as tape:
        outputs, terms = _forward(model, batch, training=True)
        loss = _loss_contribution(terms, sum_over_replicas(_weights(terms)) if weights is None else weights)
        scaled = model.optimizer.scale_loss(loss)
    gradients = {
        index: _dense(gradient, variables[index].shape)
        for index, gradient in enumerate(tape.gradient(scaled, variables))
        if gradient is not None
    }
    means, epsilons = _reported(model, batch, outputs, terms)
    logs = model.compute_metrics(batch.x, batch.y, outputs, batch.sample_weight)
    return (gradients, loss, means), (epsilons, tree.map_structure(tf.convert_to_tensor, logs))


def _dense(gradient, shape):
    """Converts IndexedSlices, in which rows may occur twice, to a tensor."""
    gradient = tf.convert_to_tensor(gradient)
    gradient.set_shape(shape)  # unlike `tf.ensure_shape`, this adds no operation
    return gradient


def _loss_weights(model, batch: Batch):
    # Weights depend on labels only, so this forward pass is pruned if shapes are static.
    return _weights(_forward(model, batch, training=False)[1]), ()


def _forward(model, batch: Batch, training: bool) -> tuple[Any, dict[str, WeightedMean]]:
    """The outputs, and the terms that `fit` minimises: those of the loss and of a teacher."""
    if model.distillation is None:
        outputs, taught = model(batch.x, training=training), {}
    else:
        with counting(batch.counted):
            outputs, taught = model.distillation.outputs_and_terms(model, batch.x, training)
    return outputs, {**_loss_terms(model, batch, outputs, training), **taught}


def _loss_terms(model, batch: Batch, outputs, training: bool) -> dict[str, WeightedMean]:
    """The terms whose means add up to the loss."""
    if is_overridden(model, "compute_loss"):
        loss = model.loss_of_batch(batch.x, batch.y, outputs, _weights_of_rows(batch), training)
        return {"loss": WeightedMean(tf.cast(loss, tf.float32) * batch.rows, batch.rows)}
    with counting(batch.counted):
        terms = model.term_source().loss_terms(batch.y, outputs, batch.sample_weight)
    if added := model.losses:  # from `add_loss` and regularizers; the mean over microbatches counts them once
        total = tf.add_n([tf.cast(tf.reduce_sum(loss), tf.float32) for loss in added])
        terms = {**terms, "added_losses": WeightedMean(total * batch.rows, batch.rows)}
    return terms


def _weights_of_rows(batch: Batch):
    """Sample weights with which a mean over all rows is the mean over those that count."""
    if batch.counted is None:
        return batch.sample_weight
    counted = batch.counted * tf.math.divide_no_nan(tf.cast(tf.size(batch.counted), tf.float32), batch.rows)
    return counted if batch.sample_weight is None else counted * tf.cast(batch.sample_weight, tf.float32)


def _weights(terms: dict[str, WeightedMean]) -> dict[str, Any]:
    return {name: term.weight for name, term in terms.items()}


def _loss_contribution(terms: dict[str, WeightedMean], weights: dict[str, Any]):
    """The contribution of these rows to the loss; over all replicas and microbatches they add up to it."""
    return tf.add_n([term._replace(weight=weights[name]).mean() for name, term in terms.items()])


def _reported(model, batch: Batch, outputs, terms: dict[str, WeightedMean]):
    """Total and weight of each loss and metric term by name, and the epsilons by name."""
    with counting(batch.counted):
        if is_overridden(model, "compute_loss") and batch.y is not None:
            terms = model.term_source().loss_terms(batch.y, outputs, batch.sample_weight)
        if batch.y is not None or not model.label_fields():
            terms = {**terms, **model.term_source().metric_terms(batch.y, outputs)}
    means = {name: (term.total, term.weight) for name, term in terms.items()}
    return means, {name: tf.constant(term.epsilon) for name, term in terms.items()}


def _sum_gradients(gradients: dict[int, Any], count: int) -> list[Any]:
    """Gradients summed over replicas; None for variables that the loss does not depend on."""
    if not gradients:
        raise ValueError("The loss does not depend on any trainable variable; check the loss and `trainable`.")
    gradients = dict(zip(gradients, sum_over_replicas(list(gradients.values()))))
    return [gradients.get(index) for index in range(count)]


def _update_metrics(model, means, epsilons, loss, rows) -> None:
    """Updates the reported means with the full batch."""
    model.update_terms({name: WeightedMean(total, weight, epsilons[name]) for name, (total, weight) in means.items()})
    model.update_loss(loss, rows)
