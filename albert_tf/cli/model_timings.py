"""Times a model on this machine: `albert-tf bench`.

Letters: B batch, L sequence.
"""

import dataclasses
import statistics
import time
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.costs import Width, encoder_flops
from albert_tf.inference.progress import counted
from albert_tf.layers.kernels import fastest_for_inference, inference_with
from albert_tf.models import AlbertForSequenceClassification
from albert_tf.optimizers import AdamW


@dataclasses.dataclass(frozen=True)
class Timing:
    """The times of one kind of work.

    Attributes:
        work: what was timed.
        seconds: of each call, in turns with the other kinds.
        tokens: of one call.
        flops: floating point operations of its matrix products.
    """

    work: str
    seconds: tuple[float, ...]
    tokens: int
    flops: int

    @property
    def median(self) -> float:
        """Seconds."""
        return statistics.median(self.seconds)


def time_model(
    config: AlbertConfig, batch_size: int, sequence_length: int, dtype: Width = "float32", rounds: int = 9
) -> list[Timing]:
    """Times inference and a training step of a classifier with random weights, beside its matrix products alone.

    Rows are full and dropout is as in the config. Nothing else should run meanwhile.

    Args:
        config: AlbertConfig.
        batch_size: B.
        sequence_length: L.
        dtype: `"bfloat16"` is Keras' `mixed_bfloat16`.
        rounds: number of timed calls of each kind, after two that are not timed.

    Returns:
        Timings of inference and a training step, each followed by that of its matrix products.
    """
    infer, step = _make_calls(config, batch_size, sequence_length, dtype)
    shape = (batch_size, sequence_length)
    flops, tokens = batch_size * encoder_flops(config, sequence_length), batch_size * sequence_length
    calls: list[tuple[str, Callable[[], object], int]] = [
        ("inference", infer, flops),
        ("  products alone", matrix_products(config, shape, dtype), flops),
        ("training step", step, 3 * flops),
        ("  products alone", matrix_products(config, shape, dtype, training=True), 3 * flops),
    ]
    seconds: list[list[float]] = [[] for _ in calls]
    for round_number in counted(range(rounds + 2), rounds + 2, "rounds", size=lambda _: 1):
        for measured, (_, call, _) in zip(seconds, calls, strict=True):
            begun = time.perf_counter()
            call()
            if round_number >= 2:
                measured.append(time.perf_counter() - begun)
    return [
        Timing(work, tuple(measured), tokens, flops) for measured, (work, _, flops) in zip(seconds, calls, strict=True)
    ]


def _make_calls(
    config: AlbertConfig, batch_size: int, sequence_length: int, dtype: Width
) -> tuple[Callable[[], object], Callable[[], object]]:
    """Inference and a training step of a classifier with random weights."""
    shape, policy = (batch_size, sequence_length), "float32" if dtype == "float32" else "mixed_bfloat16"
    ids = np.random.default_rng(0).integers(5, config.vocab_size, shape).astype("int32")
    labels = np.arange(batch_size, dtype="int32") % 2
    model = AlbertForSequenceClassification(config, num_labels=2, dtype=policy)
    model.compile(AdamW(1e-5))

    def infer(ids):
        with inference_with(model, fastest_for_inference()):  # as `predict` computes
            return model({"input_ids": ids}, training=False)["logits"]

    inference = tf.function(infer, autograph=False)
    batches = iter(tf.data.Dataset.from_tensors(({"input_ids": ids}, labels)).repeat())
    step = model.make_train_function()
    return lambda: inference(tf.constant(ids)).numpy(), lambda: float(step(batches)["loss"])


def matrix_products(
    config: AlbertConfig, shape: tuple[int, int], dtype: Width, training: bool = False
) -> Callable[[], object]:
    """A call that computes the matrix products of the blocks, which bound every implementation on TensorFlow.

    Args:
        config: AlbertConfig.
        shape: B and L.
        dtype: of the factors.
        training: with the products of both factors' gradients.
    """
    batch, length = shape
    hidden, inner, heads = config.hidden_size, config.intermediate_size, config.num_attention_heads
    kernels = (hidden, 3 * hidden), (hidden, hidden), (hidden, inner), (inner, hidden)
    # Leading axes, then m, k, n of [m, k] x [k, n].
    sizes: list[tuple[tuple[int, ...], int, int, int]] = [((), batch * length, k, n) for k, n in kernels]
    sizes += [((batch, heads), length, config.head_size, length), ((batch, heads), length, length, config.head_size)]
    if training:
        sizes += [(lead, m, n, k) for lead, m, k, n in sizes] + [(lead, k, m, n) for lead, m, k, n in sizes]
    pairs = [
        tuple(tf.cast(tf.random.normal((*lead, *factor)), dtype) for factor in ((m, k), (k, n)))
        for lead, m, k, n in sizes
    ]

    def multiply() -> object:
        product = pairs[0][0]
        for _ in range(config.num_hidden_layers * config.inner_group_num):
            for a, b in pairs:
                product = tf.matmul(a, b)
        return product.numpy()  # the last one; a CPU runs one operation after the other

    return multiply
