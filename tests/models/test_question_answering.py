"""Proves the losses of both heads against NumPy, that beams hold the likeliest answers, and the errors."""

import keras
import numpy as np
import pytest

from albert_tf import AlbertForQuestionAnswering

from .small import CONFIG, make_inputs

ROWS, LENGTH, K, J = 6, 11, 3, 2
INPUTS = make_inputs(ROWS, LENGTH)
WEIGHTS = np.random.default_rng(2).uniform(0.1, 3, ROWS)
# Where the question stands, and the padding; the first token can be answered with, as for "no answer".
P_MASK = ((np.arange(LENGTH) == 1) | (INPUTS["attention_mask"] == 0)).astype("int32")
LABELS = {
    "start_positions": np.array([0, 2, 2, 0, 2, 0], "int32"),
    "end_positions": np.array([2, 2, 2, 0, 2, 0], "int32"),
    "is_impossible": np.array([0, 0, 0, 1, 0, 1], "int32"),
}
TRAINING = {**INPUTS, "p_mask": P_MASK, "start_positions": LABELS["start_positions"]}
SPAN_LABELS = {name: LABELS[name] for name in ("start_positions", "end_positions")}


def make_model(head, config=CONFIG, **compile_arguments):
    keras.utils.set_random_seed(5)
    model = AlbertForQuestionAnswering(config, head, start_n_top=K, end_n_top=J)
    # Scores that are far enough apart for losses to differ.
    for variable in model.answers.trainable_variables:
        if variable.path.endswith("kernel"):
            variable.assign(variable * 20)
    model.compile(**{"optimizer": "sgd", "run_eagerly": True, **compile_arguments})
    return model


def log_softmax(scores):
    scores = np.asarray(scores, "float64")
    return scores - np.log(np.sum(np.exp(scores), axis=-1, keepdims=True))


def losses_of(outputs, edge, kind):
    return -log_softmax(outputs[f"{edge}_{kind}"])[np.arange(ROWS), LABELS[f"{edge}_positions"]]


# === Span ===


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_loss_of_the_span_head(weights):
    model = make_model("span")
    outputs = model(INPUTS)
    starts, ends = (losses_of(outputs, edge, "logits") for edge in ("start", "end"))
    factors = 1.0 if weights is None else weights
    expected = {
        "loss": np.mean(factors * (starts + ends)) / 2,
        "start_loss": np.mean(factors * starts) / 2,
        "end_loss": np.mean(factors * ends) / 2,
        "start_accuracy": accuracy(outputs["start_logits"], "start"),
        "end_accuracy": accuracy(outputs["end_logits"], "end"),
    }
    logs = model.evaluate(INPUTS, SPAN_LABELS, sample_weight=weights, batch_size=ROWS, return_dict=True, verbose=0)
    assert logs == pytest.approx(expected, abs=1e-6)
    columns = {name: array[:, None] for name, array in SPAN_LABELS.items()}
    assert float(model.compute_loss(y=columns, y_pred=outputs, sample_weight=weights)) == pytest.approx(logs["loss"])


def accuracy(scores, edge):
    return np.mean(np.argmax(scores, -1) == LABELS[f"{edge}_positions"])


def test_positions_beyond_the_sequence_are_left_out_and_those_below_0_are_0():
    model = make_model("span")
    outputs = model(INPUTS)
    starts, ends = (losses_of(outputs, edge, "logits") for edge in ("start", "end"))
    labels = {name: array.copy() for name, array in SPAN_LABELS.items()}
    labels["start_positions"][:2] = LENGTH, 1000
    labels["end_positions"][5] = -1
    expected = np.mean(starts[2:]) / 2 + np.mean(ends) / 2
    assert float(model.compute_loss(y=labels, y_pred=outputs)) == pytest.approx(expected, abs=1e-6)


# === Beam ===


def test_loss_of_the_beam_head():
    model = make_model("beam")
    outputs = model(TRAINING)
    no_answer = np.asarray(outputs["cls_logits"], "float64") * (1 - 2 * LABELS["is_impossible"])
    expected = {
        "start_loss": np.mean(losses_of(outputs, "start", "log_probs") * WEIGHTS) / 2,
        "end_loss": np.mean(losses_of(outputs, "end", "log_probs") * WEIGHTS) / 2,
        "no_answer_loss": np.mean(np.log1p(np.exp(no_answer)) * WEIGHTS) / 2,
        "start_accuracy": accuracy(outputs["start_log_probs"], "start"),
        "end_accuracy": accuracy(outputs["end_log_probs"], "end"),
    }
    expected["loss"] = expected["start_loss"] + expected["end_loss"] + expected["no_answer_loss"]
    logs = model.evaluate(TRAINING, LABELS, sample_weight=WEIGHTS, batch_size=ROWS, return_dict=True, verbose=0)
    assert logs == pytest.approx(expected, abs=1e-6)


