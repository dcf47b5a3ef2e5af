"""Base of the saved objects: weights, tokenizer, and functions that become signatures."""

from collections.abc import Callable

import tensorflow as tf

from albert_tf.export.folder import ModelFolder


class ServedModel(tf.Module):
    """The object that is saved; a subclass defines its signatures.

    Args:
        loaded: the model with its tokenizer.
    """

    def __init__(self, loaded: ModelFolder):
        super().__init__()
        self._loaded = loaded  # a plain object, so that only the weights of its Keras model are saved
        self.weights = [variable.value for variable in loaded.model.weights]
        self.tokenizer = loaded.tokenizer.as_layer(max_length=loaded.max_length)


def traced(function: Callable, **specs: tf.TensorSpec):
    """The concrete function whose inputs have these names, dtypes and shapes."""
    named = {name: tf.TensorSpec(spec.shape, spec.dtype, name=name) for name, spec in specs.items()}
    return tf.function(function).get_concrete_function(**named)
