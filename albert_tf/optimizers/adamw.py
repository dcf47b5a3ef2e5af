"""Adam with decoupled weight decay and exclusions by variable path, as in the reference."""

from collections.abc import Iterable, Sequence
from typing import Any

import keras
from keras import ops

from albert_tf.keras_internals import index_of, moving_averages
from albert_tf.optimizers.rules import ALBERT_EXCLUSIONS, assign_rules, check_factors, check_patterns, is_excluded


@keras.saving.register_keras_serializable(package="albert_tf")
class AdamW(keras.optimizers.Optimizer):
    """Adam with decoupled weight decay and exclusions by `variable.path`.

    One step is `w -= learning_rate * (m / (sqrt(v) + epsilon) + weight_decay * w)`. Unlike in `keras.optimizers.AdamW`,
    exclusions are searched in the full path, so `"layer_norm"` finds the gamma and beta of a layer of that name, and
    bias correction can be turned off. With bias correction, m and v are the corrected moments, as published; Keras adds
    epsilon to the uncorrected root, `m / c1 * sqrt(c2) / (sqrt(v) + epsilon)` with `c = 1 - beta ** step`, so that its
    epsilon weighs `1 / sqrt(c2)` times as much in the first steps: 32 times in step 1.

    Moments, norms and arithmetic are float32 (or wider) regardless of the variable's dtype. Sparse gradients are made
    dense first, so every row of an embedding table decays at every step.

    Args:
        learning_rate: float, a schedule, or a callable without arguments.
        weight_decay: float. It is multiplied by the learning rate.
        beta_1: float. Decay rate of the first moment.
        beta_2: float. Decay rate of the second moment.
        epsilon: float. Added to the root of the second moment.
        bias_correction: bool. True is the published Adam. False is the reference's `AdamWeightDecayOptimizer`, with
            which the published ALBERT models were trained; its first steps are larger.
        exclude_from_weight_decay: list of str or None. Regular expressions; variables in whose path one is found are
            not decayed. Defaults to layer normalisation and biases. `None` and `()` exclude nothing.
        global_clipnorm: float or None. Maximum norm of all gradients together; the reference uses 1.0.
        learning_rate_rules: list of (str, float) or None. Pairs of a regular expression and a learning rate factor. The
            first expression found in a variable's path decides; together they must cover every variable, as
            `[("embeddings", 0.5), (".*", 1.0)]` does. A factor of 0 freezes a variable.
        **kwargs: other arguments of `keras.optimizers.Optimizer` (`name`, `clipnorm`, `use_ema`, ...).

    Raises:
        ValueError: a number is out of range, or a pattern is not a regular expression.

    Example:

    >>> import keras, numpy as np
    >>> kernel = keras.Variable([3.0, 4.0], name="kernel")
    >>> optimizer = AdamW(0.1, weight_decay=0.5)
    >>> optimizer.apply([np.array([0.1, -0.2], "float32")], [kernel])
    >>> [round(float(value), 4) for value in kernel.numpy()]
    [2.75, 3.9]

    References:
        Decoupled weight decay, arXiv 1711.05101; `AdamWeightDecayOptimizer` in `optimization.py` of
        google-research/albert.
    """

    def __init__(
        self,
        learning_rate,
        weight_decay: float = 0.01,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        bias_correction: bool = True,
        exclude_from_weight_decay: Iterable[str] | None = ALBERT_EXCLUSIONS,
        global_clipnorm: float | None = None,
        learning_rate_rules: Sequence[tuple[str, float]] | None = None,
        **kwargs: Any,
    ):
        super().__init__(learning_rate, weight_decay=weight_decay, global_clipnorm=global_clipnorm, **kwargs)
        if isinstance(learning_rate, int | float):
            _check_range("learning_rate", learning_rate, 0.0, float("inf"))
        _check_range("weight_decay", weight_decay, 0.0, float("inf"))
        _check_range("beta_1", beta_1, 0.0, 1.0)
        _check_range("beta_2", beta_2, 0.0, 1.0)
        _check_range("epsilon", epsilon, 0.0, float("inf"))
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.bias_correction = bias_correction
        self._decay_exclusions = check_patterns("exclude_from_weight_decay", exclude_from_weight_decay)
        self._rate_rules = check_factors("learning_rate_rules", learning_rate_rules)

    def build(self, variables):
        """Creates the moments of each variable and applies the rules to its path."""
        if self.built:
            return
        if self.use_ema:
            _check_precise(variables)
        super().build(variables)
        if self.use_ema:
            # Keras initialises averages at the first step, which a loss scale may skip.
            for variable, average in zip(variables, moving_averages(self)):
                average.assign(ops.convert_to_tensor(variable))
        self._momentums, self._velocities = self.add_optimizer_variables(variables, ["momentum", "velocity"])
        self._paths = paths = tuple(path_of(variable) for variable in variables)
        self._is_decayed = tuple(not is_excluded(path, self._decay_exclusions) for path in paths)
        factors = assign_rules(self._rate_rules, paths, "learning_rate_rules") if self._rate_rules else {}
        self._rate_factors = tuple(factors.get(path, 1.0) for path in paths)

    def add_variable(self, shape, initializer="zeros", dtype=None, **kwargs):
        """A slot of at least float32, because updates of bfloat16 moments would be rounded away."""
        return super().add_variable(shape, initializer, dtype=_at_least_float32(dtype), **kwargs)

    def apply(self, grads, trainable_variables=None):
        """Updates the variables. Gradients may be sparse, of low precision, or None."""
        grads = [gradient if gradient is None else _dense(gradient) for gradient in grads]
        return super().apply(grads, trainable_variables)

    def update_step(self, gradient, variable, learning_rate):
        """One step of one variable: Adam's scaling, decay, adaptation, learning rate."""
        index = index_of(self, variable)
        gradient = ops.cast(_dense(gradient), self._momentums[index].dtype)
        weights = ops.cast(ops.convert_to_tensor(variable), gradient.dtype)
        update = self._adam_update(gradient, index)
        update = self._add_decay(update, weights, index)
        update = self._adapt(update, weights, index)
        rate = ops.cast(learning_rate, update.dtype) * self._rate_factors[index]
        # Unlike `assign_sub`, this rounds a low-precision variable only once.
        self.assign(variable, weights - rate * update)

    def _adam_update(self, gradient, index: int):
        """Updates the moments and returns m / (sqrt(v) + epsilon)."""
        momentum, velocity = self._momentums[index], self._velocities[index]
        m = ops.add(ops.multiply(momentum, self.beta_1), ops.multiply(gradient, 1 - self.beta_1))
        v = ops.add(ops.multiply(velocity, self.beta_2), ops.multiply(ops.square(gradient), 1 - self.beta_2))
        self.assign(momentum, m)
        self.assign(velocity, v)
        if not self.bias_correction:
            return m / (ops.sqrt(v) + self.epsilon)
        # (m / c1) / (sqrt(v / c2) + epsilon), rearranged so that corrections are scalars: two passes fewer.
        step = ops.cast(self.iterations + 1, m.dtype)
        correction_1 = 1 - ops.power(ops.cast(self.beta_1, m.dtype), step)
        correction_2 = ops.sqrt(1 - ops.power(ops.cast(self.beta_2, m.dtype), step))
        return m * (correction_2 / correction_1) / (ops.sqrt(v) + self.epsilon * correction_2)

    def _add_decay(self, update, weights, index: int):
        return update + self.weight_decay * weights if self.weight_decay and self._is_decayed[index] else update

    def _adapt(self, update, weights, index: int):
        """Hook for subclasses to scale the update."""
        del weights, index
        return update

    def _apply_weight_decay(self, variables):
        """Disables Keras' decay, which precedes the step; here it is part of the update."""

    def exclude_from_weight_decay(self, var_list=None, var_names=None):
        """Not supported, because Keras' method only searches the last component of a path; raises ValueError."""
        raise ValueError(
            "`exclude_from_weight_decay` is an argument of the constructor here. Received: a call with "
            f"var_list={var_list}, var_names={var_names}; pass regular expressions to the constructor."
        )

    def get_config(self):
        return {
            **super().get_config(),
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
            "bias_correction": self.bias_correction,
            "exclude_from_weight_decay": as_list(self._decay_exclusions),
            "learning_rate_rules": self._rate_rules and [list(rule) for rule in self._rate_rules],
        }


