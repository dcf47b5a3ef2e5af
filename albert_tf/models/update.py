"""How gradients become one update of the variables, the same on every replica, and what is kept of them to look at.

Like the training step that uses it, this file is about tf.distribute and imports TensorFlow.
"""

from typing import NamedTuple

import numpy as np
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


class StepReport(NamedTuple):
    """One step as it is to be looked at from outside.

    Attributes:
        step: its number, 1 for the first.
        loss: of the whole batch.
        learning_rate: that it was made with.
        norms: norm of each variable's gradient before clipping, by path; 0 where the loss does not reach it.
        finite_norms: the same of the last step at which all were finite.
    """

    step: int
    loss: float
    learning_rate: float
    norms: dict[str, float]
    finite_norms: dict[str, float]


class StepRecord:
    """Keeps the last step's numbers on the device, and the first step's whose loss or gradients were not finite.

    It costs one pass over the gradients. From the first step that is not finite on, it stays as it is.

    Args:
        variables: the model's trainable variables.
        strategy: a tf.distribute strategy.

    Attributes:
        seconds_waiting: for how long all steps so far stood still because their batch was not there.
    """

    def __init__(self, variables, strategy):
        self.paths = [variable.path for variable in variables]
        self.seconds_waiting = 0.0
        with strategy.scope():
            self._norms, self._finite_norms = (_same_everywhere(tf.zeros([len(variables)])) for _ in range(2))
            self._loss, self._rate = (_same_everywhere(tf.zeros([])) for _ in range(2))
            self._step, self._failed = _same_everywhere(tf.zeros([], tf.int64)), _same_everywhere(tf.constant(False))

    def note(self, optimizer, loss, gradients) -> None:
        """Called in the step before the update, with the whole batch's loss and gradients."""
        scale, reached = scale_of_loss(optimizer), [gradient is not None for gradient in gradients]
        factor = 1.0 if scale is None else 1.0 / tf.cast(tf.convert_to_tensor(scale), tf.float32)
        norms = tf.stack([tf.norm(factor * tf.cast(g, tf.float32)) for g in gradients if g is not None])
        # An overflow of gradients is the business of a loss scale, which then skips the step.
        is_finite = tf.reduce_all(tf.math.is_finite(norms))
        failed = ~tf.math.is_finite(loss) if scale is not None else ~(tf.math.is_finite(loss) & is_finite)
        norms = tf.tensor_scatter_nd_update(tf.zeros([len(reached)]), tf.where(reached), norms)
        before = tf.identity(self._failed)
        self._finite_norms.assign(tf.where(before | ~is_finite, self._finite_norms, norms))
        for variable, value in (
            (self._norms, norms),
            (self._loss, tf.cast(loss, tf.float32)),
            (self._rate, tf.cast(tf.convert_to_tensor(optimizer.learning_rate), tf.float32)),
            (self._step, tf.cast(tf.convert_to_tensor(optimizer.iterations), tf.int64) + 1),
        ):
            variable.assign(tf.where(before, variable, value))
        self._failed.assign(before | failed)

    @property
    def has_failed(self) -> bool:
        """Whether a step's loss, or its gradients without a loss scale, were not finite."""
        return bool(self._failed.numpy())

    @property
    def gradient_norm(self) -> float:
        """The norm of all gradients of the last step together, before clipping."""
        return float(np.linalg.norm(self._norms.numpy()))

    def report(self) -> StepReport:
        """The last step, or the first that was not finite."""
        norms, finite_norms = (dict(zip(self.paths, v.numpy().tolist())) for v in (self._norms, self._finite_norms))
        return StepReport(
            int(self._step.numpy()), float(self._loss.numpy()), float(self._rate.numpy()), norms, finite_norms
        )


def _same_everywhere(value) -> tf.Variable:
    """A variable to which every replica assigns the same."""
    return tf.Variable(
        value,
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
    )
