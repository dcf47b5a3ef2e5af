"""Proves every task head equal to the reference's and to Hugging Face's: outputs, losses, the reference's gradients."""

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

from .golden import WEIGHTS_OF, assert_close, assert_gradients, assert_loss, reference_inputs

EDGES = ("start_positions", "end_positions")

# === The reference ===

CLASSIFIER = (AlbertForSequenceClassification, {"labels": ["contradiction", "entailment", "neutral"]})
# Class and arguments, further inputs, names of labels, outputs by the names of their arrays, loss, number of gradients.
HEADS = {
    "classifier": (*CLASSIFIER, (), None, {"logits": "logits"}, "loss", 27),
    "regression": (
        *(AlbertForSequenceClassification, {"problem": "regression", "labels": None}),
        *((), None, {"logits": "logits"}, "loss", 27),
    ),
    "race": (AlbertForMultipleChoice, {}, (), None, {"logits": "logits"}, "loss", 27),
    "squad_v1": (
        *(AlbertForQuestionAnswering, {"mask_padding": False}, (), EDGES),
        *({"start_logits": "start_logits", "end_logits": "end_logits"}, "train_loss", 27),
    ),
    "squad_v2": (
        *(AlbertForQuestionAnswering, {"head": "beam"}, ("p_mask", "start_positions"), (*EDGES, "is_impossible")),
        {name: name for name in ("start_log_probs", "end_log_probs")} | {"cls_logits": "train_cls_logits"},
        *("train_loss", 36),
    ),
}


@pytest.mark.parametrize("name", HEADS)
def test_heads_of_the_reference(name, golden):
    kind, arguments, extra, label_names, outputs_of, loss_name, num_gradients = HEADS[name]
    arrays = golden(f"M3_heads/{name}").arrays
    inputs = reference_inputs(arrays, *extra)
    if kind is AlbertForMultipleChoice:  # the reference lays the four choices of a row one behind the other
        inputs = {key: array.reshape(-1, 4, 24) for key, array in inputs.items()}
    labels = arrays["labels"] if label_names is None else {key: arrays[key] for key in label_names}
    model = kind.from_pretrained(WEIGHTS_OF / "M3_heads" / name, **arguments)
    outputs = model(inputs)
    assert set(outputs) == set(outputs_of)
    for key, recorded in outputs_of.items():
        assert_close(outputs[key], arrays[recorded][:, None] if name == "regression" else arrays[recorded], key)
    if name in ("classifier", "race"):
        assert_close(ops.softmax(outputs["logits"]), arrays["probabilities"], "probabilities")
    assert_loss(model, labels, outputs, arrays[loss_name])
    assert_gradients(model, inputs, labels, arrays, num_gradients)


def test_beams_of_the_reference(golden):
    arrays = golden("M3_heads/squad_v2").arrays
    model = AlbertForQuestionAnswering.from_pretrained(WEIGHTS_OF / "M3_heads/squad_v2", head="beam")
    beams = model(reference_inputs(arrays, "p_mask"))
    assert len(beams) == 5
    for name in ("start_top_log_probs", "end_top_log_probs", "cls_logits"):
        assert_close(beams[name], arrays[name], name)
    for name in ("start_top_index", "end_top_index"):
        np.testing.assert_array_equal(ops.convert_to_numpy(beams[name]), arrays[name], err_msg=name)


# === Hugging Face ===


def huggingface(golden, name, kind, **arguments):
    case = golden(name)
    model = kind.from_pretrained(case.folder, **arguments)
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


def test_names_of_labels_of_huggingface(golden):
    tokens = huggingface(golden, "hf_for_token_classification", AlbertForTokenClassification)[0]
    assert tokens.labels == ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
    texts = huggingface(golden, "hf_for_sequence_classification", AlbertForSequenceClassification)[0]
    assert (texts.labels, texts.problem) == (("negative", "neutral", "positive"), "classification")
    numbers = huggingface(golden, "hf_for_sequence_regression", AlbertForSequenceClassification)[0]
    assert (numbers.num_labels, numbers.problem) == (1, "regression")


def test_masked_lm_of_huggingface(golden):
    model, arrays, outputs = huggingface(golden, "hf_for_masked_lm", AlbertForMaskedLM)
    assert_close(outputs["logits"], arrays["logits"], "logits", atol=1e-5)
    labels = {"masked_lm_ids": np.maximum(arrays["labels"], 0), "masked_lm_weights": arrays["labels"] != -100}
    assert_loss(model, labels, outputs, arrays["loss"], atol=1e-5)


def test_question_answering_of_huggingface(golden):
    model, arrays, outputs = huggingface(
        golden, "hf_for_question_answering", AlbertForQuestionAnswering, mask_padding=False
    )
    for name in ("start_logits", "end_logits"):
        assert_close(outputs[name], arrays[name], name, atol=1e-5)
    assert arrays["start_positions"][-1] >= arrays["input_ids"].shape[1], "the last row is one that is left out"
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
