"""Proves what users do with the transformer block: masks of every form, repeated calls, shared halves."""

import keras
import numpy as np
import pytest

from albert_tf import AlbertConfig, AlbertEncoder
from albert_tf.layers import TransformerBlock, mask_to_bias

from .check_layer import randomize

SIZES = {"vocab_size": 30, "embedding_size": 8, "hidden_size": 24, "num_attention_heads": 3, "intermediate_size": 40}
CONFIG = AlbertConfig(**SIZES, max_position_embeddings=16, num_hidden_layers=4)
HIDDEN = np.random.default_rng(0).standard_normal((2, 5, 24)).astype("float32")
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]], "int32")
MASKS = {
    "integers": MASK,
    "booleans": MASK.astype(bool),
    "per token": np.repeat(MASK[:, None], 5, axis=1),
    "bias": np.asarray(mask_to_bias(MASK)),
    "booleans of four axes": MASK.astype(bool)[:, None, None],
}


@pytest.fixture
def block():
    block = TransformerBlock(CONFIG)
    block.build(None)
    randomize(block)
    return block


@pytest.mark.parametrize("form", MASKS)
def test_masks_of_every_form(block, form):
    expected = np.asarray(block(HIDDEN[1:, :2]))  # the row without its padding
    found, scores = block(HIDDEN, mask=MASKS[form], return_attention_scores=True)
    np.testing.assert_allclose(found[1:, :2], expected, atol=1e-5)
    assert scores.shape == (2, 3, 5, 5)
    assert np.all(np.asarray(scores)[1, :, :, 2:] == 0)
    assert np.max(np.abs(block(HIDDEN)[1:, :2] - expected)) > 1e-3


@pytest.mark.parametrize("changes", [{}, {"attention": "block_local", "block_size": 2}])
def test_without_a_mask_all_tokens_are_attended_to(changes):
    block = TransformerBlock(CONFIG.replace(**changes))
    block.build(None)
    randomize(block)
    np.testing.assert_array_equal(block(HIDDEN), block(HIDDEN, mask=np.ones_like(MASK)))


def test_the_mask_of_keras_embeddings_reaches_every_call_and_what_follows(block):
    ids = keras.Input((None,), dtype="int32")
    hidden = keras.layers.Embedding(30, 24, mask_zero=True)(ids)
    for _ in range(3):
        hidden = block(hidden)
    model = keras.Model(ids, keras.layers.GlobalAveragePooling1D()(hidden))
    np.testing.assert_allclose(model(np.array([[7, 8, 9, 0, 0]])), model(np.array([[7, 8, 9]])), atol=1e-5)


def test_calls_share_weights_and_are_those_of_the_encoder():
    """Embeddings, projection and the same block again and again are what the encoder computes."""
    encoder = AlbertEncoder(CONFIG)
    randomize(encoder)
    ids = np.random.default_rng(1).integers(4, 30, (2, 5))
    outputs = encoder({"input_ids": ids, "attention_mask": MASK}, output_hidden_states=True)
    block = TransformerBlock(CONFIG)
    block.build(None)
    block.set_weights([weight for half in encoder.transformer_blocks[0].halves for weight in half.get_weights()])
    hidden = outputs["hidden_states"][0]
    for expected in outputs["hidden_states"][1:]:
        hidden = block(hidden, MASK)
        np.testing.assert_array_equal(hidden, expected)


@pytest.mark.parametrize(
    ("changes", "attention", "ffn"),
    [
        ({}, "aaaa", "aaaa"),
        ({"share": "attention"}, "aaaa", "abcd"),
        ({"share": "ffn"}, "abcd", "aaaa"),
        ({"share": "none"}, "abcd", "abcd"),
        ({"num_hidden_groups": 2}, "aabb", "aabb"),
        ({"inner_group_num": 2, "num_hidden_layers": 2}, "abab", "abab"),
    ],
    ids=str,
)
def test_what_layers_share_is_the_same_object(changes, attention, ffn):
    blocks = AlbertEncoder(CONFIG.replace(**changes)).transformer_blocks
    assert _pattern([block.attention for block in blocks]) == attention
    assert _pattern([block.ffn for block in blocks]) == ffn
    assert _pattern(blocks) == max(attention, ffn)


def _pattern(objects) -> str:
    """A letter for each object, the same for the same one."""
    seen = list(dict.fromkeys(map(id, objects)))
    return "".join("abcdefgh"[seen.index(id(each))] for each in objects)


def test_a_block_with_a_half_of_another_is_saved_with_it_alone(block):
    other = TransformerBlock(CONFIG, attention=block.attention)
    assert other.attention is block.attention
    hidden = keras.Input((None, 24))
    assert keras.Model(hidden, other(block(hidden))).count_params() == block.count_params() + block.ffn.count_params()
    with pytest.raises(ValueError, match="no config of its own"):
        other.get_config()
