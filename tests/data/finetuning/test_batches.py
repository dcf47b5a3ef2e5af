"""Proves that texts are batched without loss: each one once an epoch, beside others of its length, from any step on."""

import numpy as np
import pytest

from albert_tf.data.finetuning.batches import steps_per_epoch, training_dataset
from albert_tf.data.finetuning.encoded import encode_texts, epoch_batches, rows_by_length
from albert_tf.data.sharding import InputShard
from tests.toy_task import mood_rows, tokenizer


@pytest.fixture(scope="module")
def encoded():
    texts = [text for text, _ in mood_rows(500, seed=3)]
    return texts, encode_texts(tokenizer(), texts, None, max_length=20)


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


def test_lengths_are_rounded_up_but_not_beyond_the_limit(encoded):
    _, examples = encoded
    short, longest = examples.lengths.argmin(), examples.lengths.argmax()
    assert examples.batch(np.array([short]))["input_ids"].shape == (1, 8)
    assert examples.lengths[longest] == 20
    assert examples.batch(np.array([short, longest]))["input_ids"].shape == (2, 20)
    assert examples.batch(np.array([short]))["attention_mask"].sum() == examples.lengths[short]


def test_each_epoch_has_every_example_once_in_an_order_of_its_own(encoded):
    lengths = encoded[1].lengths
    epochs = [epoch_batches(lengths, 16, seed=1, epoch=epoch) for epoch in (0, 1)]
    for batches in epochs:
        assert sorted(map(len, batches)) == [4] + [16] * 31
        assert sorted(np.concatenate(batches)) == list(range(500))
    assert [b.tolist() for b in epochs[0]] != [b.tolist() for b in epochs[1]]
    again = epoch_batches(lengths, 16, seed=1, epoch=0)
    assert [b.tolist() for b in again] == [b.tolist() for b in epochs[0]]
    assert np.concatenate(epoch_batches(lengths, 16, 2, 0)).tolist() != np.concatenate(again).tolist()


def test_neighbours_in_length_share_a_batch(encoded):
    lengths = encoded[1].lengths

    def padding(batches):
        return sum(int(lengths[batch].max()) * len(batch) for batch in batches) - lengths.sum()

    shuffled = np.array_split(np.random.default_rng(0).permutation(500), 32)
    assert padding(epoch_batches(lengths, 16, seed=1, epoch=0)) < 0.3 * padding(shuffled)


class Numbered:
    """Examples with their numbers as labels."""

    def __init__(self, encoded):
        self.encoded, self.lengths = encoded, encoded.lengths

    def training_batch(self, rows, multiple=8):
        return self.encoded.batch(rows, multiple), rows.astype(np.int32)


def test_the_dataset_holds_all_epochs_with_their_labels(encoded):
    texts, examples = encoded
    batches = list(training_dataset(Numbered(examples), batch_size=64, seed=1).take(2 * 8))
    seen = np.concatenate([labels.numpy() for _, labels in batches])
    assert np.bincount(seen).tolist() == [2] * 500
    inputs, labels = batches[3]
    expected = tokenizer()([texts[i] for i in labels.numpy()], max_length=20)["input_ids"]
    np.testing.assert_array_equal(inputs["input_ids"].numpy()[:, : expected.shape[1]], expected)


@pytest.mark.parametrize(("last_batch", "steps"), [("short", 8), ("filled", 8), ("dropped", 7)])
def test_the_dataset_begins_at_any_step(encoded, last_batch, steps):
    options = {"batch_size": 64, "seed": 1, "last_batch": last_batch}
    whole = [labels.numpy() for _, labels, *_ in training_dataset(Numbered(encoded[1]), **options).take(20)]
    assert steps_per_epoch(500, 64, last_batch) == steps
    assert {len(labels) for labels in whole} == ({64, 52} if last_batch == "short" else {64})
    for first in (1, 8, 15):
        rest = training_dataset(Numbered(encoded[1]), first_step=first, **options).take(5)
        for (_, labels, *_), expected in zip(rest, whole[first:], strict=False):
            np.testing.assert_array_equal(labels, expected)


def test_hosts_share_the_rows_of_each_batch(encoded):
    options = {"batch_size": 64, "seed": 1, "last_batch": "filled"}
    whole = [labels.numpy() for _, labels, _ in training_dataset(Numbered(encoded[1]), **options).take(8)]
    shards = [InputShard(index, count=2, replicas_per_host=2) for index in (0, 1)]
    hosts = [training_dataset(Numbered(encoded[1]), shard=shard, **options).take(16) for shard in shards]
    rows = [[labels.numpy() for _, labels, _ in host] for host in hosts]
    for step, expected in enumerate(whole):
        parts = [rows[host][2 * step + replica] for host in (0, 1) for replica in (0, 1)]
        assert [len(part) for part in parts] == [16] * 4
        np.testing.assert_array_equal(np.concatenate(parts), expected)


def test_too_few_examples_for_batches_of_one_size():
    with pytest.raises(ValueError, match="batch_size=9, 8 examples"):
        steps_per_epoch(8, 9, "dropped")


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
