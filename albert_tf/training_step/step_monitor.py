"""What is kept of the last step on the device, so that callbacks can look at it.

From the first step on whose loss or gradients were not finite, it stays as it is.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from albert_tf.training_step.apply_gradients import scale_of_loss


class StepSnapshot(NamedTuple):
    """One step as it is to be looked at from outside.

    Attributes:
        step: its number, 1 for the first.
        loss: of the full batch.
        learning_rate: that it was made with.
        norms: norm of each variable's gradient before clipping, by path; 0 where the loss does not reach it.
        finite_norms: the same of the last step at which all were finite.
    """

    step: int
    loss: float
    learning_rate: float
    norms: dict[str, float]
    finite_norms: dict[str, float]


class StepMonitor:
    """Keeps the last step's numbers on the device, or those of the first step that was not finite.

    It costs one pass over the gradients.

    Args:
        variables: list of the variables that are trained.
        strategy: a tf.distribute strategy.

    Attributes:
        input_stall_seconds: for how long devices have idled so far because the next batch was not there.
    """

    def __init__(self, variables, strategy):
        self.variables, self.input_stall_seconds = variables, 0.0
        with strategy.scope():
            self._norms, self._finite_norms = (_same_everywhere(tf.zeros([len(variables)])) for _ in range(2))
            self._loss, self._rate = (_same_everywhere(tf.zeros([])) for _ in range(2))
            self._step, self._failed = _same_everywhere(tf.zeros([], tf.int64)), _same_everywhere(tf.constant(False))

    def add_input_stall(self, seconds) -> None:
        """Called after the steps with the seconds for which they waited for their batches."""
        self.input_stall_seconds += float(seconds)

    def record(self, optimizer, loss, gradients) -> None:
        """Called in the step before the update, with the full batch's loss and gradients."""
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

    def snapshot(self) -> StepSnapshot:
        """The last step, or the first that was not finite."""
        paths = [variable.path for variable in self.variables]
        norms, finite_norms = (dict(zip(paths, v.numpy().tolist())) for v in (self._norms, self._finite_norms))
        return StepSnapshot(
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
