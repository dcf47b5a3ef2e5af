"""What all served models have in common: weights and tokenizer that are saved, and functions that become signatures."""

from collections.abc import Callable

import tensorflow as tf

from albert_tf.export.folder import ModelFolder


class ServedModel(tf.Module):
    """What a SavedModel consists of; a subclass says what its signatures are.

    Args:
        loaded: the model with its tokenizer.
    """

    def __init__(self, loaded: ModelFolder):
        super().__init__()
        self._loaded = loaded  # a plain object: the Keras model in it is not saved, only its weights are
        self.weights = [variable.value for variable in loaded.model.weights]
        self.tokenizer = loaded.tokenizer.as_layer(max_length=loaded.max_length)


def traced(function: Callable, **specs: tf.TensorSpec):
    """The concrete function whose inputs have these names, kinds and shapes."""
    named = {name: tf.TensorSpec(spec.shape, spec.dtype, name=name) for name, spec in specs.items()}
    return tf.function(function).get_concrete_function(**named)
