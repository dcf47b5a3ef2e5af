"""Proves that batches of texts in a `tf.data.Dataset` or a PyDataset count as rows tokenized by hand do."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertForSentenceEmbedding
from tests.parameters import first_of

from .test_texts import (
    IDS,
    LISTS,
    NAMES,
    OF_LISTS,
    TEXTS,
    assert_equal,
    by_hand,
    logits,
    make,
    steps,
    tokenizer,  # noqa: F401
)

WEIGHTS = 1.0 + np.arange(41) % 3
SHORT = [text[:40] for text in TEXTS]


class Batches(keras.utils.PyDataset):
    """Batches of columns; without an end, if it is endless."""

    def __init__(self, *columns, is_endless=False):
        super().__init__()
        self.columns, self.is_endless, self.epochs = columns, is_endless, 0

    @property
    def num_batches(self):
        return None if self.is_endless else 6

    def __getitem__(self, index):
        start = 8 * (index % 6)
        return tuple(column[start : start + 8] for column in self.columns)

    def on_epoch_begin(self):
        self.epochs += 1


def dataset(*columns):
    return tf.data.Dataset.from_tensor_slices(columns if len(columns) > 1 else columns[0]).batch(8)


@pytest.mark.parametrize("make_data", first_of([dataset, Batches]))
def test_evaluation_and_predictions_in_the_order_of_the_data(make_data, tokenizer):  # noqa: F811
    model, rows = make(tokenizer), by_hand(tokenizer)
    expected = model.evaluate(rows, IDS, verbose=0)
    assert_equal(model.evaluate(make_data(TEXTS, NAMES), verbose=0), expected)
    weighted = model.evaluate(rows, IDS, sample_weight=WEIGHTS, verbose=0)
    assert_equal(model.evaluate(make_data(TEXTS, IDS, WEIGHTS.tolist()), verbose=0), weighted)
    assert_equal(logits(model, make_data(TEXTS)), logits(model, rows))
    assert_equal(logits(model, make_data(TEXTS, NAMES)), logits(model, rows))


@pytest.mark.parametrize("make_data", first_of([dataset, Batches]))
def test_several_labels(make_data, tokenizer):  # noqa: F811
    model = make(tokenizer, problem="multi_label")
    names = LISTS if make_data is Batches else tf.ragged.constant(LISTS)
    expected = model.evaluate(by_hand(tokenizer), OF_LISTS, verbose=0)
    assert_equal(model.evaluate(make_data(TEXTS, names), verbose=0), expected)


def test_pairs(tokenizer):  # noqa: F811
    model = make(tokenizer)
    expected = logits(model, (SHORT, SHORT[::-1]))
    assert_equal(logits(model, dataset(((SHORT, SHORT[::-1]),))), expected)
    embedding = make(tokenizer, AlbertForSentenceEmbedding)
    for asked, words in ((model, "Labels must be among"), (embedding, r"are \(\(texts, pairs\),\)")):
        with pytest.raises(ValueError, match=words):  # texts and labels, as Keras takes them
            asked.predict(dataset(SHORT, SHORT[::-1]), verbose=0)


@pytest.mark.parametrize("make_data", first_of([dataset, Batches]))
def test_training_equals_that_of_lists(make_data, tokenizer):  # noqa: F811
    expected, weights = steps(
        make(tokenizer), TEXTS, NAMES, shuffle=False, class_weight={"bad": 3}, validation_data=(TEXTS, IDS), epochs=2
    )
    model = make(tokenizer)
    options = {"shuffle": False, "class_weight": {"bad": 3}, "validation_data": make_data(TEXTS, IDS), "epochs": 2}
    history = model.fit(make_data(TEXTS, NAMES), verbose=0, **options).history
    assert_equal([value for name in sorted(history) for value in history[name]], expected)
    for ours, theirs in zip(model.get_weights(), weights, strict=True):
        assert_equal(ours, theirs)


@pytest.mark.exhaustive
def test_endless_data_and_shuffled_batches(tokenizer):  # noqa: F811
    for data in (dataset(TEXTS, NAMES).repeat(), Batches(TEXTS, NAMES, is_endless=True)):
        model = make(tokenizer)
        model.fit(data, steps_per_epoch=3, epochs=3, validation_data=data, validation_steps=1, shuffle=False, verbose=0)
        assert int(model.optimizer.iterations) == 9
    batches = Batches(TEXTS, NAMES)
    orders = [make(tokenizer).fit(batches, epochs=3, verbose=0).history["loss"] for _ in range(2)]
    assert orders[0] == orders[1]
    assert batches.epochs == 6


def test_cut_texts_are_counted_at_the_end(tokenizer):  # noqa: F811
    model = make(tokenizer, max_length=16)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(Batches(TEXTS, NAMES), epochs=2, verbose=0)
        model.predict(dataset(TEXTS), verbose=0)
    messages = [str(warning.message)[:32] for warning in caught if warning.category is UserWarning]
    assert messages == ["54 of 82 texts did not fit into ", "27 of 41 texts did not fit into "]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (tf.data.Dataset.from_tensor_slices((TEXTS, NAMES)), r"single texts; pass dataset\.batch\(32\)"),
        (dataset({"text": TEXTS}, NAMES), r"\(texts, pairs\).* a dict"),
        (dataset(TEXTS), "no labels"),
        (dataset(TEXTS, [*NAMES[:40], "ugly"]), "^Labels must be among .*'ugly'"),
        (dataset(TEXTS, OF_LISTS), r"shape=\(None, 2\)"),
        (Batches(TEXTS, [*NAMES[:40], "ugly"]), "^Labels must be among .*'ugly'"),
        (Batches(TEXTS, [*IDS[:40], 2]), r"^`labels` must be .*2 at \[0\]"),
    ],
)
def test_mistakes(data, words, tokenizer):  # noqa: F811
    with pytest.raises(ValueError, match=words):
        make(tokenizer).fit(data, shuffle=False, verbose=0)
