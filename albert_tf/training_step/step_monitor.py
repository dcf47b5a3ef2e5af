"""Loss, learning rate and gradient norms of the last step, kept on the device for callbacks.

They are not updated after a step with a loss or gradients that are not finite.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from albert_tf.training_step.apply_gradients import loss_scale


class StepSnapshot(NamedTuple):
    """The numbers of one step on the host.

    Attributes:
        step: counted from 1.
        loss: of the full batch.
        learning_rate: of this update.
        norms: norm of each variable's gradient before clipping, by path; 0 if it has none.
        finite_norms: the norms of the last step at which all were finite.
    """

    step: int
    loss: float
    learning_rate: float
    norms: dict[str, float]
    finite_norms: dict[str, float]


class StepMonitor:
    """Records the last step, or the first one that was not finite, at the cost of one pass over the gradients.

    Args:
        variables: list of the trained variables.
        strategy: a tf.distribute strategy.

    Attributes:
        input_stall_seconds: total time for which the host has waited for batches; NaN if it is not measured.
        on_compile: called when a step is traced, with the shape of its inputs, such as "32 x 128", or "" if it varies,
            and None; once it was compiled and started, with the shape and the seconds which that took.
    """

    def __init__(self, variables, strategy):
        self.variables, self.input_stall_seconds = variables, 0.0
        self.on_compile: Callable[[str, float | None], None] = lambda shape, seconds: None
        with strategy.scope():
            self._norms, self._finite_norms = (_same_everywhere(tf.zeros([len(variables)])) for _ in range(2))
            self._loss, self._rate = (_same_everywhere(tf.zeros([])) for _ in range(2))
            self._step, self._failed = _same_everywhere(tf.zeros([], tf.int64)), _same_everywhere(tf.constant(False))

    def add_input_stall(self, seconds: float) -> None:
        """Adds to the total input stall."""
        self.input_stall_seconds += seconds

    def record(self, optimizer, loss, gradients) -> None:
        """Records loss and gradients of the full batch; called in the step, before the update."""
        scale, has_gradient = loss_scale(optimizer), [gradient is not None for gradient in gradients]
        values = [tf.cast(gradient, tf.float32) for gradient in gradients if gradient is not None]
        if scale is not None:
            factor = 1.0 / tf.cast(tf.convert_to_tensor(scale), tf.float32)
            values = [factor * gradient for gradient in values]
        # `l2_loss` is half the sum of squares, in one operation.
        halves = [tf.nn.l2_loss(gradient) for gradient in values]
        norms = tf.sqrt(2.0 * tf.stack(halves))
        # With a loss scale, gradients may overflow; the step is then skipped.
        is_finite = tf.reduce_all(tf.math.is_finite(norms))
        failed = ~tf.math.is_finite(loss) if scale is not None else ~(tf.math.is_finite(loss) & is_finite)
        norms = tf.tensor_scatter_nd_update(tf.zeros([len(gradients)]), tf.where(has_gradient), norms)
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
        """Whether a step's loss was not finite, or (without a loss scale) its gradients."""
        return bool(self._failed.numpy())

    @property
    def gradient_norm(self) -> float:
        """The global gradient norm of the last step, before clipping."""
        return float(np.linalg.norm(self._norms.numpy()))

    def snapshot(self) -> StepSnapshot:
        """The last step, or the first that was not finite."""
        paths = [variable.path for variable in self.variables]
        norms, finite_norms = (dict(zip(paths, v.numpy().tolist())) for v in (self._norms, self._finite_norms))
        return StepSnapshot(
            int(self._step.numpy()), float(self._loss.numpy()), float(self._rate.numpy()), norms, finite_norms
        )


def _same_everywhere(value) -> tf.Variable:
    """A variable to which every replica assigns the same value."""
    return tf.Variable(
        value,
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
    )
