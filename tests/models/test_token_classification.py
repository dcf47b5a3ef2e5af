"""Proves that tokens are labelled as users of Keras type it: ignored labels, weights of rows and of tokens, names."""

import keras
import numpy as np
import pytest

from albert_tf import AlbertForTokenClassification

from .small import CONFIG, make_inputs

ROWS, LENGTH, CLASSES = 6, 11, 3
INPUTS = make_inputs(ROWS, LENGTH)
LABELS = np.where(
    INPUTS["attention_mask"] == 1, np.random.default_rng(1).integers(0, CLASSES, (ROWS, LENGTH)), -100
).astype("int32")
WEIGHTS = np.random.default_rng(2).uniform(0.1, 3, ROWS)


def make_model(**compile_arguments):
    keras.utils.set_random_seed(5)
    model = AlbertForTokenClassification(CONFIG, CLASSES)
    # Scores that are far enough apart for losses to differ.
    model.classifier.kernel.assign(model.classifier.kernel * 50)
    model.compile(**{"optimizer": "sgd", "run_eagerly": True, **compile_arguments})
    return model


def expected_logs(model, weights):
    """Loss and accuracy in float64 NumPy, weights [B, L] or [B, 1]."""
    logits = np.asarray(model(INPUTS)["logits"], "float64")
    log_probabilities = logits - np.log(np.sum(np.exp(logits), axis=-1, keepdims=True))
    losses = -np.take_along_axis(log_probabilities, np.maximum(LABELS, 0)[..., None], axis=-1)[..., 0]
    loss = np.average(losses * weights, weights=LABELS != -100)
    accuracy = np.average(np.argmax(logits, -1) == LABELS, weights=LABELS != -100)
    return pytest.approx({"loss": loss, "cross_entropy": loss, "accuracy": accuracy}, abs=1e-6)


def evaluate(model, **arguments):
    return model.evaluate(INPUTS, LABELS, batch_size=ROWS, return_dict=True, verbose=0, **arguments)


def test_ignored_labels():
    assert np.any(LABELS == -100)
    model = make_model()
    assert evaluate(model) == expected_logs(model, np.ones((ROWS, LENGTH)))


def test_batches_count_for_what_they_hold():
    model = make_model()
    terms = [
        model.loss_terms(LABELS[part], model({k: v[part] for k, v in INPUTS.items()}))["cross_entropy"]
        for part in (slice(4), slice(4, 6))
    ]
    mean = sum(term.total for term in terms) / sum(term.weight for term in terms)
    assert evaluate(model)["loss"] == pytest.approx(float(mean), abs=1e-6)


def test_weights_of_rows_and_of_tokens():
    model = make_model()
    for weights in (WEIGHTS, WEIGHTS[:, None], np.random.default_rng(4).uniform(0.1, 3, (ROWS, LENGTH))):
        assert evaluate(model, sample_weight=weights) == expected_logs(model, weights.reshape(ROWS, -1))
    by_class = np.array([1.0, 2.0, 0.5])
    expected, found = (
        make_model().fit(INPUTS, LABELS, batch_size=ROWS, verbose=0, **options).history
        for options in (
            {"sample_weight": by_class[np.maximum(LABELS, 0)]},
            {"class_weight": {1: 2, make_model().labels[2]: 0.5}},
        )
    )
    assert found == expected
    with pytest.raises(ValueError, match=r"without `validation_split`.*one per row, or one per label"):
        model.fit(INPUTS, LABELS, class_weight={0: 1.0}, validation_split=0.5)


def test_a_batch_without_any_label_changes_nothing():
    model = make_model()
    before = model.get_weights()
    loss = model.fit(INPUTS, np.full_like(LABELS, -100), batch_size=ROWS, verbose=0).history["loss"]
    assert loss == [0.0]
    for found, expected in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_folder_keeps_the_names_and_has_no_pooler(tmp_path):
    model = AlbertForTokenClassification(CONFIG, labels=["O", "B-PER", "I-PER"])
    assert not any("pooler" in path for path in model.variables_by_path())
    model.save_pretrained(tmp_path)
    again = AlbertForTokenClassification.from_pretrained(tmp_path)
    assert again.labels == ("O", "B-PER", "I-PER")
    np.testing.assert_array_equal(again(INPUTS)["logits"], model(INPUTS)["logits"])
