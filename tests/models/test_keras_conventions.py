"""Proves that each task model takes data, no rows, freezing, saving and compiling again as Keras' own models do."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_tf import (
    AlbertEncoder,
    AlbertForMaskedLM,
    AlbertForPreTraining,
    AlbertForSentenceEmbedding,
    AlbertForSequenceClassification,
)
from tests.parameters import first_of

from .small import make_inputs, make_pretraining_batch
from .test_every_head import CASES, CONFIG, ROWS

INPUTS, LABELS = make_pretraining_batch(ROWS)
MASKED_LM = {name: LABELS[name] for name in ("masked_lm_ids", "masked_lm_weights")}
ALL = {
    **CASES,
    "pretraining": (AlbertForPreTraining, {}, INPUTS, LABELS),
    "masked_lm": (AlbertForMaskedLM, {}, INPUTS, MASKED_LM),
}
LEARNING_RATE = 0.1


def compile_again(model):
    model.compile(keras.optimizers.SGD(LEARNING_RATE), run_eagerly=True)


@pytest.fixture(params=first_of(ALL))
def case(request):
    """A compiled model, its inputs and its labels."""
    kind, arguments, inputs, labels = ALL[request.param]
    keras.utils.set_random_seed(7)
    model = kind(CONFIG.replace(num_hidden_layers=1), **arguments)
    compile_again(model)
    return model, inputs, labels


def evaluate(model, inputs, labels):
    return model.evaluate(inputs, labels, batch_size=ROWS, return_dict=True, verbose=0)


def endless(batch):
    while True:
        yield batch


@pytest.mark.parametrize("case", first_of(["texts", "beam", "pretraining"]), indirect=True)
def test_data_of_every_kind_give_the_same_step(case):
    model, inputs, labels = case
    weights = np.linspace(0.5, 2, ROWS, dtype="float32")
    dataset = tf.data.Dataset.from_tensor_slices((inputs, labels, weights)).batch(ROWS)
    ways = {
        "arrays": lambda: model.fit(inputs, labels, sample_weight=weights, batch_size=ROWS, shuffle=False, verbose=0),
        "dataset": lambda: model.fit(dataset, shuffle=False, verbose=0),
        "generator": lambda: model.fit(endless((inputs, labels, weights)), steps_per_epoch=1, shuffle=False, verbose=0),
        "on_batch": lambda: model.train_on_batch(inputs, labels, sample_weight=weights),
    }
    start, ends = model.get_weights(), {}
    for name, train in ways.items():
        model.set_weights(start)
        train()
        ends[name] = model.get_weights()
    for name, end in ends.items():
        for found, expected in zip(end, ends["arrays"], strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-6, rtol=0, err_msg=name)
    assert any(not np.array_equal(a, b) for a, b in zip(start, ends["arrays"], strict=True))


def test_a_saved_model_goes_on_and_can_be_compiled_again(case, tmp_path):
    model, inputs, labels = case
    model.fit(inputs, labels, batch_size=ROWS, verbose=0)
    expected = evaluate(model, inputs, labels)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert evaluate(again, inputs, labels) == pytest.approx(expected, abs=1e-6)
    assert int(again.optimizer.iterations) == 1
    compile_again(again)
    assert evaluate(again, inputs, labels) == pytest.approx(expected, abs=1e-6)
    assert len(again.evaluate(inputs, labels, verbose=0)) == len(expected)
    assert set(expected) == {"loss", *model.reported_terms()}


def test_tensorflows_checkpoints_hold_all_weights(tmp_path):
    config = CONFIG.replace(share="none", inner_group_num=2)
    model, other = (AlbertForSequenceClassification(config, num_labels=2) for _ in range(2))
    path = tf.train.Checkpoint(model=model).save(str(tmp_path / "checkpoint"))
    tf.train.Checkpoint(model=other).restore(path).assert_consumed()
    for found, expected in zip(other.weights, model.weights, strict=True):
        np.testing.assert_array_equal(found, expected, err_msg=expected.path)


# === No rows ===

WITH_OTHERS = {
    **{name: ALL[name] for name in ("texts", "choices", "beam", "pretraining")},
    "encoder": (AlbertEncoder, {}, make_inputs(ROWS), None),
    "embedding": (AlbertForSentenceEmbedding, {}, make_inputs(ROWS), None),
}


def shapes(outputs):
    return {name: tuple(value.shape) for name, value in outputs.items()}


@pytest.mark.parametrize("name", first_of(WITH_OTHERS, count=3))
def test_no_rows_have_outputs_of_the_same_other_axes(name):
    kind, arguments, inputs, _ = WITH_OTHERS[name]
    model = kind(CONFIG.replace(num_hidden_layers=1), **arguments)
    none = {name: array[:0] for name, array in inputs.items()}
    expected = {name: (0, *shape[1:]) for name, shape in shapes(model(inputs)).items()}
    specs = [tf.TensorSpec([None, *array.shape[1:]], tf.int32) for array in inputs.values()]
    in_graph = tf.function(lambda *arrays: model(dict(zip(inputs, arrays))), input_signature=specs)
    assert shapes(model(none)) == expected
    assert shapes(in_graph(*none.values())) == expected
    for predict in (model.predict_on_batch, lambda data: model.predict(data, verbose=0)):
        outputs = predict(none)
        assert shapes(outputs) == expected
        assert all(isinstance(output, np.ndarray) for output in outputs.values())


def test_no_rows_train_nothing():
    kind, arguments, inputs, labels = ALL["texts"]
    model = kind(CONFIG.replace(num_hidden_layers=1), **arguments)
    model.compile(keras.optimizers.SGD(0.1))
    before = model.get_weights()
    loss = model.train_on_batch({name: array[:0] for name, array in inputs.items()}, labels[:0])
    assert np.all(np.asarray(loss) == 0)
    for values, expected in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(values, expected)
