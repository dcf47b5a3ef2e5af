"""Proves that what Keras' guides teach works: own steps and losses in subclasses, freezing, data of every kind."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from albert_tf import AlbertForSequenceClassification, AlbertForTokenClassification
from tests.parameters import first_of

from .small import CONFIG, largest_difference, make_inputs

ROWS = 8
INPUTS = make_inputs(ROWS)
LABELS = np.random.default_rng(1).integers(0, 3, ROWS)


def make_model(kind=AlbertForSequenceClassification, **compile_arguments):
    keras.utils.set_random_seed(3)
    model = kind(CONFIG, num_labels=3)
    model.compile(**{"optimizer": keras.optimizers.SGD(0.1), "run_eagerly": True, **compile_arguments})
    return model


# === Subclasses ===


class OwnTrainStep(AlbertForSequenceClassification):
    """As Keras' guide writes it."""

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            outputs = self(x, training=True)
            loss = self.compute_loss(x=x, y=y, y_pred=outputs)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        return {**self.compute_metrics(x, y, outputs), "own": tf.constant(7.0)}


class SuperTrainStep(AlbertForSequenceClassification):
    def train_step(self, data):
        return {**super().train_step(data), "own": tf.constant(7.0)}


class OwnTestStep(AlbertForSequenceClassification):
    def test_step(self, data):
        return {"own": tf.constant(8.0)}


class DoubledLoss(AlbertForSequenceClassification):
    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return 2.0 * super().compute_loss(x, y, y_pred, sample_weight, training)


class AddedLoss(AlbertForSequenceClassification):
    def call(self, inputs, training=False):
        outputs = super().call(inputs, training=training)
        self.add_loss(ops.mean(ops.square(outputs["logits"])) + 0.25)
        return outputs


class Regularized(AlbertForSequenceClassification):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.classifier.trainable_variables[0].regularizer = keras.regularizers.L2(10.0)

    def penalty(self):
        return 10.0 * np.sum(np.square(self.classifier.trainable_variables[0]))


class OwnMetrics(AlbertForSequenceClassification):
    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        logs = super().compute_metrics(x, y, y_pred, sample_weight)
        return {"rows": ops.cast(ops.shape(y)[0], "float32"), "accuracy": logs["accuracy"]}


@pytest.mark.parametrize(("kind", "run_eagerly"), first_of([(OwnTrainStep, True), (SuperTrainStep, False)]))
def test_an_own_train_step_runs(kind, run_eagerly):
    model, plain = make_model(kind, run_eagerly=run_eagerly), make_model()
    expected, found = (each.fit(INPUTS, LABELS, batch_size=ROWS, verbose=0).history for each in (plain, model))
    assert found["own"] == [7]
    for name in ("cross_entropy", "accuracy"):
        assert found[name] == pytest.approx(expected[name])
    assert largest_difference(model, plain) < 1e-6
    logs = model.evaluate(INPUTS, LABELS, batch_size=3, return_dict=True, verbose=0)
    assert logs == pytest.approx(plain.evaluate(INPUTS, LABELS, batch_size=3, return_dict=True, verbose=0), abs=1e-5)


def test_an_own_test_step_runs():
    model = make_model(OwnTestStep)
    assert model.evaluate(INPUTS, LABELS, return_dict=True, verbose=0) == {"own": 8}
    plain = make_model()
    for each in (model, plain):
        each.fit(INPUTS, LABELS, batch_size=4, shuffle=False, verbose=0)
    assert largest_difference(model, plain) < 1e-6


def test_an_own_train_step_has_no_parts():
    with pytest.raises(ValueError, match=r"must be 1 .* overrides train_step or test_step"):
        make_model(OwnTrainStep, gradient_accumulation_steps=2)


