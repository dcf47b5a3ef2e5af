"""Proves embeddings, layers, heads, losses and gradients equal to the reference's, padded positions included."""

import numpy as np
import pytest
from keras import ops

from albert_tf import AlbertEncoder, AlbertForPreTraining

from .golden import CASES, WEIGHTS_OF, assert_close, assert_gradients, assert_loss, reference_inputs

NUM_GRADIENTS = {"M1_small": 32, "M2_groups": 78, "M4_xlargeish": 32}
LABELS = ("masked_lm_ids", "masked_lm_weights", "sentence_order_labels")


@pytest.mark.parametrize("name", CASES)
def test_encoder(name, golden):
    arrays = golden(name).arrays
    mask = arrays["input_mask"]
    encoder = AlbertEncoder.from_pretrained(WEIGHTS_OF / name)
    outputs = encoder(reference_inputs(arrays), output_hidden_states=True, output_attentions=True)
    embedded = encoder.embeddings(arrays["input_ids"], arrays["segment_ids"])
    assert_close(embedded, arrays["embedding_output"], "embedding_output", mask)
    layers = sorted(key for key in arrays if key.startswith("layer_"))
    states = outputs["hidden_states"]
    projected = embedded if encoder.projection is None else encoder.projection(embedded)
    np.testing.assert_array_equal(ops.convert_to_numpy(states[0]), ops.convert_to_numpy(projected))
    for key, state in zip(layers, states[1:], strict=True):
        assert_close(state, arrays[key], key, mask)
    for key in ("sequence_output", "pooled_output"):
        assert_close(outputs[key], arrays[key], key, mask)
    assert len(outputs["attentions"]) == len(layers)
    for probabilities in map(ops.convert_to_numpy, outputs["attentions"]):
        np.testing.assert_allclose(np.sum(probabilities, axis=-1), 1, atol=1e-5)
        of_padding = probabilities * (1 - mask)[:, None, None, :]
        assert np.all(of_padding[np.any(mask, axis=1)] == 0)


@pytest.mark.parametrize("name", CASES)
def test_heads_losses_and_gradients(name, golden):
    arrays = golden(name).arrays
    inputs, labels = reference_inputs(arrays, "masked_lm_positions"), {key: arrays[key] for key in LABELS}
    model = AlbertForPreTraining.from_pretrained(WEIGHTS_OF / name)
    outputs = model(inputs)
    masked_lm = ops.log_softmax(outputs["masked_lm_logits"])
    assert_close(ops.reshape(masked_lm, arrays["mlm_log_probs"].shape), arrays["mlm_log_probs"], "mlm_log_probs")
    assert_close(ops.log_softmax(outputs["sentence_order_logits"]), arrays["sop_log_probs"], "sop_log_probs")
    terms = model.loss_terms(labels, outputs)
    assert_close(terms["masked_lm_loss"].mean(), arrays["mlm_loss"], "mlm_loss")
    assert_close(terms["sentence_order_loss"].mean(), arrays["sop_loss"], "sop_loss")
    assert_loss(model, labels, outputs, arrays["total_loss"])
    assert_gradients(model, inputs, labels, arrays, NUM_GRADIENTS[name])


def test_logits_without_positions_are_those_of_every_position(golden):
    arrays = golden("M1_small").arrays
    model = AlbertForPreTraining.from_pretrained(WEIGHTS_OF / "M1_small")
    everywhere = ops.convert_to_numpy(model(reference_inputs(arrays))["masked_lm_logits"])
    assert everywhere.shape == (3, 24, 120)
    picked = np.take_along_axis(everywhere, arrays["masked_lm_positions"][:, :, None], axis=1)
    chosen = model(reference_inputs(arrays, "masked_lm_positions"))["masked_lm_logits"]
    np.testing.assert_allclose(picked, ops.convert_to_numpy(chosen), atol=2e-6)
