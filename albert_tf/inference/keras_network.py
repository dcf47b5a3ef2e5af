"""A Keras model that computes batches of any shape."""

import collections
import contextlib
import functools
from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np

from albert_tf.inference.constant_weights import ConstantWeights, are_fast
from albert_tf.inference.network import INPUTS, P_MASK
from albert_tf.inference.progress import show_compiling
from albert_tf.layers.kernels import fastest_for_inference, inference_with, runs_on
from albert_tf.models import AlbertForMaskedLM, AlbertForPreTraining
from albert_tf.models.base import AlbertBase

_Graphs = dict[tuple[str, ...], Callable[..., dict[str, Any]]]
# After so many batches in a graph, one with constant weights is made, whose making takes the time of about 20.
BATCHES_BEFORE_CONSTANTS = 16
# After so many batches of one shape on an accelerator, XLA compiles a program for it, whose making takes seconds: the
# time of hundreds of batches of 32 short texts.
BATCHES_BEFORE_XLA = 64


class KerasNetwork:
    """Computes a model's outputs with its current weights, without dropout.

    Args:
        model: a task model.
        traces_first: whether on TensorFlow the first batch is already computed in a graph. Tracing takes the time of
            about four texts; a graph is 1.5 to 10 times as fast, as it fuses operations. With False only the second
            batch traces it, which is faster for a single one.
        few_shapes: whether batches have few shapes, so that a program is compiled for each: on TensorFlow for those
            that many batches have, on JAX for all.

    In bfloat16 on CPUs with oneDNN, the weights become constants after some batches, until they change.
    """

    name = "keras"

    def __init__(self, model: AlbertBase, traces_first: bool = False, few_shapes: bool = False):
        self.model, self._traces_first, self._few_shapes = model, traces_first, few_shapes
        self._num_batches_of: collections.Counter[tuple[tuple[str, tuple[int, ...]], ...]] = collections.Counter()
        self._graphs: _Graphs = {}
        self._constants: tuple[ConstantWeights, _Graphs] | None = None
        self._num_batches = 0
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
        backend = keras.backend.backend()
        call: Any = self._call
        if backend == "tensorflow":
            call = self._call_in_graph
        elif backend == "jax" and self._few_shapes:
            call = self.model.predict_on_batch
        outputs: dict[str, Any] = call(inputs)
        return {self._names.get(name, name): keras.ops.convert_to_numpy(value) for name, value in outputs.items()}

    def _call(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        return self.model(inputs, training=False)

    def _call_fused(
        self, scope: Callable[[], contextlib.AbstractContextManager], inputs: Mapping[str, Any]
    ) -> dict[str, Any]:
        with scope(), inference_with(self.model, fastest_for_inference()):
            return self._call(inputs)

    def _call_in_graph(self, inputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Calls the model in the graph for inputs of these names, whatever their shape."""
        import tensorflow as tf

        tensors, names = {name: tf.convert_to_tensor(array) for name, array in inputs.items()}, tuple(sorted(inputs))
        if self._few_shapes and not runs_on("tpu"):  # whose programs run within a strategy
            shapes = tuple((name, inputs[name].shape) for name in names)
            self._num_batches_of[shapes] += 1
            if self._num_batches_of[shapes] == BATCHES_BEFORE_XLA + 1:
                show_compiling(inputs["input_ids"].shape)
            if self._num_batches_of[shapes] > BATCHES_BEFORE_XLA:
                return self._compiled(tensors)
        scope, graphs = self._current_constants() or (contextlib.nullcontext, self._graphs)
        is_first = graphs is self._graphs and names not in graphs
        if names not in graphs:
            shapes = {name: tf.TensorSpec([None] * array.ndim, array.dtype) for name, array in inputs.items()}
            call = functools.partial(self._call_fused, scope)
            graphs[names] = tf.function(call, autograph=False, input_signature=[shapes])
        return self._call(tensors) if is_first and not self._traces_first else graphs[names](tensors)

    @functools.cached_property
    def _compiled(self) -> Callable[..., dict[str, Any]]:
        """Calls the model in a program that is traced and compiled for each shape."""
        import tensorflow as tf

        call = functools.partial(self._call_fused, contextlib.nullcontext)
        return tf.function(call, autograph=False, jit_compile=True)

    def _current_constants(self) -> tuple[ConstantWeights, _Graphs] | None:
        """The weights as constants with graphs of them, if this pays; renewed some batches after they changed."""
        current = self._constants
        if current and not current[0].are_current():
            current, self._num_batches = None, 0
        self._num_batches += 1
        if self._num_batches > BATCHES_BEFORE_CONSTANTS and not current and are_fast(self.model):
            current = ConstantWeights(self.model), {}
        self._constants = current
        return current
