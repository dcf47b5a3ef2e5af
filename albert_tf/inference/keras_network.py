"""A Keras model that computes batches of any shape."""

from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np

from albert_tf.inference.network import INPUTS, P_MASK
from albert_tf.layers.fused_inference import fast_forms, fused_inference
from albert_tf.models import AlbertForMaskedLM, AlbertForPreTraining
from albert_tf.models.base import AlbertBase


class KerasNetwork:
    """Computes a model's outputs with its current weights, without dropout.

    Args:
        model: a task model.
        traces_first: whether on TensorFlow the first batch is already computed in a graph. Tracing takes the time of
            about four texts; a graph is 1.5 to 10 times as fast, as it fuses operations. With False only the second
            batch traces it, which is faster for a single one.
    """

    name = "keras"

    def __init__(self, model: AlbertBase, traces_first: bool = False):
        self.model, self._traces_first = model, traces_first
        self._graphs: dict[tuple[str, ...], Callable[..., dict[str, Any]]] = {}
        takes_positions = isinstance(model, AlbertForMaskedLM | AlbertForPreTraining)
        others = {P_MASK: getattr(model, "head", "") == "beam", "masked_lm_positions": takes_positions}
        self._inputs = (*INPUTS, *(name for name, is_taken in others.items() if is_taken))
        # A masked-LM model has one output, whose name does not say of what.
        self._names = {"logits": "masked_lm_logits"} if isinstance(model, AlbertForMaskedLM) else {}

    @property
    def precision(self) -> str:
        """See `Network.precision`."""
        return self.model.compute_dtype

    def compute(self, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """See `Network.compute`."""
        inputs = {name: batch[name] for name in self._inputs if name in batch}
        call = self._call_in_graph if keras.backend.backend() == "tensorflow" else self._call
        return {self._names.get(name, name): keras.ops.convert_to_numpy(value) for name, value in call(inputs).items()}

    def _call(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        return self.model(inputs, training=False)

    def _call_fused(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        with fused_inference(*fast_forms()):
            return self._call(inputs)

    def _call_in_graph(self, inputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Calls the model in the graph for inputs of these names, whatever their shape."""
        import tensorflow as tf

        tensors, names = {name: tf.convert_to_tensor(array) for name, array in inputs.items()}, tuple(sorted(inputs))
        if names not in self._graphs:
            shapes = {name: tf.TensorSpec([None] * array.ndim, array.dtype) for name, array in inputs.items()}
            self._graphs[names] = tf.function(self._call_fused, autograph=False, input_signature=[shapes])
            if not self._traces_first:
                return self._call(tensors)
        return self._graphs[names](tensors)
