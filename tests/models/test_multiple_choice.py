"""Proves that choices are scored each by itself and compete within their row, whatever their number."""

import keras
import numpy as np
import pytest

from albert_tf import AlbertForMultipleChoice, AlbertForSequenceClassification

from .small import CONFIG, make_choices

ROWS, CHOICES = 6, 3
INPUTS = make_choices(ROWS, CHOICES)
LABELS = np.random.default_rng(1).integers(0, CHOICES, ROWS)


def make_model(**compile_arguments):
    keras.utils.set_random_seed(5)
    model = AlbertForMultipleChoice(CONFIG)
    # Scores that are far enough apart for losses to differ.
    model.classifier.kernel.assign(model.classifier.kernel * 50)
    model.compile(**{"optimizer": "sgd", "run_eagerly": True, **compile_arguments})
    return model


def test_a_choice_has_the_score_that_a_text_has():
    model = make_model()
    texts = AlbertForSequenceClassification(CONFIG, problem="regression")
    texts.set_weights(model.get_weights())
    flat = {name: array.reshape(ROWS * CHOICES, -1) for name, array in INPUTS.items()}
    expected = np.reshape(texts(flat)["logits"], (ROWS, CHOICES))
    np.testing.assert_allclose(model(INPUTS)["logits"], expected, atol=1e-6)
    np.testing.assert_array_equal(
        model(INPUTS["input_ids"])["logits"], model({"input_ids": INPUTS["input_ids"]})["logits"]
    )


def test_any_number_of_choices():
    model = make_model()
    whole = np.asarray(model(INPUTS)["logits"])
    for some in ([1], [2, 0], [0, 1, 2, 2]):
        few = {name: array[:, some] for name, array in INPUTS.items()}
        np.testing.assert_allclose(model(few)["logits"], whole[:, some], atol=1e-6)


def test_its_own_loss():
    model = make_model()
    logits = np.asarray(model(INPUTS)["logits"], "float64")
    log_probabilities = logits - np.log(np.sum(np.exp(logits), axis=-1, keepdims=True))
    losses = -log_probabilities[np.arange(ROWS), LABELS]
    expected = {"loss": losses.mean(), "cross_entropy": losses.mean()}
    logs = model.evaluate(INPUTS, LABELS, batch_size=4, return_dict=True, verbose=0)
    assert logs == pytest.approx({**expected, "accuracy": np.mean(np.argmax(logits, -1) == LABELS)}, abs=1e-6)
    weights = np.random.default_rng(2).uniform(0.1, 3, ROWS)
    logs = model.evaluate(INPUTS, LABELS, sample_weight=weights, return_dict=True, verbose=0)
    assert logs["cross_entropy"] == pytest.approx(np.mean(losses * weights), abs=1e-6)
