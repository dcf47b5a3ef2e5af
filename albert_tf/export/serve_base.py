"""Base class of the objects that are exported.

Letters: B batch, R rows (B, or more if long texts are read in windows), L sequence, N heads.
"""

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from albert_tf.data.finetuning.few_shapes import padded_lengths
from albert_tf.export.checks import SAMPLES, relative_difference
from albert_tf.export.few_shapes import in_few_shapes
from albert_tf.inference.constant_weights import MAX_BYTES, ConstantWeights, num_bytes
from albert_tf.inference.folder import ModelFolder
from albert_tf.inference.network import INPUTS
from albert_tf.layers.kernels import Plain, inference_with, lacks_flash_attention
from albert_tf.layers.kernels.tensorflow_cpu import OneDnn
from albert_tf.layers.kernels.tensorflow_gpu import CuDnnInShapes

# Of longer texts, `attention` returns the part between the first tokens: it grows with the square of their number.
MAX_ATTENTION_TOKENS = 64
# The largest number of rows for which there is cuDNN's attention.
_FLASH_ROWS = 256


@dataclasses.dataclass(frozen=True)
class Form:
    """How the graph of an export computes; attributes are arguments of `export_saved_model`."""

    frozen: bool = False
    xla: bool = False
    flash_attention: bool = False
    attention: bool = False

    @property
    def compiled(self) -> bool:
        """Whether XLA compiles the network."""
        return self.xla or self.flash_attention


