"""Proves that texts are batched without loss: each one once an epoch, beside others of its length, from any step on."""

import numpy as np
import pytest

from albert_tf.data.finetuning.batches import steps_per_epoch, training_dataset
from albert_tf.data.finetuning.encoded import encode_texts
from albert_tf.data.sharding import InputShard
from tests.toy_task import mood_rows, tokenizer


@pytest.fixture(scope="module")
def encoded():
    texts = [text for text, _ in mood_rows(500, seed=3)]
    return texts, encode_texts(tokenizer(), texts, None, max_length=20)


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
