"""Proves encoder, heads, losses and gradients equal to the reference's and to Hugging Face's on JAX and PyTorch."""

import keras
import numpy as np
import pytest
from keras import ops

from albert_tf import (
    AlbertEncoder,
    AlbertForMaskedLM,
    AlbertForMultipleChoice,
    AlbertForPreTraining,
    AlbertForQuestionAnswering,
    AlbertForSequenceClassification,
    AlbertForTokenClassification,
)
from albert_tf.checkpoints.names import rows
from albert_tf.layers import mask_to_bias
from tests.models.small import CONFIG, make_inputs

CASES = ("M1_small", "M2_groups", "M4_xlargeish")
LABELS = ("masked_lm_ids", "masked_lm_weights", "sentence_order_labels")
EDGES = ("start_positions", "end_positions")


def reference_inputs(arrays, *names):
    inputs = {"input_ids": arrays["input_ids"], "attention_mask": arrays["input_mask"]}
    return {**inputs, "token_type_ids": arrays["segment_ids"], **{name: arrays[name] for name in names}}


def assert_close(found, expected, name, mask=None, atol=2e-5):
    """At `atol`; at 1e-4 in rows that are all padding, and relatively where the mask of the beam head stands."""
    found = ops.convert_to_numpy(found).reshape(expected.shape)
    if mask is not None:
        padded = ~np.any(mask, axis=1)
        np.testing.assert_allclose(found[padded], expected[padded], atol=1e-4, rtol=0, err_msg=name)
        found, expected = found[~padded], expected[~padded]
    masked = expected < -1e29
    np.testing.assert_allclose(found[~masked], expected[~masked], atol=atol, rtol=0, err_msg=name)
    np.testing.assert_allclose(found[masked], expected[masked], rtol=1e-5, err_msg=name)


def assert_loss(model, labels, outputs, expected, atol=2e-5):
    loss = ops.convert_to_numpy(model.compute_loss(y=labels, y_pred=outputs))
    np.testing.assert_allclose(loss, expected, atol=atol, rtol=0)


def assert_gradients(model, inputs, labels, arrays):
    """One step of descent at rate 1 moves every variable by its gradient, whatever the backend's own way is."""
    expected = {key.removeprefix("grad:"): arrays[key] for key in arrays if key.startswith("grad:")}
    expected = {name: array.T if name.endswith("output_weights") else array for name, array in expected.items()}
    before = {path: ops.convert_to_numpy(v).astype("float64") for path, v in model.variables_by_path().items()}
    model.compile(keras.optimizers.SGD(1.0))
    model.train_on_batch(inputs, labels)
    google_name = {row.path: row.google for row in rows(model.config)}
    assert {google_name[path] for path in before} <= set(expected)
    for path, variable in model.variables_by_path().items():
        gradient = before[path] - ops.convert_to_numpy(variable)
        np.testing.assert_allclose(gradient, expected[google_name[path]], atol=2e-6, rtol=1e-4, err_msg=path)


# === Inputs of open length ===


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


# === Block-local attention ===


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


# === The reference ===


@pytest.mark.parametrize("name", CASES)
def test_encoder(name, golden, weights):
    arrays = golden(name).arrays
    mask = arrays["input_mask"]
    encoder = AlbertEncoder.from_pretrained(weights / name)
    outputs = encoder(reference_inputs(arrays), output_hidden_states=True)
    embedded = encoder.embeddings(arrays["input_ids"], arrays["segment_ids"])
    assert_close(embedded, arrays["embedding_output"], "embedding_output", mask)
    layers = sorted(key for key in arrays if key.startswith("layer_"))
    for key, state in zip(layers, outputs["hidden_states"][1:], strict=True):
        assert_close(state, arrays[key], key, mask)
    for key in ("sequence_output", "pooled_output"):
        assert_close(outputs[key], arrays[key], key, mask)


@pytest.mark.parametrize("name", CASES)
def test_pretraining(name, golden, weights):
    arrays = golden(name).arrays
    inputs, labels = reference_inputs(arrays, "masked_lm_positions"), {key: arrays[key] for key in LABELS}
    model = AlbertForPreTraining.from_pretrained(weights / name)
    outputs = model(inputs)
    assert_close(ops.log_softmax(outputs["masked_lm_logits"]), arrays["mlm_log_probs"], "mlm_log_probs")
    assert_close(ops.log_softmax(outputs["sentence_order_logits"]), arrays["sop_log_probs"], "sop_log_probs")
    terms = model.loss_terms(labels, outputs)
    assert_close(terms["masked_lm_loss"].mean(), arrays["mlm_loss"], "mlm_loss")
    assert_close(terms["sentence_order_loss"].mean(), arrays["sop_loss"], "sop_loss")
    assert_loss(model, labels, outputs, arrays["total_loss"])
    assert_gradients(model, inputs, labels, arrays)


