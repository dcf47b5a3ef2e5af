"""A Python function of tensors becomes a signature with named inputs."""

from collections.abc import Callable

import tensorflow as tf


def traced(function: Callable, **specs: tf.TensorSpec):
    """The concrete function whose inputs have these names, kinds and shapes."""
    named = {name: tf.TensorSpec(spec.shape, spec.dtype, name=name) for name, spec in specs.items()}
    return tf.function(function).get_concrete_function(**named)