def path_of(variable) -> str:
    """The path of a Keras variable, or the name of a plain TensorFlow one."""
    return getattr(variable, "path", None) or variable.name.split(":")[0]


def as_list(patterns: tuple[str, ...] | None) -> list[str] | None:
    """Patterns as JSON can store them; None stays None."""
    return None if patterns is None else list(patterns)


def _at_least_float32(dtype) -> str:
    return keras.backend.result_type(keras.backend.standardize_dtype(dtype), "float32")


def _check_precise(variables) -> None:
    for variable in variables:
        dtype = keras.backend.standardize_dtype(variable.dtype)
        if dtype != _at_least_float32(dtype):
            raise ValueError(
                f"`use_ema` must be False unless variables are float32 or wider. Received: {path_of(variable)} with "
                f"dtype {dtype}; use the policy 'mixed_{dtype}', which keeps variables in float32."
            )


def _dense(gradient):
    if hasattr(gradient, "dense_shape"):  # TensorFlow's IndexedSlices, the gradient of a lookup
        gradient = ops.segment_sum(gradient.values, gradient.indices, num_segments=gradient.shape[0])
    gradient = ops.convert_to_tensor(gradient)
    return ops.cast(gradient, _at_least_float32(gradient.dtype))


def _check_range(name: str, value: float, low: float, high: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value < high:
        raise ValueError(f"`{name}` must be a number in [{low:g}, {high:g}). Received: {name}={value!r}.")
