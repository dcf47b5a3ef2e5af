"""Proves what `compile` makes of losses and metrics, by whatever name they come, the first time and again."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from albert_tf import AlbertForQuestionAnswering, AlbertForSequenceClassification, AlbertForTokenClassification
from tests.parameters import first_of

from .small import CONFIG, largest_difference, make_inputs

ROWS, CLASSES = 8, 3
INPUTS = make_inputs(ROWS)
LABELS = np.random.default_rng(2).integers(0, CLASSES, ROWS)
WEIGHTS = np.random.default_rng(3).uniform(0.2, 2, ROWS).astype("float32")
WIDE = CONFIG.replace(initializer_range=0.5)  # scores that differ


def make_model(**compile_arguments):
    keras.utils.set_random_seed(3)
    model = AlbertForSequenceClassification(WIDE, num_labels=CLASSES)
    model.compile(**{"optimizer": keras.optimizers.SGD(0.1), "run_eagerly": True, **compile_arguments})
    return model


def evaluate(model, labels=LABELS, **arguments):
    return model.evaluate(INPUTS, labels, batch_size=3, return_dict=True, verbose=0, **arguments)


@pytest.fixture(scope="module")
def logits():
    return np.asarray(make_model()(INPUTS)["logits"])


@pytest.fixture(scope="module")
def accuracy(logits):
    accuracy = np.mean(np.argmax(logits, -1) == LABELS)
    assert 0 < accuracy < 1
    return accuracy


# === Metrics ===


@pytest.mark.parametrize(
    ("given", "name", "metric", "problem"),
    [
        ("AUC", "AUC", keras.metrics.AUC(), "classification"),
        ("AUC", "AUC", keras.metrics.AUC(), "multi_label"),
        ("bce", "bce", keras.metrics.BinaryCrossentropy(), "multi_label"),
        (keras.metrics.binary_accuracy, "binary_accuracy", keras.metrics.BinaryAccuracy(), "multi_label"),
        (None, "binary_io_u", keras.metrics.BinaryIoU([1], 0.4), "classification"),
        (None, "f1_score", keras.metrics.F1Score("micro", 0.5), "classification"),
        (None, "p", keras.metrics.Precision(0.4), "multi_label"),
        (None, "r", keras.metrics.RecallAtPrecision(0.4), "classification"),
    ],
)
def test_metrics_of_probabilities_get_them(given, name, metric, problem):
    keras.utils.set_random_seed(3)
    model = AlbertForSequenceClassification(WIDE, num_labels=CLASSES, problem=problem)
    loss = "categorical_crossentropy" if problem == "classification" else None
    given = given or type(metric).from_config({**metric.get_config(), "name": name})
    model.compile("sgd", loss, metrics=[given], run_eagerly=True)
    one_hot, outputs = np.eye(CLASSES)[LABELS], model(INPUTS)["logits"]
    metric.reset_state()
    metric.update_state(one_hot, ops.softmax(outputs) if loss else ops.sigmoid(outputs))
    assert evaluate(model, one_hot)[name] == pytest.approx(float(metric.result()), abs=1e-6)


def test_metrics_configured_for_logits_stay_and_files_keep_both(tmp_path):
    kept = [keras.metrics.AUC(from_logits=True), keras.metrics.BinaryAccuracy("a", threshold=0.0)]
    model = AlbertForSequenceClassification(WIDE, num_labels=1, problem="multi_label")
    model.compile("sgd", metrics=[*kept, "recall"])
    labels = (LABELS > 0)[:, None]
    logs = evaluate(model, labels)
    assert model.reported_metrics.compiled.metrics[:2] == kept
    assert logs["accuracy"] == logs["a"]
    model.optimizer.build(model.trainable_variables)
    model.save(tmp_path / "model.keras")
    assert evaluate(keras.saving.load_model(tmp_path / "model.keras"), labels) == pytest.approx(logs)
    stop = keras.callbacks.EarlyStopping("recall")
    model.fit(INPUTS, labels, epochs=2, callbacks=[stop], verbose=0)
    assert stop.monitor_op(2, 1)  # "auto": more recall is better


# === Again ===

KERAS = {"loss": "sparse_categorical_crossentropy", "metrics": ["accuracy"]}


def test_a_second_compile_of_a_saved_model_replaces_loss_and_metrics(accuracy, tmp_path):
    model = make_model()
    own = evaluate(model)
    assert set(own) == {"loss", "cross_entropy", "accuracy"}
    model.optimizer.build(model.trainable_variables)
    model.save(tmp_path / "model.keras")
    model = keras.saving.load_model(tmp_path / "model.keras")
    model.compile("sgd", run_eagerly=True, **KERAS)
    found = evaluate(model)
    assert found == {"loss": pytest.approx(own["loss"]), "accuracy": pytest.approx(accuracy)}
    assert len(model.evaluate(INPUTS, LABELS, verbose=0)) == 2


def test_compiled_twice_it_reports_the_same(accuracy):
    model = make_model()
    expected = evaluate(model)
    model.compile("sgd", run_eagerly=True)
    assert evaluate(model) == expected
    assert len(model.evaluate(INPUTS, LABELS, verbose=0)) == 3
    assert expected["accuracy"] == pytest.approx(accuracy)


def test_compiled_without_a_loss_it_goes_back_to_its_own():
    model, expected = make_model(**KERAS), evaluate(make_model())
    evaluate(model)
    model.compile("sgd", run_eagerly=True)
    assert model.loss is None
    assert evaluate(model) == expected


# === Losses by any name ===


def cross_entropies(logits):
    log_probabilities = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return -log_probabilities[np.arange(ROWS), LABELS]


@pytest.mark.parametrize(
    "loss",
    [
        "SparseCategoricalCrossentropy",
        keras.losses.SparseCategoricalCrossentropy,
        keras.losses.sparse_categorical_crossentropy,
        {"logits": "sparse_categorical_crossentropy"},
    ],
    ids=["class name", "class", "function", "dict"],
)
def test_sparse_labels(loss, logits):
    assert evaluate(make_model(loss=loss))["loss"] == pytest.approx(cross_entropies(logits).mean(), abs=1e-5)


def test_one_hot_labels(logits):
    found = evaluate(make_model(loss="CategoricalCrossentropy"), np.eye(CLASSES)[LABELS])["loss"]
    assert found == pytest.approx(cross_entropies(logits).mean(), abs=1e-5)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("bce", keras.losses.BinaryCrossentropy),
        ("BinaryFocalCrossentropy", keras.losses.BinaryFocalCrossentropy),
        ("categorical_focal_crossentropy", keras.losses.CategoricalFocalCrossentropy),
    ],
)
def test_other_losses_that_know_logits(name, kind, logits):
    labels = np.eye(CLASSES, dtype="float32")[LABELS]
    expected = float(kind(from_logits=True)(labels, logits))
    assert evaluate(make_model(loss=name), labels)["loss"] == pytest.approx(expected, rel=1e-5)
    assert evaluate(make_model(loss=kind), labels)["loss"] == pytest.approx(expected, rel=1e-5)
    assert float(kind()(labels, logits)) != pytest.approx(expected, rel=0.1)


def test_a_users_function_is_not_known_by_its_name():
    def binary_crossentropy(y_true, y_pred):
        return 42.0 + 0.0 * y_pred[:, 0]

    assert evaluate(make_model(loss=binary_crossentropy))["loss"] == pytest.approx(42)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (keras.losses.BinaryFocalCrossentropy(), r"must take logits.*BinaryFocalCrossentropy\(from_logits=False\)"),
        ("crossentropy", "Could not interpret loss identifier: crossentropy"),
    ],
    ids=["of probabilities", "unknown name"],
)
def test_a_loss_that_cannot_be_used(loss, message):
    with pytest.raises(ValueError, match=message):
        make_model(loss=loss)


# === One of several outputs ===

STARTS = np.arange(ROWS) % 3
SPARSE = "sparse_categorical_crossentropy"


@pytest.mark.parametrize("labels", [STARTS, {"start_logits": STARTS, "other": STARTS + 1}], ids=["array", "dict"])
def test_a_loss_of_one_of_several_outputs(labels):
    model = AlbertForQuestionAnswering(WIDE)
    model.compile("sgd", loss={"start_logits": SPARSE}, run_eagerly=True)
    expected = keras.losses.SparseCategoricalCrossentropy(from_logits=True)(STARTS, model(INPUTS)["start_logits"])
    assert evaluate(model, labels) == {"loss": pytest.approx(float(expected), rel=1e-5)}


@pytest.mark.parametrize("loss", [SPARSE, [SPARSE], {"start_logit": SPARSE}, dict.fromkeys(["start_logits"], SPARSE)])
def test_losses_of_other_outputs_or_of_several(loss):
    model = AlbertForQuestionAnswering(WIDE)
    loss = {**loss, "end_logits": SPARSE} if "start_logits" in loss else loss
    model.compile("sgd", loss=loss, run_eagerly=True)
    with pytest.raises(ValueError, match=r"`loss` must be one, .*'end_logits', 'start_logits'.* override `loss_terms`"):
        evaluate(model, {"start_logits": STARTS})


# === Weights, parts and devices ===


def scalar_loss(y_true, y_pred):
    return ops.mean(ops.square(y_pred))


def test_a_loss_that_returns_a_scalar_goes_with_undivided_batches(logits):
    assert evaluate(make_model(loss=scalar_loss))["loss"] == pytest.approx(np.mean(logits**2), rel=1e-5)
    anonymous = make_model(loss=lambda y_true, y_pred: ops.mean(ops.square(y_pred), axis=-1))
    assert evaluate(anonymous)["loss"] == pytest.approx(np.mean(logits**2), rel=1e-5)
    divided = make_model(loss=scalar_loss, gradient_accumulation_steps=2, run_eagerly=False)
    with pytest.raises(ValueError, match=r"^A loss must return one value per row.*scalar_loss.*a scalar"):
        divided.train_on_batch(INPUTS, LABELS)


@pytest.mark.parametrize("reduction", first_of(["sum_over_batch_size", "mean_with_sample_weight", "sum"]))
def test_parts_of_a_batch_give_the_numbers_of_the_whole(reduction):
    def trained(parts):
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=reduction)
        model = make_model(loss=loss, gradient_accumulation_steps=parts)
        return model, model.train_on_batch(INPUTS, LABELS, sample_weight=WEIGHTS, return_dict=True)

    (one, expected), (four, found) = trained(1), trained(4)
    assert found == pytest.approx(expected, rel=1e-5)
    assert largest_difference(one, four) < 1e-5
    kind = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=reduction)
    assert expected["loss"] == pytest.approx(float(kind(LABELS, make_model()(INPUTS)["logits"], WEIGHTS)), rel=1e-5)


def test_accuracy_does_not_weigh_rows(accuracy):
    model = make_model()
    assert evaluate(model, sample_weight=WEIGHTS)["accuracy"] == pytest.approx(accuracy)
    model.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
    trained = model.fit(INPUTS, LABELS, class_weight={0: 9.0, 1: 0.1, 2: 1.0}, batch_size=ROWS, verbose=0).history
    assert trained["accuracy"][0] == pytest.approx(accuracy)
    plain = evaluate(model)
    assert trained["cross_entropy"][0] != pytest.approx(plain["cross_entropy"], rel=0.01)


def test_ignored_labels_do_not_count_whatever_their_weight():
    keras.utils.set_random_seed(3)
    model = AlbertForTokenClassification(WIDE, num_labels=CLASSES)
    model.compile("sgd", run_eagerly=True)
    labels = np.where(INPUTS["attention_mask"] == 1, 1, -100)
    right = np.argmax(model(INPUTS)["logits"], -1) == labels
    found = model.evaluate(INPUTS, labels, sample_weight=WEIGHTS, return_dict=True, verbose=0)
    assert found["accuracy"] == pytest.approx(right[labels >= 0].mean())


@pytest.mark.parametrize("metrics", [["accuracy"], {"logits": "accuracy"}])
def test_accuracy_by_name_is_that_of_the_task(metrics):
    model = make_model()
    labels = np.where(np.arange(ROWS) < 3, -100, LABELS)
    expected = evaluate(model, labels)
    model.compile("sgd", metrics=metrics, run_eagerly=True)
    assert evaluate(model, labels) == expected
    right = np.argmax(model(INPUTS)["logits"], -1) == labels
    assert expected["accuracy"] == pytest.approx(right[3:].mean())
    assert 0 < right[3:].mean() != right.mean()


def test_loss_weights():
    with pytest.raises(ValueError, match=r"`loss_weights` must be None.*'cross_entropy': 0\.5"):
        make_model(loss_weights={"cross_entropy": 0.5})


# === XLA ===


def is_compiled(strategy, **arguments):
    with strategy.scope():
        model = AlbertForSequenceClassification(WIDE, num_labels=CLASSES)
        model.compile("sgd", **arguments)
    return model.jit_compile


def test_xla_compiles_on_gpus_by_default_under_every_strategy(request):
    strategies = [tf.distribute.get_strategy(), tf.distribute.OneDeviceStrategy("/cpu:0")]
    strategies += [tf.distribute.MirroredStrategy(["/cpu:0"])]
    assert list(map(is_compiled, strategies)) == [False] * 3
    request.getfixturevalue("accelerator")
    assert list(map(is_compiled, strategies)) == [True] * 3
    assert not is_compiled(strategies[0], run_eagerly=True)
    assert not is_compiled(strategies[0], jit_compile=False)


# === Callbacks ===


def test_callbacks_know_which_way_is_better(tmp_path):
    model, file = make_model(), tmp_path / "best.weights.h5"
    callbacks = [
        *(keras.callbacks.EarlyStopping(monitor=f"val_{name}", patience=5) for name in ("accuracy", "cross_entropy")),
        keras.callbacks.ModelCheckpoint(file, monitor="val_accuracy", save_best_only=True),
    ]
    model.fit(INPUTS, LABELS, validation_data=(INPUTS, LABELS), epochs=2, callbacks=callbacks, verbose=0)
    assert [callback.monitor_op for callback in callbacks[:2]] == [ops.greater, ops.less]
    assert file.exists()
