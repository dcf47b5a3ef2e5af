"""Proves that a classifier from a file means by its columns what its labels say, and learns what the file's learnt."""

import json

import keras
import numpy as np
import pytest

from albert_tf import AlbertForSequenceClassification, AlbertForTokenClassification, checkpoints

from .small import CONFIG, make_inputs

INPUTS = make_inputs()
WIDE = CONFIG.replace(initializer_range=0.2)


@pytest.fixture(scope="module")
def model():
    return AlbertForSequenceClassification(WIDE, labels=["bad", "good", "mixed"])


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("named")
    model.save_pretrained(folder)
    return folder


def logits(model):
    return np.asarray(model(INPUTS)["logits"])


def encoder_weights(model):
    return {path: np.array(v) for path, v in model.variables_by_path().items() if path.startswith("encoder/")}


# === Names ===


def test_columns_follow_the_labels(model, folder, tmp_path):
    turned = AlbertForSequenceClassification.from_pretrained(folder, labels=["mixed", "bad", "good"])
    assert turned.labels == ("mixed", "bad", "good")
    np.testing.assert_array_equal(logits(turned), logits(model)[:, [2, 0, 1]])
    turned.save_pretrained(tmp_path)
    again = AlbertForSequenceClassification.from_pretrained(tmp_path, labels=model.labels, new_head=True)
    np.testing.assert_array_equal(logits(again), logits(model))


def test_other_labels_are_another_classifier(model, folder):
    labels = ["no", "perhaps", "yes"]
    with pytest.raises(
        ValueError,
        match=r"classifier of .* has the labels \['bad', 'good', 'mixed'\], but the model has \['no', .*; if .*"
        "config.json. Pass new_head=True",
    ):
        AlbertForSequenceClassification.from_pretrained(folder, labels=labels)
    fresh = AlbertForSequenceClassification.from_pretrained(folder, labels=labels, new_head=True)
    assert abs(np.corrcoef(np.ravel(fresh.classifier.kernel), np.ravel(model.classifier.kernel))[0, 1]) < 0.5
    for path, value in encoder_weights(fresh).items():
        np.testing.assert_array_equal(value, encoder_weights(model)[path], err_msg=path)


def test_a_classifier_of_texts_is_none_of_tokens(folder, model, tmp_path):
    with pytest.raises(ValueError, match=r"classifier of .* labels texts, but the model labels tokens"):
        AlbertForTokenClassification.from_pretrained(folder)
    tagger = AlbertForTokenClassification.from_pretrained(folder, new_head=True)
    assert np.max(np.abs(np.asarray(tagger.classifier.kernel) - np.asarray(model.classifier.kernel))) > 0.01
    tagger.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"labels tokens, but the model labels texts\. Pass new_head"):
        AlbertForSequenceClassification.from_pretrained(tmp_path, labels=model.labels)


def test_labels_without_names_get_them(tmp_path):
    unnamed = AlbertForSequenceClassification(WIDE, num_labels=2)
    unnamed.save_pretrained(tmp_path)
    named = AlbertForSequenceClassification.from_pretrained(tmp_path, labels=["no", "yes"])
    assert named.labels == ("no", "yes")
    np.testing.assert_array_equal(logits(named), logits(unnamed))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"labels": "bad"}, r"`labels` must be a list of different names, one per class\. Received: labels='bad'"),
        ({"labels": {"good": 1, "bad": 0}}, r"`labels` must be a list of different names"),
        ({"labels": ["bad", "bad", "good"]}, r"`labels` must be a list of different names, one per class"),
        ({"labels": [0, 1, 2]}, r"`labels` must be .*labels=\[0, 1, 2\]"),
        ({"labels": ["bad"]}, r"at least 2 for classification\. Received: labels=\['bad'\]; pass"),
        ({"num_labels": 1}, r"at least 2 for classification\. "),
        ({"num_labels": "2"}, r"must be an integer of at least 1\. Received: num_labels='2'"),
        ({"labels": ["bad", "good"], "num_labels": 3}, r"`labels` must have length `num_labels`"),
        ({"num_labels": 3, "problem": "ranking"}, r"`problem` must be .* Received: problem='ranking'"),
        ({"num_labels": 2, "problem": "regression"}, r"must be 1 for regression\. Received: num_labels=2"),
    ],
)
def test_labels_that_cannot_be(arguments, complaint, folder):
    with pytest.raises(ValueError, match=complaint):
        AlbertForSequenceClassification(CONFIG, **arguments)
    with pytest.raises(ValueError, match=complaint):
        AlbertForSequenceClassification.from_pretrained(folder, new_head=True, **arguments)


