"""The programs and operations of a training step against the plain layers."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

import albert_tf
from albert_tf.layers import AttentionBlock, FeedForwardBlock, mask_to_bias
from albert_tf.layers.kernels import Plain, tensorflow_cpu
from albert_tf.layers.kernels.tensorflow_cpu import Programs

CONFIG = albert_tf.AlbertConfig.from_preset("tiny").replace(hidden_size=64, intermediate_size=256, num_hidden_layers=1)
ROWS = np.random.default_rng(1).normal(size=(3, 10, 64))
MASK = np.array([[1] * 10, [1] * 6 + [0] * 4, [1] * 3 + [0] * 7])


def values_and_gradients(kind, kernels: Plain, dtype: str, dropout: float = 0.0, length: int | None = 10):
    """The output of a block, and the gradients of its input and of every variable, as float32 arrays by name."""
    keras.utils.set_random_seed(7)
    changes = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    block = kind(CONFIG.replace(**changes), name="block", dtype=dtype)
    block.build()
    hidden = tf.constant(ROWS, block.compute_dtype)
    is_attention = kind is AttentionBlock
    before, after = ([mask_to_bias(MASK)], [True]) if is_attention else ([], [])

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([3, length, 64], hidden.dtype)])
    def run(hidden):
        with tf.GradientTape() as tape:
            tape.watch(hidden)
            found = block.apply(hidden, *before, block.prepare(kernels, True), kernels, True, *after)
            found = tf.cast(getattr(found, "hidden", found), "float32")
            loss = tf.reduce_sum(found * np.cos(np.arange(64)).astype("float32"))
        return found, tape.gradient(loss, [hidden, *(variable.value for variable in block.trainable_variables)])

    found, gradients = run(hidden)
    names = ["input", *(variable.path for variable in block.trainable_variables)]
    return {"output": found, **{name: tf.cast(array, "float32") for name, array in zip(names, gradients, strict=True)}}


FLOAT32, MIXED, HALF = ("float32", 1e-5), ("mixed_bfloat16", 0.02), ("bfloat16", 0.02)
CASES = [
    *((AttentionBlock, 10, 0.0, *FLOAT32), (AttentionBlock, None, 0.3, *FLOAT32)),
    *((FeedForwardBlock, 10, 0.3, *FLOAT32), (FeedForwardBlock, None, 0.0, *FLOAT32)),
    *((AttentionBlock, 10, 0.3, *MIXED), (FeedForwardBlock, None, 0.3, *MIXED)),
    *((AttentionBlock, None, 0.0, *HALF), (FeedForwardBlock, 10, 0.0, *HALF)),
]


@pytest.mark.parametrize(("kind", "length", "dropout", "dtype", "tolerance"), CASES)
def test_they_give_the_values_and_gradients_of_the_plain_layer(length, kind, dropout, dtype, tolerance):
    plain = values_and_gradients(kind, Plain(), dtype, dropout, length)
    fast = values_and_gradients(kind, Programs(), dtype, dropout, length)
    assert sum(np.abs(array).max() > 0.1 for array in plain.values()) >= 5
    for name, array in plain.items():
        scale = max(np.abs(array).max(), 0.1)  # the key's bias has no gradient but rounding
        np.testing.assert_allclose(fast[name], array, rtol=0, atol=tolerance * scale, err_msg=name)


@pytest.mark.parametrize(
    ("way", "length", "used"),
    [
        ({}, 8, {"add_and_normalize", "bias_gelu", "_norm", "_gelu"}),
        ({}, None, {"add_and_normalize", "bias_gelu"}),
        ({"run_eagerly": True}, 8, {"add_and_normalize", "bias_gelu"}),
        pytest.param({"jit_compile": True}, 8, set(), marks=pytest.mark.exhaustive),
    ],
)
def test_they_are_used_in_fit_and_are_programs_where_the_shape_is_fixed(monkeypatch, way, length, used):
    calls = set()
    for name in ("add_and_normalize", "bias_gelu", "_norm", "_gelu"):
        function = getattr(tensorflow_cpu, name)
        noting = functools.partial(lambda name, function, *given: calls.add(name) or function(*given), name, function)
        monkeypatch.setattr(tensorflow_cpu, name, noting)
    model = albert_tf.AlbertForSequenceClassification(CONFIG, num_labels=2)
    model.compile("sgd", **way)
    spec = {"input_ids": tf.TensorSpec([4, length], tf.int32)}, tf.TensorSpec([4], tf.int32)
    batch = {"input_ids": np.full([4, 8], 9, "int32")}, np.array([0, 1, 1, 0], "int32")
    dataset = tf.data.Dataset.from_generator(lambda: iter([batch]), output_signature=spec)
    model.fit(dataset.apply(tf.data.experimental.assert_cardinality(1)), shuffle=False, verbose=0)
    assert calls == used
    calls.clear()
    model.predict(batch[0], verbose=0)
    assert not calls
