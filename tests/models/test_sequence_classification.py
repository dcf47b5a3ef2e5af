"""Proves that a classifier trains and is scored as users of Keras type it: losses, weights, metrics, regression."""

import json

import keras
import numpy as np
import pytest

import albert_tf
from albert_tf import AlbertForSequenceClassification

from .small import CONFIG, make_inputs

ROWS, CLASSES = 10, 3
INPUTS = make_inputs(ROWS)
LABELS = np.random.default_rng(1).integers(0, CLASSES, ROWS)
WEIGHTS = np.random.default_rng(2).uniform(0.1, 3, ROWS)


def make_model(problem="classification", seed=5, **compile_arguments):
    keras.utils.set_random_seed(seed)
    model = AlbertForSequenceClassification(CONFIG, CLASSES if problem == "classification" else 1, problem)
    # Scores that are far enough apart for losses to differ.
    model.classifier.kernel.assign(model.classifier.kernel * 50)
    # Eagerly, which is quicker than to trace; other tests prove that the graph's numbers are the same.
    model.compile(**{"optimizer": "sgd", "run_eagerly": True, **compile_arguments})
    return model


def losses_of(model):
    """Cross entropy of each row, in float64."""
    logits = np.asarray(model(INPUTS)["logits"], "float64")
    log_probabilities = logits - np.log(np.sum(np.exp(logits), axis=-1, keepdims=True))
    return -log_probabilities[np.arange(ROWS), LABELS], np.argmax(logits, -1) == LABELS


def evaluate(model, labels=LABELS, batch_size=5, **arguments):
    return model.evaluate(INPUTS, labels, batch_size=batch_size, return_dict=True, verbose=0, **arguments)


def test_its_own_loss():
    model = make_model()
    losses, correct = losses_of(model)
    expected = {"loss": losses.mean(), "cross_entropy": losses.mean(), "accuracy": correct.mean()}
    assert evaluate(model) == pytest.approx(expected, abs=1e-6)
    assert evaluate(model, LABELS[:, None]) == pytest.approx(expected, abs=1e-6)
    # Batches of 4, 4 and 2: the last one counts for what it holds.
    assert evaluate(model, batch_size=4) == pytest.approx(expected, abs=1e-6)


def test_its_own_loss_under_weights():
    model = make_model()
    losses, correct = losses_of(model)
    logs = evaluate(model, sample_weight=WEIGHTS)
    assert logs["cross_entropy"] == pytest.approx(np.mean(losses * WEIGHTS), abs=1e-6)
    assert logs["accuracy"] == pytest.approx(correct.mean(), abs=1e-6)
    assert evaluate(model, sample_weight=WEIGHTS[:, None]) == logs
    # What weights are divided by is the number of rows, so the size of batches does not count.
    assert evaluate(model, sample_weight=WEIGHTS, batch_size=1) == pytest.approx(logs, abs=1e-6)


@pytest.mark.parametrize("loss", [None, "sparse_categorical_crossentropy"], ids=["own", "keras"])
@pytest.mark.parametrize("given", ["class_weight", "sample_weight"])
def test_weights_change_the_step_as_they_say(loss, given):
    class_weights = {0: 0.5, 1: 2.0, 2: 1.0}
    weights = np.array([class_weights[label] for label in LABELS])
    weighted = {"class_weight": class_weights} if given == "class_weight" else {"sample_weight": weights}
    model = make_model(optimizer=keras.optimizers.SGD(0.1), loss=loss)
    before = model.classifier.bias.numpy()
    probabilities = keras.ops.softmax(model(INPUTS)["logits"]).numpy()
    divisor = weights.sum() if loss is None else ROWS
    gradient = weights @ (probabilities - np.eye(CLASSES)[LABELS]) / divisor
    model.fit(INPUTS, LABELS, batch_size=ROWS, shuffle=False, verbose=0, **weighted)
    np.testing.assert_allclose(model.classifier.bias, before - 0.1 * gradient, atol=1e-6)


@pytest.mark.parametrize("loss", [None, "mse"], ids=["own", "keras"])
@pytest.mark.parametrize("shape", [(ROWS,), (ROWS, 1)])
def test_regression(loss, shape):
    model = make_model("regression", loss=loss)
    targets = np.random.default_rng(3).standard_normal(ROWS)
    errors = (np.asarray(model(INPUTS)["logits"], "float64")[:, 0] - targets) ** 2
    logs = evaluate(model, targets.reshape(shape))
    assert logs == pytest.approx(dict.fromkeys(logs, errors.mean()), rel=1e-5)
    assert set(logs) == ({"loss"} if loss else {"loss", "mean_squared_error"})


@pytest.mark.exhaustive
def test_a_compiled_model_saves_its_optimizer_and_goes_on(tmp_path):
    model = make_model(optimizer="adam")
    model.fit(INPUTS, LABELS, epochs=2, shuffle=False, verbose=0)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    for one in (model, again):
        one.fit(INPUTS, LABELS, epochs=2, shuffle=False, verbose=0)
    for found, expected in zip(again.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("problem", ["multi_label", "classification"])
def test_a_file_that_does_not_name_its_problem_has_its_labels_for_each(tmp_path, problem):
    AlbertForSequenceClassification(CONFIG, labels=["red", "round"]).save_pretrained(tmp_path)
    values = json.loads((tmp_path / "config.json").read_text())
    del values["problem_type"]
    (tmp_path / "config.json").write_text(json.dumps(values))
    model = AlbertForSequenceClassification.from_pretrained(tmp_path, problem=problem)
    assert (model.labels, model.problem) == (("red", "round"), problem)
    assert AlbertForSequenceClassification.from_pretrained(tmp_path).problem == "classification"
    number = AlbertForSequenceClassification.from_pretrained(tmp_path, problem="regression", new_head=True)
    assert number.num_labels == 1


def test_label_smoothing_is_that_of_keras():
    model = AlbertForSequenceClassification(
        albert_tf.AlbertConfig.from_preset("tiny"), num_labels=3, label_smoothing=0.2
    )
    logits, labels = np.random.default_rng(0).normal(size=(4, 3)).astype("float32"), np.array([0, 2, 1, 2])
    loss = model.loss_terms(labels, {"logits": logits})["cross_entropy"].mean()
    keras_loss = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.2)
    np.testing.assert_allclose(loss, keras_loss(np.eye(3)[labels], logits), rtol=1e-6)
    assert AlbertForSequenceClassification.from_config(model.get_config()).label_smoothing == 0.2
