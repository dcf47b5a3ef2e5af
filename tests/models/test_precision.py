"""Proves the documented distances of bfloat16 and XLA from float32, and what stays float32 in bfloat16."""

import pathlib
import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from albert_tf import AlbertEncoder, AlbertForPreTraining
from albert_tf.keras_internals import layers_within
from albert_tf.layers import mask_to_bias
from albert_tf.models.losses import cross_entropy, weighted_mean

from .precision import distances, golden_cases
from .small import CONFIG, make_pretraining_batch

DOCUMENT = pathlib.Path(__file__).parents[2] / "docs" / "numbers.md"
ROW = re.compile(r"^\| (\S.*?) \| (\w+) \| (\d\.\de[+-]\d\d) \| (\d\.\de[+-]\d\d) \|$", re.MULTILINE)
DOCUMENTED = {(model, output): float(half) for model, output, half, _ in ROW.findall(DOCUMENT.read_text())}
BASE = "base_v2, AlbertForPreTraining"  # too large for a test


@pytest.fixture(scope="module")
def cases():
    return golden_cases()


def test_the_document_has_every_model(cases):
    assert {model for model, _ in DOCUMENTED} == {*cases, BASE}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", sorted({model for model, _ in DOCUMENTED} - {BASE}))
def test_documented_distances(name, cases):
    bounds = {output: bound for (model, output), bound in DOCUMENTED.items() if model == name}
    found = distances(cases[name])
    assert list(found) == list(bounds)
    for output, (bfloat16, xla) in found.items():
        # A loss is a mean of errors of both signs, so a small one is luck.
        assert bfloat16 <= (0.01 if output == "loss" else 1.5 * bounds[output]), output
        assert xla <= 5e-6, output
    assert any(bfloat16 > 1e-4 for bfloat16, _ in found.values()), "bfloat16 was not used"


@pytest.fixture
def half():
    return AlbertForPreTraining(CONFIG, dtype="mixed_bfloat16")


def test_statistics_of_layer_normalisation(half):
    norms = [layer for layer in layers_within(half) if isinstance(layer, keras.layers.LayerNormalization)]
    assert len(norms) == 4
    for norm in norms:
        width = norm.gamma.shape[0]
        # Steps of bfloat16 at 1000 are 4: a mean or a variance rounded to it would be off by whole deviations.
        rank = len(norm.get_build_config()["input_shape"])
        x = 1000.0 + 4.0 * np.random.default_rng(0).integers(-2, 3, (*[1] * (rank - 2), 50, width))
        expected = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + norm.epsilon)
        found = norm(ops.cast(x, "bfloat16"))
        assert found.dtype == "bfloat16"
        np.testing.assert_allclose(ops.convert_to_numpy(found).astype("float64"), expected, atol=1e-3, rtol=2**-8)


def test_sums_of_softmax():
    config = CONFIG.replace(max_position_embeddings=600)
    block = AlbertEncoder(config, dtype="mixed_bfloat16").attention_blocks[0][0]
    block.query.kernel.assign(np.zeros((16, 16)))
    hidden = ops.cast(np.random.default_rng(0).standard_normal((1, 512, 16)), "bfloat16")
    probabilities = block(hidden, mask_to_bias(np.ones((1, 512)))).probabilities
    # Ones added up in bfloat16 stay at 256.
    np.testing.assert_array_equal(ops.convert_to_numpy(ops.cast(probabilities, "float32")), 1 / 512)


@pytest.mark.parametrize("name", ["AlbertForPreTraining", "AlbertForQuestionAnswering, beam"])
def test_every_softmax_of_the_graph_is_float32(name, cases):
    case = cases[name]
    model = type(case.model).from_config({**case.model.get_config(), "dtype": "mixed_bfloat16"})

    @tf.function
    def loss(inputs, labels):
        return model.compute_loss(y=labels, y_pred=model(inputs))

    operations = loss.get_concrete_function(dict(case.inputs), case.labels).graph.get_operations()
    found = [(operation.type, operation.get_attr("T")) for operation in operations if "Softmax" in operation.type]
    assert {kind for kind, _ in found} >= {"Softmax", "SparseSoftmaxCrossEntropyWithLogits"}
    assert {dtype for _, dtype in found} == {tf.float32}
    assert tf.bfloat16 in {operation.get_attr("T") for operation in operations if "MatMul" in operation.type}


def test_losses(half):
    inputs, labels = make_pretraining_batch()
    outputs = half(inputs)
    assert {name: ops.dtype(value) for name, value in outputs.items()} == dict.fromkeys(outputs, "float32")
    terms = {**half.loss_terms(labels, outputs), **half.metric_terms(labels, outputs)}
    assert {ops.dtype(part) for term in terms.values() for part in (term.total, term.weight)} == {"float32"}
    logits = np.random.default_rng(0).standard_normal((700, 5)).astype("float32") + 1000.0
    classes = np.zeros(700, "int32")
    exact = logits.astype("float64") - 1000.0
    expected = np.mean(np.log(np.exp(exact).sum(-1)) - exact[:, 0])
    found = weighted_mean(cross_entropy(classes, logits)).mean()
    np.testing.assert_allclose(ops.convert_to_numpy(found), expected, rtol=1e-5)


@pytest.mark.parametrize("kind", [AlbertEncoder, AlbertForPreTraining])
def test_a_map_of_policies_is_saved(kind, tmp_path):
    policies = keras.dtype_policies.DTypePolicyMap("mixed_bfloat16")
    policies[".*pooler"] = keras.dtype_policies.get("float32")
    model = kind(CONFIG, dtype=policies)
    inputs = {"input_ids": np.full((2, 5), 7)}
    expected = model(inputs)
    model.save(tmp_path / "model.keras")
    for again in (keras.saving.load_model(tmp_path / "model.keras"), kind.from_config(model.get_config())):
        again.set_weights(model.get_weights())
        assert getattr(again, "encoder", again).pooler.compute_dtype == "float32"
        for name, array in again(inputs).items():
            np.testing.assert_array_equal(array, expected[name], err_msg=name)
