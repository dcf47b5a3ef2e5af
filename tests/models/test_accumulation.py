"""Proves that gradient accumulation gives the numbers of the full batch, in every way to run a step."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertForPreTraining
from albert_tf.optimizers import Lamb
from tests.parameters import first_of

from .small import CONFIG, largest_difference, make_pretraining_batch

ROWS = 8
DATA = make_pretraining_batch(ROWS)
DROPOUT = CONFIG.replace(hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.2)


def make_model(config=CONFIG, kind=AlbertForPreTraining, **compile_arguments):
    keras.utils.set_random_seed(3)
    model = kind(config)
    model.compile(**{"optimizer": keras.optimizers.SGD(0.5, global_clipnorm=0.1), **compile_arguments})
    return model


def fit(model, data=DATA, epochs=2, drop_remainder=True):
    dataset = tf.data.Dataset.from_tensor_slices(data).batch(ROWS, drop_remainder=drop_remainder)
    return model.fit(dataset, epochs=epochs, shuffle=False, verbose=0).history


def assert_same(found, expected):
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, atol=1e-5, rtol=0, err_msg=name)


@pytest.fixture(scope="module")
def undivided():
    """A model that took undivided batches, and what its fit reported."""
    model = make_model(run_eagerly=True)
    return model, fit(model)


@pytest.mark.parametrize("way", first_of([{"run_eagerly": True}, {"jit_compile": True}]), ids=str)
def test_microbatches_give_the_numbers_of_the_batch(way, undivided):
    # The masked tokens of the four microbatches are unequal in number: a mean of means would differ.
    counts = DATA[1]["masked_lm_weights"].reshape(4, -1).sum(1)
    assert len(set(counts)) > 1
    model = make_model(gradient_accumulation_steps=4, **way)
    assert_same(fit(model), undivided[1])
    assert largest_difference(model, undivided[0]) < 1e-5
    assert int(model.optimizer.iterations) == 2


@pytest.mark.exhaustive
def test_batches_of_unknown_size(undivided):
    model = make_model(gradient_accumulation_steps=2, jit_compile=False)
    assert_same(fit(model, drop_remainder=False), undivided[1])
    assert largest_difference(model, undivided[0]) < 1e-5


@pytest.mark.exhaustive
@pytest.mark.parametrize("drop_remainder", first_of([True, False]))
def test_weights_come_from_labels_without_a_forward_pass_where_shapes_are_known(drop_remainder):
    calls = []

    def count(logits):
        calls.append(logits.shape)
        return logits

    class Counting(AlbertForPreTraining):
        def call(self, inputs, training=False):
            outputs = super().call(inputs, training=training)
            if not training:
                logits = outputs["masked_lm_logits"]
                counted = tf.numpy_function(count, [logits], tf.float32, stateful=False)
                outputs["masked_lm_logits"] = tf.ensure_shape(counted, logits.shape)
            return outputs

    model = make_model(kind=Counting, gradient_accumulation_steps=2, jit_compile=False)
    fit(model, epochs=1, drop_remainder=drop_remainder)
    assert len(calls) == (0 if drop_remainder else 2)


@pytest.mark.exhaustive
def test_dropout_differs_between_microbatches_and_equal_runs_give_equal_bits():
    def trained(rows):
        model = make_model(
            DROPOUT, optimizer=keras.optimizers.SGD(0.1), gradient_accumulation_steps=rows, run_eagerly=True
        )
        data = tf.nest.map_structure(lambda array: np.repeat(array[:1], ROWS, axis=0), DATA)  # one row, eight times
        dataset = tf.data.Dataset.from_tensor_slices(data).batch(rows)
        return model, model.fit(dataset, steps_per_epoch=1, shuffle=False, verbose=0).history

    (eight, expected), (again, found), (_, single) = trained(8), trained(8), trained(1)
    assert found == expected
    assert largest_difference(eight, again) == 0
    # With the mask of the first microbatch in all of them, the mean would be that of the first.
    assert abs(single["loss"][0] - expected["loss"][0]) > 1e-3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"gradient_accumulation_steps": 0}, "must be an integer of at least 1. Received: .*=0"),
        (
            {"optimizer": Lamb(0.1, gradient_accumulation_steps=2)},
            "optimizer must not have `gradient_accumulation_steps`",
        ),
    ],
)
def test_what_cannot_be_compiled(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_model(**arguments)


@pytest.mark.exhaustive
def test_rows_that_microbatches_do_not_divide():
    with pytest.raises(ValueError, match=r"must divide the number of rows .*gradient_accumulation_steps=3, a batch"):
        fit(make_model(gradient_accumulation_steps=3, run_eagerly=True))
    with pytest.raises(ValueError, match=r"\A`gradient_accumulation_steps` must divide .*steps=3, a batch with"):
        fit(make_model(gradient_accumulation_steps=3, jit_compile=False), drop_remainder=False)


@pytest.mark.exhaustive
def test_rows_that_do_not_fill_the_last_batch_are_refused_before_training():
    inputs, labels = DATA
    model = make_model(gradient_accumulation_steps=2, run_eagerly=True)
    rows = tf.nest.map_structure(lambda array: array[:7], DATA)
    with pytest.raises(ValueError, match=r"steps=2, a batch of 3 rows; .* leave out the last rows of lists"):
        model.fit(*rows, batch_size=4, verbose=0)
    assert int(model.optimizer.iterations) == 0
    model.fit(*rows, batch_size=4, steps_per_epoch=1, verbose=0)  # it never arrives
    model.fit(inputs, labels, batch_size=4, validation_data=rows, validation_batch_size=4, verbose=0)
    assert int(model.optimizer.iterations) == 3
