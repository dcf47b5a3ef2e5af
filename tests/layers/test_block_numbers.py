"""Proves one whole transformer block against float64 NumPy, and the activations against their definitions."""

import math

import numpy as np
import pytest

from albert_tf.config import AlbertConfig
from albert_tf.layers import AttentionBlock, FeedForwardBlock, mask_to_bias
from albert_tf.layers.kernels.activations import ACTIVATIONS

from .check_layer import randomize

B, L, D, N, F = 3, 9, 24, 3, 56
GRID = np.linspace(-6.0, 6.0, 2401)


def oracle_gelu_tanh(x):
    return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


def oracle_gelu_erf(x):
    return 0.5 * x * (1.0 + np.vectorize(math.erf)(x / math.sqrt(2.0)))


def oracle_layer_norm(x, values, name, epsilon=1e-12):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon) * values[f"{name}/gamma"] + values[f"{name}/beta"]


def oracle_dense(x, values, name):
    return x @ values[f"{name}/kernel"] + values[f"{name}/bias"]


def oracle_attention(hidden, mask, values):
    def heads(name):  # [B, N, L, H]
        return oracle_dense(hidden, values, name).reshape(B, L, N, D // N).transpose(0, 2, 1, 3)

    logits = heads("query") @ heads("key").transpose(0, 1, 3, 2) / math.sqrt(D / N)
    logits = logits + (1.0 - mask[:, None, None, :]) * -10000.0
    exponents = np.exp(logits - logits.max(-1, keepdims=True))
    probabilities = exponents / exponents.sum(-1, keepdims=True)
    context = (probabilities @ heads("value")).transpose(0, 2, 1, 3).reshape(B, L, D)
    return oracle_layer_norm(hidden + oracle_dense(context, values, "output"), values, "layer_norm"), probabilities


def oracle_feed_forward(hidden, values):
    inner = oracle_gelu_tanh(oracle_dense(hidden, values, "intermediate"))
    return oracle_layer_norm(hidden + oracle_dense(inner, values, "output"), values, "layer_norm")


def values_of(layer):
    """Every variable in float64 by its path below the layer."""
    return {v.path.split("/", 1)[1]: np.asarray(v, "float64") for v in layer.weights}


@pytest.fixture
def block():
    config = AlbertConfig(hidden_size=D, num_attention_heads=N, intermediate_size=F)
    layers = AttentionBlock(config), FeedForwardBlock(config)
    for seed, layer in enumerate(layers):
        layer.build(None)
        randomize(layer, seed)
    return layers


def test_a_block_against_float64(block):
    attention, feed_forward = block
    hidden = np.random.default_rng(3).standard_normal((B, L, D))
    mask = (np.arange(L) < np.array([L, 5, 1])[:, None]).astype("int32")
    attended = attention(hidden.astype("float32"), mask_to_bias(mask))
    expected, probabilities = oracle_attention(hidden, mask, values_of(attention))
    np.testing.assert_allclose(attended.probabilities, probabilities, atol=1e-6, rtol=0)
    np.testing.assert_allclose(attended.hidden, expected, atol=5e-6, rtol=0)
    found = feed_forward(attended.hidden)
    np.testing.assert_allclose(found, oracle_feed_forward(expected, values_of(feed_forward)), atol=5e-6, rtol=0)


def test_a_row_that_is_all_padding_stays_finite(block):
    hidden = np.random.default_rng(3).standard_normal((B, L, D))
    attended = block[0](hidden.astype("float32"), mask_to_bias(np.zeros((B, L), "int32")))
    expected, _ = oracle_attention(hidden, np.ones((B, L)), values_of(block[0]))
    # At -10000 float32 keeps steps of about 0.001.
    np.testing.assert_allclose(attended.hidden, expected, atol=2e-3, rtol=0)


@pytest.mark.parametrize(
    ("name", "oracle"),
    [
        ("gelu_new", oracle_gelu_tanh),
        ("gelu", oracle_gelu_erf),
        ("relu", lambda x: np.maximum(x, 0)),
        ("tanh", np.tanh),
        ("linear", lambda x: x),
    ],
)
def test_activations(name, oracle):
    np.testing.assert_allclose(ACTIVATIONS[name](GRID.astype("float32")), oracle(GRID), atol=1e-6, rtol=0)


def test_the_two_gelus_differ_by_what_is_known():
    difference = np.abs(np.asarray(ACTIVATIONS["gelu_new"](GRID)) - np.asarray(ACTIVATIONS["gelu"](GRID)))
    assert np.max(difference) == pytest.approx(4.73e-4, abs=2e-6)
