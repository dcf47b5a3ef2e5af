"""Proves embeddings, layers, heads, losses and gradients equal to the reference's, padded positions included."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertEncoder, AlbertForPreTraining
from albert_tf.checkpoints.names import rows

CASES = ("M1_small", "M2_groups", "M4_xlargeish")
NUM_GRADIENTS = {"M1_small": 32, "M2_groups": 78, "M4_xlargeish": 32}


def inputs_of(arrays):
    return {
        "input_ids": arrays["input_ids"],
        "attention_mask": arrays["input_mask"],
        "token_type_ids": arrays["segment_ids"],
    }


def pretraining_inputs_of(arrays):
    return {**inputs_of(arrays), "masked_lm_positions": arrays["masked_lm_positions"]}


def labels_of(arrays):
    return {name: arrays[name] for name in ("masked_lm_ids", "masked_lm_weights", "sentence_order_labels")}


def assert_close(found, expected, name, mask):
    """At 2e-5, and 1e-4 in rows that are all padding, where the reference itself moves more."""
    found, padded = np.asarray(found), ~np.any(mask, axis=1)
    np.testing.assert_allclose(found[~padded], expected[~padded], atol=2e-5, rtol=0, err_msg=name)
    np.testing.assert_allclose(found[padded], expected[padded], atol=1e-4, rtol=0, err_msg=name)


@pytest.mark.parametrize("name", CASES)
def test_encoder(name, golden):
    case = golden(name)
    arrays, mask = case.arrays, case.arrays["input_mask"]
    encoder = AlbertEncoder.from_pretrained(case.folder)
    outputs = encoder(inputs_of(arrays), output_hidden_states=True, output_attentions=True)
    embedded = encoder.embeddings(arrays["input_ids"], arrays["segment_ids"])
    assert_close(embedded, arrays["embedding_output"], "embedding_output", mask)
    layers = sorted(key for key in arrays if key.startswith("layer_"))
    states = outputs["hidden_states"]
    assert len(states) == len(layers) + 1
    projected = embedded if encoder.projection is None else encoder.projection(embedded)
    np.testing.assert_array_equal(states[0], projected)
    for key, state in zip(layers, states[1:], strict=True):
        assert_close(state, arrays[key], key, mask)
    assert_close(outputs["sequence_output"], arrays["sequence_output"], "sequence_output", mask)
    assert_close(outputs["pooled_output"], arrays["pooled_output"], "pooled_output", mask)


@pytest.mark.parametrize("name", CASES)
def test_attentions(name, golden):
    case = golden(name)
    encoder = AlbertEncoder.from_pretrained(case.folder)
    attentions = encoder(inputs_of(case.arrays), output_attentions=True)["attentions"]
    config, (batch, length) = encoder.config, case.arrays["input_ids"].shape
    assert len(attentions) == config.num_hidden_layers * config.inner_group_num
    some_padded = np.any(case.arrays["input_mask"], axis=1)
    for probabilities in attentions:
        assert probabilities.shape == (batch, config.num_attention_heads, length, length)
        np.testing.assert_allclose(np.sum(probabilities, axis=-1), 1, atol=1e-5)
        of_padding = np.asarray(probabilities) * (1 - case.arrays["input_mask"])[:, None, None, :]
        assert np.all(of_padding[some_padded] == 0)


@pytest.mark.parametrize("name", CASES)
def test_heads_losses_and_gradients(name, golden):
    case = golden(name)
    arrays, labels = case.arrays, labels_of(case.arrays)
    model = AlbertForPreTraining.from_pretrained(case.folder)
    with tf.GradientTape() as tape:
        outputs = model(pretraining_inputs_of(arrays), training=True)
        total = model.compute_loss(y=labels, y_pred=outputs)
    masked_lm = keras.ops.log_softmax(outputs["masked_lm_logits"])
    order = keras.ops.log_softmax(outputs["sentence_order_logits"])
    np.testing.assert_allclose(
        np.reshape(masked_lm, arrays["mlm_log_probs"].shape), arrays["mlm_log_probs"], atol=2e-5, rtol=0
    )
    np.testing.assert_allclose(order, arrays["sop_log_probs"], atol=2e-5, rtol=0)
    terms = model.loss_terms(labels, outputs)
    np.testing.assert_allclose(terms["masked_lm_loss"].mean(), arrays["mlm_loss"], atol=2e-5, rtol=0)
    np.testing.assert_allclose(terms["sentence_order_loss"].mean(), arrays["sop_loss"], atol=2e-5, rtol=0)
    np.testing.assert_allclose(total, arrays["total_loss"], atol=2e-5, rtol=0)
    gradients = dict(zip(model.variables_by_path(), tape.gradient(total, model.trainable_variables), strict=True))
    expected = {key.removeprefix("grad:"): arrays[key] for key in arrays if key.startswith("grad:")}
    google_name = {row.path: row.google for row in rows(model.config)}
    assert len(expected) == NUM_GRADIENTS[name]
    assert {google_name[path] for path in gradients} == set(expected)
    for path, gradient in gradients.items():
        found = np.asarray(tf.convert_to_tensor(gradient))
        wanted = expected[google_name[path]]
        wanted = wanted.T if google_name[path].endswith("output_weights") else wanted
        np.testing.assert_allclose(found, wanted, atol=2e-6, rtol=1e-4, err_msg=path)


def test_logits_without_positions_are_those_of_every_position(golden):
    arrays = golden("M1_small").arrays
    model = AlbertForPreTraining.from_pretrained(golden("M1_small").folder)
    inputs, positions = inputs_of(arrays), arrays["masked_lm_positions"]
    everywhere = np.asarray(model(inputs)["masked_lm_logits"])
    assert everywhere.shape == (3, 24, 120)
    picked = np.take_along_axis(everywhere, positions[:, :, None], axis=1)
    chosen = model({**inputs, "masked_lm_positions": positions})["masked_lm_logits"]
    np.testing.assert_allclose(picked, chosen, atol=2e-6)
