"""Packed rows hold every example once, whole and apart from the others, and leave little room unused."""

import numpy as np
import pytest

from albert_tf.data.features import PACKED_FEATURES
from albert_tf.data.options import ExampleOptions
from albert_tf.data.pretraining.examples import make_examples
from albert_tf.data.pretraining.packing import assign_rows, pack_examples
from albert_tf.data.pretraining.pairs import make_pairs
from tests.data.small_corpus import VOCABULARY, random_documents

OPTIONS = ExampleOptions(max_seq_length=64, pack=True, short_seq_prob=0.2)


@pytest.fixture(scope="module")
def made():
    """Examples of short documents, their keys, and the rows that they are packed into."""
    documents = random_documents(5, documents=150, segments=4, longest=12)
    pairs = make_pairs(documents, [0], OPTIONS).shuffled()
    examples = make_examples(documents, pairs, OPTIONS, VOCABULARY)
    return examples, pairs.keys, pack_examples(examples, pairs.keys, OPTIONS, pad_token_id=0)


def unpacked(rows):
    """Each example of packed rows as the tuple of its values, padding left out."""
    for row in range(len(rows)):
        for number in range(1, rows.example_ids[row].max() + 1):
            where = np.flatnonzero(rows.example_ids[row] == number)
            start, stop = int(where[0]), int(where[-1]) + 1
            assert where.tolist() == list(range(start, stop))
            assert rows.position_ids[row, where].tolist() == list(range(len(where)))
            assert rows.cls_positions[row, number - 1] == start
            assert rows.sentence_order_weights[row, number - 1] == 1
            assert rows.attention_mask[row, where].all()
            predicted = rows.masked_lm_weights[row] > 0
            predicted &= (rows.masked_lm_positions[row] >= start) & (rows.masked_lm_positions[row] < stop)
            arrays = (rows.input_ids[row, where], rows.token_type_ids[row, where], rows.token_boundary[row, where])
            arrays += rows.masked_lm_positions[row, predicted] - start, rows.masked_lm_ids[row, predicted]
            yield (*(array.tobytes() for array in arrays), int(rows.sentence_order_labels[row, number - 1]))


def plain(examples):
    """The same of examples that have a row each."""
    for row in range(len(examples)):
        length, predicted = examples.attention_mask[row].sum(), examples.masked_lm_weights[row] > 0
        arrays = tuple(
            getattr(examples, name)[row, :length] for name in ("input_ids", "token_type_ids", "token_boundary")
        )
        arrays += examples.masked_lm_positions[row, predicted], examples.masked_lm_ids[row, predicted]
        yield (*(array.tobytes() for array in arrays), int(examples.sentence_order_labels[row]))


def test_rows_hold_every_example_once(made):
    examples, _, rows = made
    for feature in PACKED_FEATURES:
        array = getattr(rows, feature.name)
        assert (array.shape[1:], array.dtype) == (feature.row_shape(OPTIONS.sizes), feature.dtype)
    assert sorted(unpacked(rows)) == sorted(plain(examples))
    assert len(rows) < 0.7 * len(examples)
    assert rows.attention_mask.mean() > 0.95
    assert rows.sentence_order_weights.sum() == len(examples)
    assert np.array_equal(rows.attention_mask, rows.example_ids > 0)
    assert not rows.input_ids[rows.example_ids == 0].any()


def test_rows_are_in_an_order_of_the_keys(made):
    """Not from the longest example to the shortest, as they were packed."""
    examples, keys, rows = made
    firsts = (rows.example_ids == 1).sum(axis=1)
    assert abs(np.corrcoef(np.arange(len(firsts)), firsts)[0, 1]) < 0.4
    order = np.random.default_rng(0).permutation(len(examples))
    shuffled = type(examples)(*(array[order] for array in vars(examples).values()))
    again = pack_examples(shuffled, keys[order], OPTIONS, pad_token_id=0)
    assert len(again) == len(rows)


def test_no_limit_of_a_row_is_passed():
    """Many masked tokens fill a row before its tokens do, and so do many examples."""
    random = np.random.default_rng(1)
    lengths, predictions = random.integers(5, 40, 400), random.integers(1, 9, 400)
    lengths[:100], predictions[:100] = 5, 1
    assigned = assign_rows(lengths, predictions, OPTIONS)
    rows = assigned.row.max() + 1
    for values, limit in ((lengths, 64), (predictions, OPTIONS.predictions), (np.ones(400), OPTIONS.examples_per_row)):
        totals = np.bincount(assigned.row, values)
        assert len(totals) == rows
        assert totals.max() <= limit
    assert np.bincount(assigned.row, predictions).max() == OPTIONS.predictions
    assert np.bincount(assigned.row).max() == OPTIONS.examples_per_row
