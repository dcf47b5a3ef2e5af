"""Proves how variables start, and that dropout is where the reference has it, in training alone."""

import keras
import numpy as np
import pytest

from albert_tf.config import AlbertConfig
from albert_tf.layers import (
    AlbertEmbeddings,
    AttentionBlock,
    ClassificationHead,
    FeedForwardBlock,
    MaskedLMHead,
    mask_to_bias,
)

CONFIG = AlbertConfig(
    vocab_size=400, embedding_size=64, hidden_size=128, num_attention_heads=2, intermediate_size=256, type_vocab_size=50
)
# A normal of deviation 1 that is cut at two deviations has this one.
CUT = 0.8796256610342398
RATE = 0.25
B, L, D = 4, 40, 128


def fresh(kind, **changes):
    layer = kind(CONFIG.replace(**changes), **({"num_outputs": 30} if kind is ClassificationHead else {}))
    layer.build(None)
    return layer


@pytest.mark.parametrize("kind", [AlbertEmbeddings, AttentionBlock, FeedForwardBlock, MaskedLMHead, ClassificationHead])
def test_initial_values(kind):
    drawn = []
    for variable in fresh(kind).weights:
        value = np.asarray(variable)
        if variable.path.endswith("gamma"):
            assert np.all(value == 1), variable.path
        elif variable.path.endswith(("beta", "bias")):
            assert np.all(value == 0), variable.path
        elif "seed_generator" not in variable.path:
            drawn.append(value)
            assert 0.038 < np.max(np.abs(value)) <= 0.04, variable.path
            assert np.mean(value) == pytest.approx(0, abs=4 * 0.0176 / np.sqrt(value.size)), variable.path
            # The sample deviation of a cut normal scatters a little less than the 1 / sqrt(2 n) of a whole one.
            assert np.std(value) == pytest.approx(0.02 * CUT, rel=4 / np.sqrt(2 * value.size)), variable.path
    assert drawn
    starts = [tuple(value.ravel()[:8]) for value in drawn]
    assert len(set(starts)) == len(starts), "two variables were drawn from the same stream"


def test_dropout_after_the_embeddings():
    layer = fresh(AlbertEmbeddings, hidden_dropout_prob=RATE)
    ids = np.random.default_rng(0).integers(0, 400, (B, L)).astype("int32")
    assert not np.any(np.asarray(layer(ids, ids % 2)) == 0)
    assert_share_of_zeros(layer(ids, ids % 2, training=True))


@pytest.mark.parametrize("kind", [AttentionBlock, FeedForwardBlock])
def test_dropout_of_a_block_is_before_the_residual(kind):
    layer = fresh(kind, hidden_dropout_prob=RATE)
    # With these the sub-layer's output is 1 everywhere and the residual 0: what is dropped comes out below the rest.
    layer.output_projection.kernel.assign(np.zeros(layer.output_projection.kernel.shape))
    layer.output_projection.bias.assign(np.ones(D))
    inputs = [np.zeros((B, L, D), "float32"), *([no_padding()] if kind is AttentionBlock else [])]
    assert np.ptp(first(layer(*inputs))) == 0
    output = first(layer(*inputs, training=True))
    assert_share_of_zeros(np.where(output < 0, 0, 1))
    # The residual is added after dropout: with one that outweighs the output by far, nothing is near zero.
    inputs[0][:] = np.arange(D) * 1000
    undropped, dropped = first(layer(*inputs)), first(layer(*inputs, training=True))
    np.testing.assert_allclose(dropped, undropped, atol=1e-4)


def test_dropout_of_attention_probabilities():
    layer = fresh(AttentionBlock, attention_probs_dropout_prob=RATE)
    # Every value is 1 and attention is even, so the context of a head is the share of it that was kept, scaled up.
    layer.value.kernel.assign(np.zeros((D, D)))
    layer.value.bias.assign(np.ones(D))
    # The first head's context goes to column 0; columns 1 and 2 hold 0 and 1, to undo the normalisation by.
    layer.output_projection.kernel.assign(one_at((D, D), (0, 0)))
    layer.output_projection.bias.assign(one_at((D,), 2))
    inputs = np.zeros((B, L, D), "float32"), no_padding()

    def context(output):
        hidden = np.asarray(output.hidden)
        return (hidden[..., 0] - hidden[..., 1]) / (hidden[..., 2] - hidden[..., 1])

    still, training = layer(*inputs), layer(*inputs, training=True)
    np.testing.assert_array_equal(training.probabilities, still.probabilities)
    np.testing.assert_allclose(still.probabilities, 1 / L, rtol=1e-6)
    np.testing.assert_allclose(context(still), 1, rtol=1e-5)
    kept = context(training) * (1 - RATE) * L
    np.testing.assert_allclose(kept, np.round(kept), atol=1e-3)
    assert 1 - np.mean(kept) / L == pytest.approx(RATE, abs=5 * np.sqrt(RATE * (1 - RATE) / (kept.size * L)))
    assert len(np.unique(np.round(kept))) > 5


def test_dropout_before_a_head():
    layer = ClassificationHead(CONFIG, num_outputs=D, dropout=RATE)
    layer.build(None)
    layer.kernel.assign(np.eye(D))
    pooled = np.ones((B * L, D), "float32")
    np.testing.assert_array_equal(layer(pooled), pooled)
    output = np.asarray(layer(pooled, training=True))
    assert_share_of_zeros(output)
    np.testing.assert_allclose(output[output != 0], 1 / (1 - RATE), rtol=1e-6)


def no_padding():
    return mask_to_bias(np.ones((B, L), "int32"))


def one_at(shape, index):
    array = np.zeros(shape)
    array[index] = 1
    return array


def first(output):
    return np.asarray(output[0] if isinstance(output, tuple) else output)


def assert_share_of_zeros(output):
    output = np.asarray(output)
    share = np.mean(output == 0)
    assert share == pytest.approx(RATE, abs=5 * np.sqrt(RATE * (1 - RATE) / output.size))


def test_a_head_starts_as_no_other_does_under_the_same_seed():
    def kernel(name, skipped=0):
        keras.utils.set_random_seed(3)
        for _ in range(skipped):
            keras.initializers.TruncatedNormal()  # draws a seed
        head = ClassificationHead(CONFIG, num_outputs=30, name=name)
        head.build(None)
        return np.asarray(head.kernel).ravel()

    one = kernel("classifier")
    np.testing.assert_array_equal(kernel("classifier"), one)
    for other in (kernel("sentence_order"), kernel("qa_span"), kernel("classifier", skipped=1)):
        assert abs(np.corrcoef(one, other)[0, 1]) < 5 / np.sqrt(one.size)
    np.testing.assert_array_equal(kernel(None), kernel(None))  # whatever name Keras makes up
