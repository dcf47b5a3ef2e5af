"""Base class of the objects that are exported."""

from collections.abc import Callable

import tensorflow as tf

from albert_tf.export.folder import ModelFolder

# Texts on which an export is compared with its Keras model.
SAMPLES = ("A first text.", "", "Another text, longer than the first, with 1,000 words: 둘.", "word " * 600)


class ServedModel(tf.Module):
    """Weights and tokenizer; a subclass defines the signatures."""

    def __init__(self, loaded: ModelFolder):
        super().__init__()
        self._loaded = loaded  # not tracked, so that only weights are saved, not the Keras model
        self.weights = [variable.value for variable in loaded.model.weights]
        self.tokenizer = loaded.tokenizer.as_layer(max_length=loaded.max_length)


def traced(function: Callable, **specs: tf.TensorSpec):
    """A concrete function with named inputs."""
    named = {name: tf.TensorSpec(spec.shape, spec.dtype, name=name) for name, spec in specs.items()}
    return tf.function(function).get_concrete_function(**named)
