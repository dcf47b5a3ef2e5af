"""How gradients become one update of the variables, the same on every replica."""

import tensorflow as tf


def sum_over_replicas(values):
    """Every tensor of a structure added up over all replicas; as it is where there is one."""
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return values
    return context.all_reduce(tf.distribute.ReduceOp.SUM, values)


def apply_once(optimizer, gradients, variables) -> None:
    """Updates variables by gradients that are summed over replicas already and may be None.

    A variable that the loss does not reach is left alone, as in the reference: no decay, no moments.
    """
    reached = [(gradient, variable) for gradient, variable in zip(gradients, variables) if gradient is not None]
    summed_already = _let_sum_come_first(getattr(optimizer, "inner_optimizer", optimizer))
    step = tf.identity(tf.convert_to_tensor(optimizer.iterations))
    with summed_already:
        optimizer.apply([gradient for gradient, _ in reached], [variable for _, variable in reached])
    if scale_of_loss(optimizer) is not None:
        # A step skipped for its overflow is a step all the same: data, logs and checkpoints go by their number.
        optimizer.iterations.assign(step + 1)


def scale_of_loss(optimizer):
    """What a Keras LossScaleOptimizer multiplies the loss by; None for other optimizers."""
    return getattr(optimizer, "dynamic_scale", None)


class _SumUnlessSummed:
    """Keras' own sum over replicas, which does nothing while this object is entered.

    It counts who is inside, because MirroredStrategy traces each replica in a thread of its own and a loss scale
    makes Keras go on in further threads. One optimizer's update is never traced in two places at once otherwise.
    """

    def __init__(self, keras_sum):
        self.keras_sum, self.inside = keras_sum, 0

    def __enter__(self):
        self.inside += 1

    def __exit__(self, *exception):
        self.inside -= 1

    def __call__(self, gradients_and_variables):
        return gradients_and_variables if self.inside else self.keras_sum(gradients_and_variables)


def _let_sum_come_first(optimizer) -> _SumUnlessSummed:
    """Keras clips and then sums over replicas. Here the sum has come first, and must not come again in `apply`."""
    keras_sum = getattr(optimizer, "_all_reduce_sum_gradients", None)
    if keras_sum is None:
        raise ValueError(f"The optimizer must be a Keras optimizer on its TensorFlow backend. Received: {optimizer!r}.")
    if not isinstance(keras_sum, _SumUnlessSummed):
        keras_sum = optimizer._all_reduce_sum_gradients = _SumUnlessSummed(keras_sum)
    return keras_sum
