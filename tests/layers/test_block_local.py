"""Block-local attention is full attention with a mask of the pairs of tokens that may attend to each other."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertConfig
from albert_tf.layers import AttentionBlock, mask_to_bias

CONFIG = AlbertConfig(hidden_size=16, num_attention_heads=2)


def make_layers(block_size: int, dropout: float = 0.0) -> tuple[AttentionBlock, AttentionBlock]:
    """Block-local and full attention with the same weights."""
    config = CONFIG.replace(attention_probs_dropout_prob=dropout)
    layers = tuple(
        AttentionBlock(config.replace(attention=attention, block_size=block_size))
        for attention in ("block_local", "full")
    )
    random = np.random.default_rng(0)
    for layer in layers:
        layer.build()
    for variables in zip(*(layer.trainable_variables for layer in layers), strict=True):
        values = random.normal(size=variables[0].shape, scale=0.5)  # probabilities are then far from equal
        for variable in variables:
            variable.assign(values)
    return layers


def make_rows(length: int) -> tuple[np.ndarray, np.ndarray]:
    """Vectors [B, L, D] and a mask [B, L]: full, padding at the end, and padding anywhere but at the first token."""
    random = np.random.default_rng(length)
    mask = np.ones((3, length), "int32")
    mask[1, 1 + length // 2 :] = 0
    mask[2, 1:] = random.integers(0, 2, length - 1)
    return random.normal(size=(3, length, CONFIG.hidden_size)).astype("float32"), mask


def allowed_pairs(length: int, block_size: int) -> np.ndarray:
    """Which tokens (columns) a token (row) attends to, [L, L]."""
    block = np.arange(length) // block_size
    is_near = np.abs(block[:, None] - block[None]) <= 1
    is_near[0] = is_near[:, 0] = True
    return is_near.astype("int32")


def outputs_and_gradients(layer, hidden, mask, weights):
    with tf.GradientTape() as tape:
        tape.watch(hidden)
        outputs = layer(hidden, mask_to_bias(mask)).hidden
        loss = tf.reduce_sum(outputs * weights)
    gradients = tape.gradient(loss, [hidden, *(variable.value for variable in layer.trainable_variables)])
    return outputs, *gradients


@pytest.mark.parametrize(("block_size", "is_open"), [(1, False), (4, True), (7, False)])
def test_values_and_gradients_are_those_of_full_attention_with_a_mask(block_size, is_open):
    local, full = make_layers(block_size)
    vectors, ids = tf.TensorSpec((None, None, 16)), tf.TensorSpec((None, None), "int32")
    step = tf.function(lambda *tensors: outputs_and_gradients(local, *tensors), input_signature=[vectors, ids, vectors])
    for length in (2, 3, 8, 15, 30):
        hidden, mask = make_rows(length)
        weights = np.random.default_rng(1).normal(size=hidden.shape).astype("float32")
        tensors = [tf.constant(hidden), tf.constant(mask), tf.constant(weights)]
        found = step(*tensors) if is_open else outputs_and_gradients(local, *tensors)
        pairs = mask[:, None] * allowed_pairs(length, block_size)
        for one, other in zip(found, outputs_and_gradients(full, tensors[0], pairs, weights), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5, rtol=1e-5, err_msg=f"length {length}")


@pytest.mark.parametrize("block_size", [8, 15, 40])
def test_two_blocks_are_full_attention(block_size):
    local, full = make_layers(block_size)
    hidden, mask = make_rows(15)
    mask[2] = 0  # of only padding
    assert np.all(allowed_pairs(15, block_size) == 1)
    np.testing.assert_allclose(
        local(hidden, mask_to_bias(mask)).hidden, full(hidden, mask_to_bias(mask)).hidden, atol=1e-6
    )


def test_no_tensor_grows_with_the_square_of_the_length():
    local, full = make_layers(4)

    def largest(layer, length):
        function = tf.function(lambda hidden, mask: layer(hidden, mask_to_bias(mask)).hidden)
        graph = function.get_concrete_function(*map(tf.constant, make_rows(length))).graph
        return max(np.prod(output.shape) for operation in graph.get_operations() for output in operation.outputs)

    assert largest(local, 1024) < 2.1 * largest(local, 512)
    assert largest(full, 1024) > 3.9 * largest(full, 512)


def test_padding_changes_no_token():
    local, _ = make_layers(4)
    hidden, mask = make_rows(22)
    changed = np.where(mask[:, :, None] == 1, hidden, 100.0)
    before, after = (np.asarray(local(rows, mask_to_bias(mask)).hidden) for rows in (hidden, changed))
    np.testing.assert_array_equal(before[mask == 1], after[mask == 1])
    longer = np.pad(hidden, [(0, 0), (0, 9), (0, 0)]), np.pad(mask, [(0, 0), (0, 9)])
    np.testing.assert_allclose(local(longer[0], mask_to_bias(longer[1])).hidden[:, :22], before, atol=1e-5)


def test_a_row_of_only_padding_is_finite():
    local, _ = make_layers(4)
    hidden, mask = make_rows(22)
    assert np.all(np.isfinite(local(hidden, mask_to_bias(0 * mask)).hidden))


def test_dropout_falls_on_the_first_token_too():
    local, _ = make_layers(4, dropout=0.5)
    hidden, mask = make_rows(22)
    keras.utils.set_random_seed(0)
    plain, dropped = (
        np.asarray(local(hidden, mask_to_bias(mask), training=training).hidden) for training in (False, True)
    )
    assert np.all(np.any(plain != dropped, axis=-1)[mask == 1])


def test_a_mask_per_token_is_refused():
    local, _ = make_layers(4)
    hidden, mask = make_rows(8)
    with pytest.raises(ValueError, match=r"one per row, not per token.*\(3, 8, 8\); give packed examples"):
        local(hidden, mask_to_bias(np.repeat(mask[:, None], 8, axis=1)))
