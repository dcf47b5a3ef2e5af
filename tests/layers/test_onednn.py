"""Proves that the forms for oneDNN compute what the plain ones do, and where they are used."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertConfig, AlbertForSequenceClassification
from albert_tf.inference.constant_weights import ConstantWeights
from albert_tf.inference.keras_network import BATCHES_BEFORE_CONSTANTS, KerasNetwork
from albert_tf.layers.kernels import Plain, has_onednn, inference_with
from albert_tf.layers.kernels.tensorflow_cpu import OneDnn, normalize

CONFIG = AlbertConfig.from_preset("tiny").replace(num_hidden_layers=3)


def ragged(rows, length):
    chance = np.random.default_rng(0)
    mask = (np.arange(length) < chance.integers(1, length + 1, [rows, 1])).astype("int32")
    ids = chance.integers(5, CONFIG.vocab_size, [rows, length]).astype("int32") * mask
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
    model = AlbertForSequenceClassification(CONFIG, num_labels=3, dtype=policy)
    inputs = ragged(*shape)
    plain, fused = (graph_of(model, kernels)(inputs).numpy() for kernels in (Plain(), OneDnn()))
    np.testing.assert_allclose(fused, plain, atol=distance, rtol=0)


def test_weights_are_constants_until_they_change():
    model = AlbertForSequenceClassification(CONFIG, num_labels=3, dtype="mixed_bfloat16")
    network, inputs = KerasNetwork(model, traces_first=True), ragged(5, 17)
    first = network.compute(inputs)["logits"]
    for _ in range(BATCHES_BEFORE_CONSTANTS):
        found = network.compute(inputs)["logits"]
    assert (network._constants is not None) == has_onednn()
    np.testing.assert_allclose(found, first, atol=0.02, rtol=0)
    for dtype in ("float32", "bfloat16"):  # of the variables
        own = AlbertForSequenceClassification(CONFIG, num_labels=3, dtype=dtype)
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
    model = AlbertForSequenceClassification(CONFIG, num_labels=3)
    network = KerasNetwork(model, traces_first=True)
    network.compute(ragged(2, 9))
    (graph,) = network._graphs.values()
    kinds = [operation.type for operation in graph.get_concrete_function().graph.get_operations()]
    assert kinds.count("FusedBatchNormV3") == (2 * CONFIG.num_hidden_layers if has_onednn() else 0)
    step = tf.function(lambda inputs: model(inputs, training=False)["logits"], autograph=False)
    kinds = [operation.type for operation in step.get_concrete_function(ragged(2, 9)).graph.get_operations()]
    assert "FusedBatchNormV3" not in kinds
