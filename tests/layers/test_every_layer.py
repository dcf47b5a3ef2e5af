"""Proves that every layer builds, runs eagerly, in a graph, under XLA and in bfloat16, and saves and loads itself."""

import keras
import numpy as np
import pytest

from albert_tf import layers
from albert_tf.config import AlbertConfig
from tests.parameters import first_of

from .check_layer import check_layer, randomize

CONFIG = AlbertConfig(
    vocab_size=30,
    embedding_size=8,
    hidden_size=24,
    num_attention_heads=3,
    intermediate_size=40,
    max_position_embeddings=12,
)
B, L, P = 2, 7, 3


def numbers(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def integers(high, *shape, seed=2):
    return np.random.default_rng(seed).integers(0, high, shape).astype("int32")


def padded_bias(lengths=(L, 4)):
    mask = (np.arange(L) < np.array(lengths)[:, None]).astype("int32")
    return np.asarray(layers.mask_to_bias(mask))


CASES = {
    "embeddings": (
        lambda: layers.AlbertEmbeddings(CONFIG),
        [integers(30, B, L), integers(2, B, L)],
        ("bfloat16", 0.02),
    ),
    "transformer_block": (
        lambda: layers.TransformerBlock(CONFIG),
        [numbers(B, L, 24), (np.arange(L) < np.array([[L], [4]])).astype("int32")],
        ("bfloat16", 0.03),
    ),
    "attention": (lambda: layers.AttentionBlock(CONFIG), [numbers(B, L, 24), padded_bias()], ("bfloat16", 0.02)),
    "block_local_attention": (
        lambda: layers.AttentionBlock(CONFIG.replace(attention="block_local", block_size=2)),
        [numbers(B, L, 24), padded_bias()],
        ("bfloat16", 0.02),
    ),
    "feed_forward": (lambda: layers.FeedForwardBlock(CONFIG), [numbers(B, L, 24)], ("bfloat16", 0.02)),
    "masked_lm": (
        lambda: layers.MaskedLMHead(CONFIG),
        [numbers(B, L, 24), numbers(30, 8), integers(L, B, P)],
        ("float32", 0.08),
    ),
    "text_head": (lambda: layers.ClassificationHead(CONFIG, 5, dropout=0.1), [numbers(B, 24)], ("float32", 0.01)),
    "beam_head": (
        lambda: layers.BeamAnswerHead(CONFIG, dropout=0.1),
        [numbers(B, L, 24), integers(2, B, L), integers(L, B)],
        ("float32", 0.005),
    ),
}


QUICK = ("transformer_block", "masked_lm", "beam_head")


@pytest.mark.parametrize("case", first_of(dict.fromkeys([*QUICK, *CASES]), count=len(QUICK)))
def test_layer(case, tmp_path):
    make, inputs, (output_dtype, bfloat16_atol) = CASES[case]
    check_layer(make(), inputs, tmp_path, output_dtype, bfloat16_atol)


def test_every_public_layer_is_among_them():
    public = {name for name in layers.__all__ if isinstance(getattr(layers, name), type)}
    assert {type(make()).__name__ for make, _, _ in CASES.values()} == public


def test_what_stands_in_padding_reaches_no_real_token():
    attention = layers.AttentionBlock(CONFIG)
    attention.build(None)
    randomize(attention)
    hidden, bias = numbers(B, L, 24), padded_bias((L, 4))
    changed = hidden.copy()
    changed[1, 4:] += 100.0
    before, after = attention(hidden, bias), attention(changed, bias)
    np.testing.assert_array_equal(before.hidden[1, :4], after.hidden[1, :4])
    np.testing.assert_array_equal(before.hidden[0], after.hidden[0])
    assert np.max(np.abs(before.hidden[1, 4:] - after.hidden[1, 4:])) > 0.1
    assert np.all(np.asarray(before.probabilities)[1, :, :, 4:] == 0)
    assert np.max(np.abs(attention(hidden, np.zeros_like(bias)).hidden[1, :4] - before.hidden[1, :4])) > 1e-3


def test_mask_to_bias():
    expected = np.array([[0, 0, -10000], [0, -10000, -10000]], "float32")[:, None, None, :]
    for dtype in ("int32", "int64", "bool", "float32"):
        bias = layers.mask_to_bias(np.array([[1, 1, 0], [1, 0, 0]], dtype))
        assert bias.dtype == "float32"
        np.testing.assert_array_equal(bias, expected)


@pytest.mark.parametrize("case", CASES)
def test_outputs_of_specs_in_float32(case):
    make, inputs, (_, _) = CASES[case]
    half = type(make()).from_config({**make().get_config(), "dtype": "mixed_bfloat16"})
    expected = half(*inputs)  # which casts them
    found = half.compute_output_spec(*(keras.KerasTensor(array.shape, str(array.dtype)) for array in inputs))
    for spec, array in zip(keras.tree.flatten(found), keras.tree.flatten(expected), strict=True):
        assert (spec.shape, spec.dtype) == (tuple(array.shape), keras.backend.standardize_dtype(array.dtype))
