"""Applies gradients: one update of the variables, identical on every replica."""

import tensorflow as tf

from albert_tf.keras_internals import applies_summed_gradients


def sum_over_replicas(values):
    """Sums every tensor of a structure over all replicas."""
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return values
    return context.all_reduce(tf.distribute.ReduceOp.SUM, values)


def apply_once(optimizer, gradients, variables) -> None:
    """Updates variables with gradients that have been summed over replicas. Gradients may be None.

    Variables without a gradient are not changed, as in the reference: neither decay nor moments.
    """
    pairs = [(gradient, variable) for gradient, variable in zip(gradients, variables) if gradient is not None]
    step = tf.identity(tf.convert_to_tensor(optimizer.iterations))
    with applies_summed_gradients(getattr(optimizer, "inner_optimizer", optimizer)):
        optimizer.apply([gradient for gradient, _ in pairs], [variable for _, variable in pairs])
    if loss_scale(optimizer) is not None:
        # A step skipped because of an overflow counts too: data, logs and checkpoints are numbered by steps.
        optimizer.iterations.assign(step + 1)


def loss_scale(optimizer):
    """The scale of a Keras LossScaleOptimizer; None for other optimizers."""
    return getattr(optimizer, "dynamic_scale", None)
