"""Proves inputs of open length, block-local attention and summaries on JAX and PyTorch."""

import keras
import numpy as np
import pytest
from keras import ops

from albert_tf import (
    AlbertEncoder,
    AlbertForMaskedLM,
    AlbertForPreTraining,
    AlbertForQuestionAnswering,
    AlbertForSequenceClassification,
    AlbertForTokenClassification,
)
from albert_tf.layers import mask_to_bias
from tests.models.golden import assert_close
from tests.models.small import CONFIG, make_inputs


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (AlbertEncoder, {}),
        (AlbertEncoder, {"attention": "block_local", "block_size": 3}),
        (AlbertForPreTraining, {}),
        (AlbertForMaskedLM, {}),
        (AlbertForSequenceClassification, {"num_labels": 3}),
        (AlbertForTokenClassification, {"num_labels": 3}),
        (AlbertForQuestionAnswering, {}),
    ],
)
def test_inputs_of_open_length(kind, arguments):
    # PyTorch finds shapes with a length of 83, which must be one that the model takes.
    changes = {name: arguments.pop(name) for name in ("attention", "block_size") if name in arguments}
    model = kind(CONFIG.replace(max_position_embeddings=96, **changes), **arguments)
    names = ("input_ids", "attention_mask", "token_type_ids")
    inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in names}
    functional = keras.Model(inputs, model(inputs))
    for length in (7, 13):
        batch = {name: np.ones((2, length), "int32") for name in names}
        found, expected = functional(batch), model(batch)
        assert found.keys() == expected.keys()
        for name, array in expected.items():
            np.testing.assert_array_equal(ops.convert_to_numpy(found[name]), ops.convert_to_numpy(array), err_msg=name)


@pytest.mark.parametrize("length", [7, 30])
def test_block_local_attention_is_full_attention_with_a_mask(length):
    config = CONFIG.replace(max_position_embeddings=96)
    inputs = make_inputs(3, length)
    local, full = (AlbertEncoder(config.replace(attention=kind, block_size=4)) for kind in ("block_local", "full"))
    full.set_weights(local.get_weights())
    hidden = ops.convert_to_tensor(local.projection(local.embeddings(inputs["input_ids"], inputs["token_type_ids"])))
    block = np.arange(length) // 4
    pairs = np.abs(block[:, None] - block[None]) <= 1
    pairs[0] = pairs[:, 0] = True
    found, expected = (
        encoder.attention_blocks[0][0](hidden, mask_to_bias(mask)).hidden
        for encoder, mask in (
            (local, inputs["attention_mask"]),
            (full, inputs["attention_mask"][:, None] * pairs.astype("int32")),
        )
    )
    assert_close(found, ops.convert_to_numpy(expected), "hidden", atol=1e-5)


def test_a_summary_has_the_shapes_of_all_layers(monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    lines = []
    model = AlbertForTokenClassification(CONFIG, num_labels=3)
    model.summary(line_length=250, print_fn=lines.append, expand_nested=True)
    printed = "\n".join(lines)
    assert "?" not in printed
    assert f"(None, None, {CONFIG.hidden_size})" in printed
    assert "(None, None, 3)" in printed
