"""The parts of a step that XLA compiles, and the update of the variables, identical on every replica."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from albert_tf.keras_internals import for_summed_gradients


def sum_over_replicas(values):
    """Sums every tensor of a structure over all replicas."""
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return values
    return context.all_reduce(tf.distribute.ReduceOp.SUM, values)


def has_programs(model) -> bool:
    """Whether a step consists of XLA programs: under a strategy, because sums over replicas cannot be part of one."""
    return model.jit_compile and tf.distribute.has_strategy()


def as_program(model, function: Callable[[], Any]) -> Any:
    """What a function returns, a structure of tensors; where a step consists of programs, the function is one."""
    return _program(function)() if has_programs(model) else function()


def update_as_program(model, variable, function: Callable, *args) -> Any:
    """As `as_program` for a function of `args` that assigns variables of which each device has a copy.

    Args:
        variable: one of these variables.
        function: assigns the same values on every replica and returns tensors by name.
    """
    if not has_programs(model):
        return function(*args)

    def update_copies(strategy, *args):
        return strategy.extended.update(variable, lambda _, *args: _program(function)(*args), args=args, group=False)

    return _of_first_device(tf.distribute.get_replica_context().merge_call(update_copies, args=args))


def _of_first_device(copies):
    """One of the equal copies of each tensor."""
    if isinstance(copies, dict):
        return {name: _of_first_device(values) for name, values in copies.items()}
    return copies[0]


def _program(function: Callable) -> Callable:
    return tf.function(function, autograph=False, jit_compile=True)


def apply_once(model, gradients, variables) -> None:
    """Updates a compiled model's variables with gradients, or None, that have been summed over replicas.

    Variables without a gradient are not changed, as in the reference: neither decay nor moments.
    """
    optimizer = for_summed_gradients(model.optimizer, one_copy=has_programs(model))
    pairs = [(gradient, variable) for gradient, variable in zip(gradients, variables) if gradient is not None]
    step = tf.identity(tf.convert_to_tensor(optimizer.iterations))
    optimizer.apply([gradient for gradient, _ in pairs], [variable for _, variable in pairs])
    if loss_scale(optimizer) is not None:
        # A step skipped because of an overflow counts too: data, logs and checkpoints are numbered by steps.
        optimizer.iterations.assign(step + 1)


def loss_scale(optimizer):
    """The scale of a Keras LossScaleOptimizer; None for other optimizers."""
    return getattr(optimizer, "dynamic_scale", None)
