"""Proves that batches hold what the tokenizer gives, texts of similar length beside each other, each once an epoch."""

import numpy as np
import pytest

from albert_tf.data.finetuning import encoded as module
from albert_tf.data.finetuning.encoded import encode_texts, epoch_batches, rows_by_length
from tests.toy_task import mood_rows, tokenizer

TEXTS = [text for text, _ in mood_rows(500, seed=3)]


@pytest.fixture(scope="module")
def examples():
    return encode_texts(tokenizer(), TEXTS, None, max_length=20)


@pytest.mark.parametrize("with_pairs", [False, True])
def test_a_batch_is_what_the_tokenizer_gives(with_pairs):
    texts = [text for text, _ in mood_rows(40, seed=4)]
    pairs = [text for text, _ in mood_rows(40, seed=5)] if with_pairs else None
    encoded = encode_texts(tokenizer(), texts, pairs, max_length=30)
    rows = np.array([7, 0, 39, 7])
    expected = tokenizer()([texts[i] for i in rows], pairs and [pairs[i] for i in rows], max_length=30)
    batch = encoded.batch(rows, multiple=1)
    assert batch.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(batch[name], array, err_msg=name)


def test_lengths_are_rounded_up_but_not_beyond_the_limit(examples):
    short, longest = examples.lengths.argmin(), examples.lengths.argmax()
    assert examples.batch(np.array([short]))["input_ids"].shape == (1, 8)
    assert examples.lengths[longest] == 20
    assert examples.batch(np.array([short, longest]))["input_ids"].shape == (2, 20)
    assert examples.batch(np.array([short]))["attention_mask"].sum() == examples.lengths[short]


def test_each_epoch_has_every_example_once_in_an_order_of_its_own(examples):
    lists = {}
    for seed, epoch in ((1, 0), (1, 1), (2, 0)):
        batches = epoch_batches(examples.lengths, 16, seed, epoch)
        assert sorted(map(len, batches)) == [4] + [16] * 31
        assert sorted(np.concatenate(batches)) == list(range(500))
        again = epoch_batches(examples.lengths, 16, seed, epoch)
        assert [rows.tolist() for rows in again] == [rows.tolist() for rows in batches]
        lists[seed, epoch] = tuple(np.concatenate(batches).tolist())
    assert len(set(lists.values())) == 3


def test_neighbours_in_length_share_a_batch(examples):
    lengths = examples.lengths

    def padding(batches):
        return sum(int(lengths[batch].max()) * len(batch) for batch in batches) - lengths.sum()

    shuffled = np.array_split(np.random.default_rng(0).permutation(500), 32)
    assert padding(epoch_batches(lengths, 16, seed=1, epoch=0)) < 0.3 * padding(shuffled)


def test_batches_by_length_have_a_limit_of_rows_and_of_tokens():
    lengths = np.array([3, 200, 4, 300, 5, 700, 6, 2000, 60])
    for longest_first in (False, True):
        batches = [lengths[rows] for rows in rows_by_length(lengths, 3, 1024, longest_first)]
        order = np.concatenate(batches)
        np.testing.assert_array_equal(order, np.sort(lengths)[:: -1 if longest_first else 1])
        assert all(len(rows) <= 3 and (len(rows) == 1 or len(rows) * rows.max() <= 1024) for rows in batches)
    assert [list(lengths[rows]) for rows in rows_by_length(lengths, 4, 1024)] == [
        [3, 4, 5, 6],
        [60, 200, 300],
        [700],
        [2000],
    ]
    assert [len(rows) for rows in rows_by_length(lengths, 8, max_tokens=None)] == [8, 1]


def test_parts_are_limited_in_rows_and_characters(monkeypatch):
    monkeypatch.setattr(module, "_ROWS_AT_ONCE", 3)
    monkeypatch.setattr(module, "_CHARACTERS_AT_ONCE", 10)
    texts = ["a", "bb", "c", "d", "e" * 9, "f", "g" * 30, "", "h" * 9]
    parts = list(module.parts_of(texts, str))
    assert parts == [["a", "bb", "c"], ["d", "e" * 9], ["f"], ["g" * 30], ["", "h" * 9]]
