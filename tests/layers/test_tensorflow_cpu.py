"""Programs and operations of a training step, and forms for oneDNN: what the plain ones compute, and where."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

import albert_tf
from albert_tf import AlbertForSequenceClassification
from albert_tf.inference.constant_weights import ConstantWeights
from albert_tf.inference.keras_network import BATCHES_BEFORE_CONSTANTS, KerasNetwork
from albert_tf.layers import AttentionBlock, FeedForwardBlock, mask_to_bias
from albert_tf.layers.kernels import Plain, has_onednn, inference_with, tensorflow_cpu
from albert_tf.layers.kernels.tensorflow_cpu import OneDnn, Programs, normalize
from tests.parameters import first_of

TINY = albert_tf.AlbertConfig.from_preset("tiny").replace(num_hidden_layers=3)
CONFIG = TINY.replace(hidden_size=64, intermediate_size=256, num_hidden_layers=1)
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


@pytest.mark.parametrize(("kind", "length", "dropout", "dtype", "tolerance"), first_of(CASES, count=4))
def test_they_give_the_values_and_gradients_of_the_plain_layer(length, kind, dropout, dtype, tolerance):
    plain = values_and_gradients(kind, Plain(), dtype, dropout, length)
    fast = values_and_gradients(kind, Programs(), dtype, dropout, length)
    assert sum(np.abs(array).max() > 0.1 for array in plain.values()) >= 5
    for name, array in plain.items():
        scale = max(np.abs(array).max(), 0.1)  # the key's bias has no gradient but rounding
        np.testing.assert_allclose(fast[name], array, rtol=0, atol=tolerance * scale, err_msg=name)


@pytest.mark.parametrize(
    ("way", "length", "used"),
    first_of(
        [
            ({}, 8, {"add_and_normalize", "bias_gelu", "_norm", "_gelu"}),
            ({}, None, {"add_and_normalize", "bias_gelu"}),
            ({"run_eagerly": True}, 8, {"add_and_normalize", "bias_gelu"}),
            ({"jit_compile": True}, 8, set()),
        ]
    ),
)
def test_they_are_used_in_fit_and_are_programs_where_the_shape_is_fixed(monkeypatch, way, length, used):
    calls = set()
    for name in ("add_and_normalize", "bias_gelu", "_norm", "_gelu"):
        function = getattr(tensorflow_cpu, name)
        noting = functools.partial(lambda name, function, *given: calls.add(name) or function(*given), name, function)
        monkeypatch.setattr(tensorflow_cpu, name, noting)
    model = AlbertForSequenceClassification(CONFIG, num_labels=2)
    model.compile("sgd", **way)
    spec = {"input_ids": tf.TensorSpec([4, length], tf.int32)}, tf.TensorSpec([4], tf.int32)
    batch = {"input_ids": np.full([4, 8], 9, "int32")}, np.array([0, 1, 1, 0], "int32")
    dataset = tf.data.Dataset.from_generator(lambda: iter([batch]), output_signature=spec)
    model.fit(dataset.apply(tf.data.experimental.assert_cardinality(1)), shuffle=False, verbose=0)
    assert calls == used
    calls.clear()
    model.predict(batch[0], verbose=0)
    assert not calls


# === oneDNN ===


def ragged(rows, length):
    chance = np.random.default_rng(0)
    mask = (np.arange(length) < chance.integers(1, length + 1, [rows, 1])).astype("int32")
    ids = chance.integers(5, TINY.vocab_size, [rows, length]).astype("int32") * mask
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}


def graph_of(model, kernels):
    @tf.function(autograph=False)
    def call(inputs):
        with inference_with(model, kernels):
            return model(inputs, training=False)["logits"]

    return call


@pytest.mark.parametrize(("dtype", "distance", "epsilon"), [("float32", 1e-6, 1e-12), ("bfloat16", 0.04, 1e-5)])
def test_it_is_keras_layer_normalisation(dtype, distance, epsilon):
    chance = np.random.default_rng(0)
    layer = keras.layers.LayerNormalization(
        epsilon=epsilon, dtype="float32" if dtype == "float32" else "mixed_bfloat16"
    )
    layer.build([None, 48])
    layer.gamma.assign(chance.normal(1, 0.3, 48))
    layer.beta.assign(chance.normal(0, 0.3, 48))
    for rows in (1, 7, 130):
        x = tf.cast(chance.normal(1, 3, [rows, 48]), dtype)
        found = tf.function(lambda x: normalize(x, layer))(x)
        np.testing.assert_allclose(tf.cast(found, "float32"), tf.cast(layer(x), "float32"), atol=distance, rtol=0)


@pytest.mark.parametrize(
    ("policy", "distance", "shape"), [("float32", 2e-6, (6, 33)), ("mixed_bfloat16", 0.02, (1, 9))]
)
def test_models_have_the_same_outputs(policy, distance, shape):
    model = AlbertForSequenceClassification(TINY, num_labels=3, dtype=policy)
    inputs = ragged(*shape)
    plain, fused = (graph_of(model, kernels)(inputs).numpy() for kernels in (Plain(), OneDnn()))
    np.testing.assert_allclose(fused, plain, atol=distance, rtol=0)


def test_weights_are_constants_until_they_change():
    model = AlbertForSequenceClassification(TINY, num_labels=3, dtype="mixed_bfloat16")
    network, inputs = KerasNetwork(model, traces_first=True), ragged(5, 17)
    first = network.compute(inputs)["logits"]
    for _ in range(BATCHES_BEFORE_CONSTANTS):
        found = network.compute(inputs)["logits"]
    assert (network._constants is not None) == has_onednn()
    np.testing.assert_allclose(found, first, atol=0.02, rtol=0)
    for dtype in ("float32", "bfloat16"):  # of the variables
        own = AlbertForSequenceClassification(TINY, num_labels=3, dtype=dtype)
        weights = ConstantWeights(own)
        assert weights.are_current()
        own.set_weights(own.get_weights())
        assert weights.are_current()
        own.classifier.bias.assign(own.classifier.bias + 1)
        assert not weights.are_current()
    model.compile("sgd", run_eagerly=True)
    model.fit(inputs, np.arange(5) % 3, verbose=0)
    changed = network.compute(inputs)["logits"]
    np.testing.assert_allclose(changed, model.predict_on_batch(inputs)["logits"], atol=0.02, rtol=0)
    assert not np.array_equal(changed, found)


def test_predictions_use_it_where_it_is_fast():
    model = AlbertForSequenceClassification(TINY, num_labels=3)
    network = KerasNetwork(model, traces_first=True)
    network.compute(ragged(2, 9))
    (graph,) = network._graphs.values()
    kinds = [operation.type for operation in graph.get_concrete_function().graph.get_operations()]
    assert kinds.count("FusedBatchNormV3") == (2 * TINY.num_hidden_layers if has_onednn() else 0)
    step = tf.function(lambda inputs: model(inputs, training=False)["logits"], autograph=False)
    kinds = [operation.type for operation in step.get_concrete_function(ragged(2, 9)).graph.get_operations()]
    assert "FusedBatchNormV3" not in kinds