class ServedModel(tf.Module):
    """Weights and tokenizer, and the signatures that every model has; a subclass computes the answers.

    Args:
        loaded: the model.
        form: how it computes.

    Attributes:
        text_ranks: rank of the string tensors that `serving_default` takes, by name.
        token_rank: rank of the tensors that `tokens` takes.
        lengths: of the shapes that XLA compiles for texts; none without it.
    """

    text_ranks: Mapping[str, int] = {"text": 1}
    token_rank = 2

    def __init__(self, loaded: ModelFolder, form: Form):
        super().__init__()
        self._settings: Any = loaded.settings
        self._loaded = loaded  # not tracked, so that only weights are saved, not the Keras model
        self._form = form
        self._check_form()
        self.tokenizer = loaded.tokenizer.as_layer(max_length=self._settings.max_length)
        self.weights = [variable.value for variable in loaded.model.weights]
        # A scope for calls of the model, in which the weights of a frozen one are constants that all signatures share.
        self._scope: Callable[[], contextlib.AbstractContextManager] = contextlib.nullcontext
        if form.frozen:
            constants = [(variable, tf.convert_to_tensor(variable.value)) for variable in loaded.model.weights]
            self._scope = lambda: keras.StatelessScope(constants)
            self.weights = []
        self.lengths = padded_lengths(self._settings.max_length) if form.compiled else ()
        self._kernels = self._chosen_kernels()
        self.compute = self._chosen_compute()

    def _check_form(self) -> None:
        """Raises ValueError if the model cannot have this form, or this machine cannot check it."""
        model, form = self._loaded.model, self._form
        if form.attention and self.token_rank != 2:
            raise ValueError(f"`attention` must be False for {type(model).__name__}, which reads several rows at once.")
        if form.attention and model.config.attention != "full":
            raise ValueError("`attention` must be False for block-local attention, which is not between all tokens.")
        if form.frozen and (size := num_bytes(model)) > MAX_BYTES:
            raise ValueError(f"A frozen graph must not be larger than 2 GB. Received: weights of {size:,} bytes.")
        is_half = model.compute_dtype == "bfloat16"
        if form.flash_attention and (lack := lacks_flash_attention() if is_half else "precision='float32'"):
            raise ValueError(f"`flash_attention` needs precision='bfloat16', and a GPU that has it, but {lack}.")

    def _padded_lengths(self) -> list[int]:
        """The lengths of all shapes that are compiled; the signature `tokens` takes longer rows than texts have."""
        return sorted({*self.lengths, *padded_lengths(self._loaded.model.config.max_position_embeddings)})

    def _chosen_kernels(self) -> Plain:
        if self._form.flash_attention:
            rows = [1 << exponent for exponent in range(_FLASH_ROWS.bit_length())]
            return CuDnnInShapes(list(itertools.product(rows, self._padded_lengths())))
        if self._form.xla:
            return CuDnnInShapes()
        if self._form.frozen:  # exact in float32 wherever the graph runs
            return OneDnn(low_precision_logits=self._loaded.model.compute_dtype == "bfloat16")
        return Plain()  # an export also runs on other processors than the one here

    def _chosen_compute(self) -> Callable[[Mapping[str, tf.Tensor]], dict[str, tf.Tensor]]:
        """The network: compiled by XLA, with the weights in its own graph, or as it is."""
        model, pad = self._loaded.model, self._loaded.tokenizer.pad_token_id
        if self._form.compiled:
            compiled = tf.function(self.network, jit_compile=True, autograph=False)
            return lambda inputs: in_few_shapes(compiled, inputs, self._padded_lengths(), pad)
        if not self._form.frozen or model.compute_dtype != "bfloat16":
            return self.network
        weights = ConstantWeights(model)  # which oneDNN packs once

        def compute(inputs):
            with weights():
                return self.network(inputs)

        constant = tf.function(compute, autograph=False)  # once in the file for all signatures with these inputs
        return lambda inputs: constant(inputs)

    def signatures(self) -> dict[str, Any]:
        """The signatures by name."""
        texts = {name: tf.TensorSpec([None] * rank, tf.string) for name, rank in self.text_ranks.items()}
        ids = dict.fromkeys(INPUTS, tf.TensorSpec([None] * self.token_rank, tf.int32))
        encode = tf.function(self.encode, autograph=False)  # traced once for all signatures
        functions = {
            "serving_default": traced(lambda **texts: self.answer(encode(texts), texts), **texts),
            "tokenize": traced(lambda **texts: self.model_inputs(encode(texts)), **texts),
            "tokens": traced(lambda **ids: self.outputs(self._checked(ids)), **ids),
        }
        if self._form.attention:
            functions["attention"] = traced(lambda **texts: self.attention(encode(texts)), **texts)
        model = self._loaded.model
        if hasattr(model, "labels") and getattr(model, "problem", "") != "regression":
            functions["labels"] = traced(lambda: {"labels": tf.constant(model.labels)})
        return functions

    def _checked(self, ids: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """What a client gives for tokens; other numbers, which would give wrong outputs or NaN, are an error."""
        config = self._loaded.model.config
        limits = zip(INPUTS, (config.vocab_size, 2, config.type_vocab_size))
        shape, longest = tf.shape(ids["input_ids"]), config.max_position_embeddings
        with tf.device("/CPU:0"):  # where clients' numbers are
            rules = {
                f"`{name}` must be integers from 0 to {limit - 1}.": (ids[name] >= 0) & (ids[name] < limit)
                for name, limit in limits
            }
            rules |= {
                f"`{name}` must have the shape of `input_ids`.": tf.equal(tf.shape(ids[name]), shape)
                for name in INPUTS[1:]
            }
            rules[f"`input_ids` must have at most {longest} columns."] = shape[-1] <= longest
            checks = [tf.debugging.Assert(tf.reduce_all(holds), [message]) for message, holds in rules.items()]
            with tf.control_dependencies(checks):
                return {name: tf.identity(ids[name]) for name in INPUTS}

    def encode(self, texts: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Tokenizes texts: the model's inputs, and whatever else `answer` needs."""
        return self.tokenizer(tuple(texts.values()) if len(texts) > 1 else texts["text"])

    @staticmethod
    def model_inputs(encoded: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """The model's inputs among what `encode` returns."""
        return {name: encoded[name] for name in INPUTS}

    def network(self, inputs: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """The Keras model's outputs."""
        return self._loaded.model(inputs, training=False)

    def outputs(self, inputs: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """The model's numbers for tokens."""
        with self._scope(), inference_with(self._loaded.model, self._kernels):
            return self.compute(inputs)

    def answer(self, encoded: Mapping[str, tf.Tensor], texts: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """The outputs of `serving_default`."""
        return self.outputs(self.model_inputs(encoded))

    def attention(self, encoded: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """The first tokens of each text and the attention between them, computed with all tokens; padding is 0."""
        inputs = self.model_inputs(encoded)
        with self._scope():
            layers = self._loaded.model.encoder(inputs, training=False, output_attentions=True)["attentions"]
        size = MAX_ATTENTION_TOKENS
        ids, is_token = (inputs[name][:, :size] for name in INPUTS[:2])
        probabilities = tf.stack([layer[:, :, :size, :size] for layer in layers], axis=1)  # [R, layers, N, L, L]
        probabilities *= tf.cast(is_token, probabilities.dtype)[:, tf.newaxis, tf.newaxis, :, tf.newaxis]
        tokens = tf.where(is_token > 0, tf.gather(tf.constant(self._loaded.tokenizer.pieces), ids), "")
        outputs = {"tokens": tokens, "attention": tf.cast(probabilities, tf.float32)}
        samples = encoded.get("overflow_to_sample_mapping")
        if samples is None:
            return outputs
        is_first = tf.concat([[True], samples[1:] > samples[:-1]], axis=0)  # the first window of each text
        return {name: tf.boolean_mask(values, is_first) for name, values in outputs.items()}

    def samples(self) -> dict[str, Any]:
        """Texts to compare the export with the Keras model, for `serving_default`."""
        return {name: SAMPLES[:: 1 - 2 * index] for index, name in enumerate(self.text_ranks)}

    def expected(self, texts: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The numbers of the Keras model's answers, by name of the output of `serving_default`."""
        answers = self._loaded.text_task.arrays(self._loaded.predict(*texts.values()))
        return {name: array for name, array in answers.items() if array.dtype != object}

    def largest_rounding(self, restored: Any) -> float:
        """Maximum difference between outputs for tokens of this model and of the same in bfloat16.

        In units of the largest number of an output if that is above 1. Answers are not compared: where two spans have
        almost the same score, the other one may be chosen.
        """
        texts = {name: tf.constant(text) for name, text in self.samples().items()}
        restored.signatures["serving_default"](**texts)
        tokens = restored.signatures["tokenize"](**texts)
        computed = restored.signatures["tokens"](**tokens)
        differences = [
            relative_difference(name, computed[name].numpy(), tensor.numpy())
            for name, tensor in self.outputs(tokens).items()
            if tensor.dtype.is_floating
        ]
        return float(np.max(differences))  # NaN if any is

    def largest_difference(self, restored: Any) -> float:
        """Maximum absolute difference between numbers of the Keras model and the SavedModel."""
        texts = self.samples()
        outputs = restored.signatures["serving_default"](**{name: tf.constant(text) for name, text in texts.items()})
        expected = self.expected(texts)
        if any(outputs[name].shape != array.shape for name, array in expected.items()):
            return float("inf")  # another number of entities
        return max(float(np.abs(outputs[name].numpy() - array).max()) for name, array in expected.items())


def traced(function: Callable, **specs: tf.TensorSpec):
    """A concrete function with named inputs."""
    named = {name: tf.TensorSpec(spec.shape, spec.dtype, name=name) for name, spec in specs.items()}
    return tf.function(function, autograph=False).get_concrete_function(**named)