@pytest.mark.parametrize(("parts", "loss"), first_of([(2, None), (1, "sparse_categorical_crossentropy")]))
def test_an_own_compute_loss_is_minimised(parts, loss):
    doubled = make_model(DoubledLoss, loss=loss, gradient_accumulation_steps=parts)
    plain = make_model(loss=loss, optimizer=keras.optimizers.SGD(0.2))
    found, expected = (m.train_on_batch(INPUTS, LABELS, return_dict=True) for m in (doubled, plain))
    assert found["loss"] == pytest.approx(2 * expected["loss"], rel=1e-5)
    assert largest_difference(doubled, plain) < 1e-6
    assert doubled.evaluate(INPUTS, LABELS, return_dict=True, verbose=0)["loss"] == pytest.approx(
        2 * plain.evaluate(INPUTS, LABELS, return_dict=True, verbose=0)["loss"], rel=1e-4
    )


@pytest.mark.parametrize(("parts", "loss"), first_of([(2, None), (1, "sparse_categorical_crossentropy")]))
def test_added_losses_count_once(parts, loss):
    plain = make_model().test_on_batch(INPUTS, LABELS, return_dict=True)["loss"]
    added = make_model(AddedLoss, loss=loss, gradient_accumulation_steps=parts)
    expected = plain + np.mean(np.square(added(INPUTS)["logits"])) + 0.25
    assert added.test_on_batch(INPUTS, LABELS, return_dict=True)["loss"] == pytest.approx(expected, rel=1e-5)
    assert added.train_on_batch(INPUTS, LABELS, return_dict=True)["loss"] == pytest.approx(expected, rel=1e-5)
    regularized = make_model(Regularized, loss=loss, gradient_accumulation_steps=parts)
    expected, before = plain + regularized.penalty(), regularized.penalty()
    assert regularized.test_on_batch(INPUTS, LABELS, return_dict=True)["loss"] == pytest.approx(expected, rel=1e-5)
    assert regularized.train_on_batch(INPUTS, LABELS, return_dict=True)["loss"] == pytest.approx(expected, rel=1e-5)
    assert 0 < regularized.penalty() < 10 * before


def test_own_compute_metrics_are_what_is_logged():
    model, plain = make_model(OwnMetrics, gradient_accumulation_steps=2), make_model()
    expected = plain.train_on_batch(INPUTS, LABELS, return_dict=True)
    found = model.train_on_batch(INPUTS, LABELS, return_dict=True)
    assert found == {"rows": ROWS / 2, "accuracy": pytest.approx(expected["accuracy"])}


# === Frozen and unfrozen ===


def fit(model, length=11, **arguments):
    inputs = {name: array[:, :length] for name, array in INPUTS.items()}
    return model.fit(inputs, LABELS, batch_size=4, shuffle=False, verbose=0, **arguments).history


@pytest.mark.exhaustive
def test_unfreezing_without_compiling_has_no_effect_and_says_so():
    model = make_model(run_eagerly=False)
    model.encoder.trainable = False
    model.compile("sgd")
    before = [variable.numpy() for variable in model.encoder.weights]
    fit(model)
    model.encoder.trainable = True
    with pytest.warns(UserWarning, match=r"`trainable` has changed .* compile\(\) again"):
        fit(model, length=7)
    assert all(np.array_equal(a, b) for a, b in zip(model.encoder.weights, before, strict=True))
    model.compile("sgd")
    fit(model, length=7)
    assert not all(np.array_equal(a, b) for a, b in zip(model.encoder.weights, before, strict=True))


def test_a_frozen_model_is_warned_of_as_keras_does():
    model = make_model()
    model.trainable = False
    model.compile("sgd", run_eagerly=True)
    before = model.get_weights()
    with pytest.warns(UserWarning, match="does not have any trainable weights"):
        logs = fit(model)
    assert logs["loss"][0] > 0
    assert all(np.array_equal(a, b) for a, b in zip(model.get_weights(), before, strict=True))


@pytest.mark.exhaustive
def test_weights_of_tokens_and_then_of_rows():
    model = make_model(AlbertForTokenClassification, run_eagerly=False)
    labels, random = np.zeros((ROWS, 11), int), np.random.default_rng(5)
    for shape in ((ROWS, 11), (ROWS,), (ROWS, 1), (ROWS, 11)):
        logs = model.fit(INPUTS, labels, sample_weight=random.uniform(0, 1, shape), batch_size=4, verbose=0).history
        assert np.isfinite(logs["loss"][0])
