"""Applies gradients: one update of the variables, identical on every replica."""

import tensorflow as tf


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
    with _without_all_reduce(getattr(optimizer, "inner_optimizer", optimizer)):
        optimizer.apply([gradient for gradient, _ in pairs], [variable for _, variable in pairs])
    if loss_scale(optimizer) is not None:
        # A step skipped because of an overflow counts too: data, logs and checkpoints are numbered by steps.
        optimizer.iterations.assign(step + 1)


def loss_scale(optimizer):
    """The scale of a Keras LossScaleOptimizer; None for other optimizers."""
    return getattr(optimizer, "dynamic_scale", None)


class _AllReduceSwitch:
    """Wraps the optimizer's all-reduce and disables it while entered.

    It counts entries, because MirroredStrategy traces each replica in its own thread, and a loss scale makes Keras
    continue in further threads.
    """

    def __init__(self, all_reduce):
        self.all_reduce, self.entered = all_reduce, 0

    def __enter__(self):
        self.entered += 1

    def __exit__(self, *exception):
        self.entered -= 1

    def __call__(self, gradients_and_variables):
        return gradients_and_variables if self.entered else self.all_reduce(gradients_and_variables)


def _without_all_reduce(optimizer) -> _AllReduceSwitch:
    """Keras clips gradients and then sums them over replicas; here they have been summed before."""
    all_reduce = getattr(optimizer, "_all_reduce_sum_gradients", None)
    if all_reduce is None:
        raise ValueError(f"The optimizer must be a Keras optimizer on its TensorFlow backend. Received: {optimizer!r}.")
    if not isinstance(all_reduce, _AllReduceSwitch):
        all_reduce = optimizer._all_reduce_sum_gradients = _AllReduceSwitch(all_reduce)
    return all_reduce