# === Several labels for each text ===

DECISIONS = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0], [0, 0, 1]])
WEIGHTS = np.array([1.0, 2.0, 0.5, 0.0, 3.0])


@pytest.fixture(scope="module")
def multi_label():
    model = AlbertForSequenceClassification(WIDE, labels=["law", "sport", "war"], problem="multi_label")
    model.compile("sgd", run_eagerly=True)
    return model


def test_its_loss_is_of_every_decision(multi_label):
    scores = np.asarray(logits(multi_label), "float64")
    probabilities = 1 / (1 + np.exp(-scores))
    losses = -np.log(np.where(DECISIONS == 1, probabilities, 1 - probabilities))
    right = ((scores > 0) == DECISIONS).mean()  # as in Keras, weights have no part in it
    each = np.random.default_rng(5).uniform(0.1, 3, DECISIONS.shape)  # [B, C]: a weight for each decision
    for weights in (None, WEIGHTS, each):
        factors = 1 if weights is None else weights.reshape(len(losses), -1)
        loss = (losses * factors).mean()
        expected = {"loss": loss, "binary_cross_entropy": loss, "accuracy": right}
        logs = multi_label.evaluate(INPUTS, DECISIONS, sample_weight=weights, batch_size=5, return_dict=True, verbose=0)
        assert logs == pytest.approx(expected, abs=1e-6)
    np.testing.assert_allclose(multi_label.probabilities(logits(multi_label)), probabilities, atol=1e-6)
    with pytest.raises(ValueError, match=r"must be 0 or 1, of shape \[B, 3\]..* Received: shape=\(5,\)"):
        multi_label.loss_terms(DECISIONS[:, 0], multi_label(INPUTS))


def test_a_file_of_hugging_face_says_so(multi_label, tmp_path):
    multi_label.save_pretrained(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["problem_type"] == "multi_label_classification"
    again = AlbertForSequenceClassification.from_pretrained(tmp_path)
    assert (again.problem, again.labels) == ("multi_label", ("law", "sport", "war"))
    np.testing.assert_array_equal(logits(again), logits(multi_label))
    checkpoints.write(checkpoints.read(tmp_path), tmp_path / "converted", "huggingface")
    multi_label.save(tmp_path / "model.keras")
    assert AlbertForSequenceClassification.from_pretrained(tmp_path / "converted").problem == "multi_label"
    assert keras.saving.load_model(tmp_path / "model.keras").problem == "multi_label"


def test_a_classifier_of_another_problem_is_another_one(multi_label, tmp_path):
    multi_label.save_pretrained(tmp_path)
    other = {"labels": multi_label.labels, "problem": "classification"}
    with pytest.raises(ValueError, match=r"classifier of .* is for multi_label, but the model is for classification"):
        AlbertForSequenceClassification.from_pretrained(tmp_path, **other)
    fresh = AlbertForSequenceClassification.from_pretrained(tmp_path, new_head=True, **other)
    assert fresh.problem == "classification"
    assert np.max(np.abs(logits(fresh) - logits(multi_label))) > 0.01


def test_googles_format_has_no_such_classifier(multi_label, tmp_path):
    with pytest.raises(ValueError, match="Google's code has no multi-label classifier"):
        checkpoints.save_google(multi_label, tmp_path / "model.ckpt")
    multi_label.save_pretrained(tmp_path / "hf")
    with pytest.raises(ValueError, match="Google's code has no multi-label classifier"):
        checkpoints.write(checkpoints.read(tmp_path / "hf"), tmp_path / "google", "google")
