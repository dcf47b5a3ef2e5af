"""Proves every task head equal to the reference's and to Hugging Face's: outputs, losses, the reference's gradients."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import (
    AlbertForMaskedLM,
    AlbertForMultipleChoice,
    AlbertForQuestionAnswering,
    AlbertForSequenceClassification,
    AlbertForTokenClassification,
)
from albert_tf.checkpoints.names import rows

LENGTH = 24


def reference_inputs(arrays, *names):
    inputs = {"input_ids": arrays["input_ids"], "attention_mask": arrays["input_mask"]}
    return {**inputs, "token_type_ids": arrays["segment_ids"], **{name: arrays[name] for name in names}}


def reference_choices(arrays):
    """The reference lays the four choices of a row one behind the other."""
    return {name: array.reshape(-1, 4, LENGTH) for name, array in reference_inputs(arrays).items()}


def positions(arrays, *names):
    return {name: arrays[name] for name in ("start_positions", "end_positions", *names)}


def assert_close(found, expected, name, atol=2e-5):
    """At `atol`; where the mask of the beam head stands, at about -1e30, relatively."""
    assert found.shape == expected.shape, name
    found, masked = np.asarray(found), expected < -1e29
    np.testing.assert_allclose(found[~masked], expected[~masked], atol=atol, rtol=0, err_msg=name)
    np.testing.assert_allclose(found[masked], expected[masked], rtol=1e-5, err_msg=name)


def assert_reference_gradients(model, gradients, arrays, num_heads):
    """Every gradient; of what the loss does not reach the reference has zeros, and our model has none."""
    google_name = {row.path: row.google for row in rows(model.config)}
    expected = {key.removeprefix("grad:"): arrays[key] for key in arrays if key.startswith("grad:")}
    assert len(expected) == 25 + num_heads
    for path, gradient in gradients.items():
        name = google_name[path]
        wanted = expected.pop(name)
        wanted = wanted.T if name.endswith("output_weights") else wanted
        found = np.asarray(tf.convert_to_tensor(gradient))
        np.testing.assert_allclose(found, wanted, atol=2e-6, rtol=1e-4, err_msg=path)
    assert set(expected) <= {"bert/pooler/dense/kernel", "bert/pooler/dense/bias"}
    assert not any(np.any(array) for array in expected.values())


def check_reference(golden, name, kind, arguments, make_inputs, make_labels, loss_name="loss", num_heads=2):
    case = golden(f"M3_heads/{name}")
    model = kind.from_pretrained(case.folder, **arguments)
    labels = make_labels(case.arrays)
    with tf.GradientTape() as tape:
        # Without dropout, which these were recorded without and which the published configs do not name.
        outputs = model(make_inputs(case.arrays), training=False)
        loss = model.compute_loss(y=labels, y_pred=outputs)
    np.testing.assert_allclose(loss, case.arrays[loss_name], atol=2e-5, rtol=0)
    gradients = tape.gradient(loss, model.trainable_variables)
    gradients = dict(zip(model.variables_by_path(), gradients, strict=True))
    assert_reference_gradients(model, gradients, case.arrays, num_heads)
    return model, outputs, case.arrays


# === The reference ===


def test_classifier(golden):
    _, outputs, arrays = check_reference(
        golden,
        "classifier",
        AlbertForSequenceClassification,
        {"labels": ["contradiction", "entailment", "neutral"]},
        reference_inputs,
        lambda arrays: arrays["labels"],
    )
    assert_close(outputs["logits"], arrays["logits"], "logits")
    assert_close(tf.nn.softmax(outputs["logits"]), arrays["probabilities"], "probabilities")


def test_regression(golden):
    _, outputs, arrays = check_reference(
        golden,
        "regression",
        AlbertForSequenceClassification,
        {"problem": "regression", "labels": None},
        reference_inputs,
        lambda arrays: arrays["labels"],
    )
    assert_close(outputs["logits"], arrays["logits"][:, None], "logits")


def test_multiple_choice(golden):
    _, outputs, arrays = check_reference(
        golden, "race", AlbertForMultipleChoice, {}, reference_choices, lambda arrays: arrays["labels"]
    )
    assert_close(outputs["logits"], arrays["logits"], "logits")
    assert_close(tf.nn.softmax(outputs["logits"]), arrays["probabilities"], "probabilities")


def test_span_head(golden):
    _, outputs, arrays = check_reference(
        golden, "squad_v1", AlbertForQuestionAnswering, {}, reference_inputs, positions, "train_loss"
    )
    for name in ("start_logits", "end_logits"):
        assert_close(outputs[name], arrays[name], name)


def test_beam_head(golden):
    model, outputs, arrays = check_reference(
        golden,
        "squad_v2",
        AlbertForQuestionAnswering,
        {"head": "beam"},
        lambda arrays: reference_inputs(arrays, "p_mask", "start_positions"),
        lambda arrays: positions(arrays, "is_impossible"),
        "train_loss",
        num_heads=11,
    )
    assert set(outputs) == {"start_log_probs", "end_log_probs", "cls_logits"}
    assert_close(outputs["start_log_probs"], arrays["start_log_probs"], "start_log_probs")
    assert_close(outputs["end_log_probs"], arrays["end_log_probs"], "end_log_probs")
    assert_close(outputs["cls_logits"], arrays["train_cls_logits"], "cls_logits")
    beams = model(reference_inputs(arrays, "p_mask"))
    assert len(beams) == 5
    for name in ("start_top_log_probs", "end_top_log_probs", "cls_logits"):
        assert_close(beams[name], arrays[name], name)
    for name in ("start_top_index", "end_top_index"):
        np.testing.assert_array_equal(beams[name], arrays[name], err_msg=name)


# === Hugging Face ===


def huggingface(golden, name, kind):
    case = golden(f"hf_for_{name}")
    model = kind.from_pretrained(case.folder)
    return (
        model,
        case.arrays,
        model({key: case.arrays[key] for key in ("input_ids", "attention_mask", "token_type_ids")}),
    )


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
    model, arrays, outputs = huggingface(golden, name, kind)
    assert_close(outputs["logits"], arrays["logits"], "logits", atol=1e-5)
    loss = model.compute_loss(y=arrays["labels"], y_pred=outputs)
    np.testing.assert_allclose(loss, arrays["loss"], atol=1e-5, rtol=0)


def test_names_of_labels_of_huggingface(golden):
    tokens = huggingface(golden, "token_classification", AlbertForTokenClassification)[0]
    assert tokens.labels == ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
    texts = huggingface(golden, "sequence_classification", AlbertForSequenceClassification)[0]
    assert (texts.labels, texts.problem) == (("negative", "neutral", "positive"), "classification")
    numbers = huggingface(golden, "sequence_regression", AlbertForSequenceClassification)[0]
    assert (numbers.num_labels, numbers.problem) == (1, "regression")


def test_masked_lm_of_huggingface(golden):
    model, arrays, outputs = huggingface(golden, "masked_lm", AlbertForMaskedLM)
    assert_close(outputs["logits"], arrays["logits"], "logits", atol=1e-5)
    labels = {"masked_lm_ids": np.maximum(arrays["labels"], 0), "masked_lm_weights": arrays["labels"] != -100}
    loss = model.compute_loss(y=labels, y_pred=outputs)
    np.testing.assert_allclose(loss, arrays["loss"], atol=1e-5, rtol=0)


def test_question_answering_of_huggingface(golden):
    model, arrays, outputs = huggingface(golden, "question_answering", AlbertForQuestionAnswering)
    for name in ("start_logits", "end_logits"):
        assert_close(outputs[name], arrays[name], name, atol=1e-5)
    assert arrays["start_positions"][-1] >= arrays["input_ids"].shape[1], "the last row is one that is left out"
    loss = model.compute_loss(y=positions(arrays), y_pred=outputs)
    np.testing.assert_allclose(loss, arrays["loss"], atol=1e-5, rtol=0)
