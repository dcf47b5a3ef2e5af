"""Proves that inputs and labels of datasets and generators are checked like arrays."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertForSequenceClassification

from .small import CONFIG
from .test_inputs import IDS, LABELS, MASK, OF_TWO, ROWS, TEXTS, VOCABULARY, changed, with_text


@pytest.fixture(scope="module")
def model():
    made = AlbertForSequenceClassification(CONFIG, num_labels=2)
    made.compile("sgd")
    return made


def dataset(inputs=TEXTS, labels=LABELS):
    return tf.data.Dataset.from_tensor_slices((inputs, labels))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (dataset(), r"`input_ids` must have shape \[B, L\]\. Received: shape=\(11,\); add a batch axis"),
        (dataset(labels=np.array([*"abab"])).batch(2), "Received: dtype=string; use class ids: 0 for 'LABEL_0'"),
        (dataset(with_text("attention_masks", MASK)).batch(2), "not an input .*; did you mean 'attention_mask'"),
        (dataset().batch(2).map(lambda inputs, labels: inputs), "got no labels; pass them after the inputs"),
    ],
)
def test_a_dataset_is_checked_by_its_spec(model, data, message):
    with pytest.raises(ValueError, match=message):
        model.fit(data, shuffle=False, verbose=0)


def test_a_generator_is_checked_batch_by_batch(model):
    def batches():
        for number in range(6):
            yield TEXTS if number < 5 else changed(IDS, 50), LABELS

    with pytest.raises(ValueError, match=VOCABULARY.format(50)):
        model.fit(batches(), shuffle=False, verbose=0)


def test_none_from_a_generator_is_a_missing_input(model):
    def batches(inputs):
        yield from [(inputs, LABELS, np.ones(ROWS))] * 3

    without = {name: array for name, array in TEXTS.items() if name != "token_type_ids"}
    losses = [
        model.evaluate(batches(inputs), steps=3, verbose=0)[0]
        for inputs in (with_text("token_type_ids", None), without)
    ]
    assert losses[0] == losses[1]
    assert losses[0] == pytest.approx(model.evaluate(without, LABELS, verbose=0)[0], abs=1e-6)


class Batches(keras.utils.PyDataset):
    def __init__(self, labels):
        super().__init__()
        self.labels = labels

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return TEXTS, self.labels


def test_a_py_dataset_is_checked_by_its_first_batch(model):
    with pytest.raises(ValueError, match=rf"{OF_TWO}2 at \[1\]; number the classes from 0"):
        model.evaluate(Batches(LABELS + 1), verbose=0)
    found = model.evaluate(Batches(LABELS), verbose=0)
    assert found == pytest.approx(model.evaluate(TEXTS, LABELS, verbose=0), abs=1e-6)


def test_inputs_in_order_from_a_dataset_with_weights(model):
    data = tf.data.Dataset.from_tensor_slices(((IDS, MASK), LABELS, np.array([1.0, 0, 2, 1]))).batch(ROWS)
    weights = np.array([1.0, 0, 2, 1])
    expected = model.evaluate({"input_ids": IDS, "attention_mask": MASK}, LABELS, sample_weight=weights, verbose=0)
    assert model.evaluate(data, verbose=0) == pytest.approx(expected, abs=1e-6)