HEADS = {
    "classifier": (AlbertForSequenceClassification, (), None, ("logits",), "loss"),
    "regression": (AlbertForSequenceClassification, (), None, ("logits",), "loss"),
    "race": (AlbertForMultipleChoice, (), None, ("logits",), "loss"),
    "squad_v1": (AlbertForQuestionAnswering, (), EDGES, ("start_logits", "end_logits"), "train_loss"),
    "squad_v2": (
        AlbertForQuestionAnswering,
        ("p_mask", "start_positions"),
        (*EDGES, "is_impossible"),
        ("start_log_probs", "end_log_probs"),
        "train_loss",
    ),
}


@pytest.mark.parametrize("name", HEADS)
def test_heads_of_the_reference(name, golden, weights):
    kind, extra, label_names, output_names, loss_name = HEADS[name]
    arrays = golden(f"M3_heads/{name}").arrays
    inputs = reference_inputs(arrays, *extra)
    if kind is AlbertForMultipleChoice:
        inputs = {key: array.reshape(-1, 4, 24) for key, array in inputs.items()}
    labels = arrays["labels"] if label_names is None else {key: arrays[key] for key in label_names}
    model = kind.from_pretrained(weights / "M3_heads" / name)
    outputs = model(inputs)
    for key in output_names:
        assert_close(outputs[key], arrays[key], key)
    assert_loss(model, labels, outputs, arrays[loss_name])
    # Without dropout, which these were recorded without.
    config = model.config.replace(classifier_dropout_prob=0.0)
    plain = kind.from_config({**model.get_config(), "config": config.to_dict()})
    plain.set_weights(model.get_weights())
    assert_gradients(plain, inputs, labels, arrays)


def test_beams_of_the_reference(golden, weights):
    arrays = golden("M3_heads/squad_v2").arrays
    model = AlbertForQuestionAnswering.from_pretrained(weights / "M3_heads" / "squad_v2")
    beams = model(reference_inputs(arrays, "p_mask"))
    for name in ("start_top_log_probs", "end_top_log_probs", "cls_logits"):
        assert_close(beams[name], arrays[name], name)
    for name in ("start_top_index", "end_top_index"):
        np.testing.assert_array_equal(ops.convert_to_numpy(beams[name]), arrays[name], err_msg=name)


# === Hugging Face ===


def huggingface(golden, name, kind):
    case = golden(name)
    model = kind.from_pretrained(case.folder)
    inputs = {key: case.arrays[key] for key in ("input_ids", "attention_mask", "token_type_ids")}
    return model, case.arrays, model(inputs)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("token_classification", AlbertForTokenClassification),
        ("multiple_choice", AlbertForMultipleChoice),
        ("sequence_classification", AlbertForSequenceClassification),
        ("sequence_regression", AlbertForSequenceClassification),
    ],
)
def test_labels_of_huggingface(name, kind, golden):
    model, arrays, outputs = huggingface(golden, f"hf_for_{name}", kind)
    assert_close(outputs["logits"], arrays["logits"], "logits", atol=1e-5)
    assert_loss(model, arrays["labels"], outputs, arrays["loss"], atol=1e-5)


def test_masked_lm_of_huggingface(golden):
    model, arrays, outputs = huggingface(golden, "hf_for_masked_lm", AlbertForMaskedLM)
    assert_close(outputs["logits"], arrays["logits"], "logits", atol=1e-5)
    labels = {"masked_lm_ids": np.maximum(arrays["labels"], 0), "masked_lm_weights": arrays["labels"] != -100}
    assert_loss(model, labels, outputs, arrays["loss"], atol=1e-5)


def test_question_answering_of_huggingface(golden):
    model, arrays, outputs = huggingface(golden, "hf_for_question_answering", AlbertForQuestionAnswering)
    for name in ("start_logits", "end_logits"):
        assert_close(outputs[name], arrays[name], name, atol=1e-5)
    assert_loss(model, {key: arrays[key] for key in EDGES}, outputs, arrays["loss"], atol=1e-5)


@pytest.mark.parametrize("name", ["hf_for_pretraining", "hf_groups2_inner2_for_pretraining"])
def test_pretraining_of_huggingface(name, golden):
    arrays, outputs = huggingface(golden, name, AlbertForPreTraining)[1:]
    assert_close(outputs["masked_lm_logits"], arrays["prediction_logits"], "prediction_logits", atol=1e-5)
    assert_close(outputs["sentence_order_logits"], arrays["sop_logits"], "sop_logits", atol=1e-5)


@pytest.mark.parametrize("name", ["hf_model", "hf_for_pretraining"])
def test_encoder_of_huggingface(name, golden):
    arrays, outputs = huggingface(golden, name, AlbertEncoder)[1:]
    assert_close(outputs["sequence_output"], arrays["last_hidden_state"], "last_hidden_state", atol=1e-5)


def test_a_summary_has_the_shapes_of_all_layers(monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    lines = []
    model = AlbertForTokenClassification(CONFIG, num_labels=3)
    model.summary(line_length=250, print_fn=lines.append, expand_nested=True)
    printed = "\n".join(lines)
    assert "?" not in printed
    assert f"(None, None, {CONFIG.hidden_size})" in printed
    assert "(None, None, 3)" in printed