def test_beams_are_the_likeliest_answers():
    model = make_model("beam")
    beams = {name: np.asarray(value) for name, value in model({**INPUTS, "p_mask": P_MASK}).items()}
    assert {name: value.shape[1:] for name, value in beams.items()} == {
        "cls_logits": (),
        **dict.fromkeys(("start_top_log_probs", "start_top_index"), (K,)),
        **dict.fromkeys(("end_top_log_probs", "end_top_index"), (K * J,)),
    }
    for beam in range(K):
        starts = beams["start_top_index"][:, beam]
        given = model({**TRAINING, "start_positions": starts})
        likeliest = np.argsort(-np.asarray(given["start_log_probs"]), axis=-1, kind="stable")
        np.testing.assert_array_equal(starts, likeliest[:, beam])
        ends = np.asarray(given["end_log_probs"])
        of_beam = slice(beam * J, (beam + 1) * J)
        np.testing.assert_array_equal(
            beams["end_top_index"][:, of_beam], np.argsort(-ends, axis=-1, kind="stable")[:, :J]
        )
        np.testing.assert_allclose(beams["end_top_log_probs"][:, of_beam], -np.sort(-ends, axis=-1)[:, :J], rtol=1e-5)
        np.testing.assert_allclose(given["cls_logits"], beams["cls_logits"], atol=1e-6)


@pytest.mark.exhaustive
def test_beams_under_xla():
    model, inputs = make_model("beam"), {**INPUTS, "p_mask": P_MASK}
    expected = model(inputs)
    model.compile(jit_compile=True)
    found = model.predict(inputs, batch_size=4, verbose=0)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, atol=1e-5, rtol=1e-5, err_msg=name)


def test_the_end_depends_on_the_start():
    model = make_model("beam")
    ends = [model({**TRAINING, "start_positions": np.full(ROWS, start)})["end_log_probs"] for start in (0, 2)]
    assert np.max(np.abs(np.exp(ends[0]) - np.exp(ends[1]))) > 0.01


def test_what_is_masked_is_no_answer():
    model = make_model("beam")
    for name in ("start_log_probs", "end_log_probs"):
        probabilities = np.exp(model(TRAINING)[name])
        assert np.all(probabilities[P_MASK == 1] == 0)
        np.testing.assert_allclose(np.sum(probabilities, axis=-1), 1, atol=1e-6)


def test_without_a_mask_of_answers_padding_is_masked():
    model, ids = make_model("beam"), INPUTS["input_ids"]
    padding = 1 - INPUTS["attention_mask"]
    for inputs, same in [
        (INPUTS, {**INPUTS, "p_mask": padding}),
        (ids, {"input_ids": ids, "p_mask": np.zeros_like(ids)}),
    ]:
        found, expected = model(inputs), model(same)
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array, err_msg=name)


def test_dropout_is_before_the_score_of_no_answer_alone():
    model = make_model("beam", CONFIG.replace(classifier_dropout_prob=0.5))
    still, training = model(TRAINING), model(TRAINING, training=True)
    for name in ("start_log_probs", "end_log_probs"):
        np.testing.assert_allclose(training[name], still[name], rtol=0, atol=1e-6, err_msg=name)
    assert np.all(np.abs(training["cls_logits"] - still["cls_logits"]) > 0)


# === Both ===


@pytest.mark.parametrize("head", ["span", "beam"])
def test_a_folder_keeps_the_head_and_has_no_pooler(head, tmp_path):
    model = make_model(head)
    assert not any("pooler" in path for path in model.variables_by_path())
    model.save_pretrained(tmp_path)
    again = AlbertForQuestionAnswering.from_pretrained(tmp_path)
    assert (again.head, again.head_settings()) == (head, model.head_settings())
    for name, array in model(INPUTS).items():
        np.testing.assert_array_equal(again(INPUTS)[name], array, err_msg=name)


def test_errors():
    with pytest.raises(ValueError, match=r"`head` must be 'span' or 'beam'\. Received: head='xlnet'"):
        AlbertForQuestionAnswering(CONFIG, head="xlnet")
    model = make_model("beam")
    with pytest.raises(ValueError, match=r"must contain `start_positions` to train .*add them"):
        model.fit(INPUTS, LABELS, verbose=0)
    with pytest.raises(ValueError, match=r"at least as long as .* Received: length=2, start_n_top=3, end_n_top=2;"):
        model(INPUTS["input_ids"][:, :2])
