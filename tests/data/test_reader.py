"""Batches are the examples on disk, in an order that the seed decides."""

import time

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.data import Manifest, prepare, pretraining_dataset
from albert_tf.data.features import PRETRAINING_FEATURES
from albert_tf.data.sharding import InputShard
from tests.data.small_corpus import LINES, options_for, rows_of, shards_of
from tests.parameters import first_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("prepared")
    (path / "text.txt").write_text("\n\n".join("\n".join(LINES[start : start + 10]) for start in range(0, 400, 10)))
    return prepare(options_for(path / "text.txt", path / "examples", num_shards=2)).folder


def read(source, **options):
    return pretraining_dataset(source, 16, **{"repeat": False, "drop_remainder": False, **options})


def test_names_shapes_and_types(folder):
    inputs, labels = pretraining_dataset(folder, 8).element_spec
    assert {name: (tuple(spec.shape), spec.dtype.name) for name, spec in inputs.items()} == {
        "input_ids": ((8, 64), "int32"),
        "attention_mask": ((8, 64), "int32"),
        "token_type_ids": ((8, 64), "int32"),
        "masked_lm_positions": ((8, 10), "int32"),
    }
    assert {name: (tuple(spec.shape), spec.dtype.name) for name, spec in labels.items()} == {
        "masked_lm_ids": ((8, 10), "int32"),
        "masked_lm_weights": ((8, 10), "float32"),
        "sentence_order_labels": ((8,), "int32"),
    }


def test_labels_are_those_of_the_objective(folder):
    shards = shards_of(folder)  # of files it is the caller who knows
    assert list(pretraining_dataset(shards, 8, objective="none").element_spec[1]) == [
        "masked_lm_ids",
        "masked_lm_weights",
    ]
    (_, labels), (_, same) = (
        next(iter(pretraining_dataset(shards, 8, objective=objective)))
        for objective in ("next_sentence", "sentence_order")
    )
    assert np.array_equal(labels["next_sentence_labels"], same["sentence_order_labels"])


def test_values_are_those_on_disk(folder):
    first = shards_of(folder)[0]
    expected = [
        tf.train.Example.FromString(record.numpy()).features.feature for record in tf.data.TFRecordDataset(str(first))
    ]
    (batch,) = pretraining_dataset([first], 1000, shuffle=False, repeat=False, drop_remainder=False)
    tensors = {**batch[0], **batch[1]}
    for feature in PRETRAINING_FEATURES:
        if feature.role == "extra":
            continue
        for row, example in enumerate(expected):
            entry = example[feature.disk_name]
            values = entry.float_list.value if feature.dtype == "float32" else entry.int64_list.value
            assert np.atleast_1d(tensors[feature.name][row].numpy()).tolist() == list(values)


def test_every_example_once_in_an_order_by_seed(folder):
    plain, shuffled = rows_of(read(folder, shuffle=False)), rows_of(read(folder, seed=1))
    assert sorted(plain) == sorted(shuffled)
    assert plain != shuffled == rows_of(read(folder, seed=1)) != rows_of(read(folder, seed=2))
    count = len(plain)
    assert count % 16
    assert len(rows_of(read(folder, drop_remainder=True))) == count - count % 16
    twice = rows_of(read(folder, repeat=True).unbatch().batch(count).take(2))
    assert sorted(twice[:count]) == sorted(twice[count:])
    assert twice[:count] != twice[count:]


def test_files_of_the_references_writer_are_read(tmp_path):
    """As create_pretraining_data.py writes them: no manifest, one value a label."""
    example = tf.train.Example()
    sizes = {"input_ids": 12, "input_mask": 12, "segment_ids": 12, "token_boundary": 12}
    sizes |= {"masked_lm_positions": 3, "masked_lm_ids": 3, "next_sentence_labels": 1}
    for name, size in sizes.items():
        example.features.feature[name].int64_list.value.extend(range(size))
    example.features.feature["masked_lm_weights"].float_list.value.extend([1.0, 1.0, 0.0])
    with tf.io.TFRecordWriter(str(tmp_path / "theirs.tfrecord")) as writer:
        writer.write(example.SerializeToString())
    ((inputs, labels),) = pretraining_dataset(tmp_path / "theirs.tfrecord", 1, repeat=False)
    assert inputs["input_ids"].numpy().tolist() == [list(range(12))]
    assert labels["masked_lm_weights"].numpy().tolist() == [[1.0, 1.0, 0.0]]
    assert labels["sentence_order_labels"].shape == (1,)


@pytest.mark.parametrize("global_seed", first_of([1, 0]))
def test_going_on_reads_no_earlier_epoch(folder, global_seed):
    """The order of an epoch is a function of the seed and its number, not of the global seed or what was read."""
    whole = rows_of(read(folder, repeat=True, seed=5).take(60))
    examples = Manifest.load(folder).statistics.examples
    assert 3 * examples < 60 * 16
    tf.keras.utils.set_random_seed(global_seed)
    for first in (3, 20, 50):
        assert rows_of(read(folder, repeat=True, seed=5, first_batch=first).take(60 - first)) == whole[16 * first :]
    begun = time.monotonic()
    rows_of(read(folder, repeat=True, first_batch=10**9).take(1))
    assert time.monotonic() - begun < 10
    assert len(rows_of(read(folder, first_batch=2))) == examples - 32


@pytest.mark.parametrize("shuffle", first_of([True, False]))
def test_hosts_share_each_batch_in_the_order_of_one(folder, shuffle):
    """Also where there are fewer shards than hosts."""

    def batches(shard, first_batch=0):
        dataset = pretraining_dataset(folder, 12, shuffle=shuffle, seed=3, shard=shard, first_batch=first_batch)
        assert dataset.cardinality() == tf.data.INFINITE_CARDINALITY
        return [inputs["input_ids"].numpy() for inputs, _ in dataset.take(4 * shard.replicas_per_host)]

    whole = np.concatenate(batches(InputShard()))
    one_replica_each = [np.stack(batches(InputShard(index, 3))) for index in range(3)]
    np.testing.assert_array_equal(np.concatenate(one_replica_each, axis=1).reshape(whole.shape), whole)
    two_replicas_each = [np.stack(batches(InputShard(index, 3, 2))).reshape(4, 4, -1) for index in range(3)]
    np.testing.assert_array_equal(np.concatenate(two_replicas_each, axis=1).reshape(whole.shape), whole)
    np.testing.assert_array_equal(batches(InputShard(1, 3, 2), 2)[:4], two_replicas_each[1].reshape(8, 2, -1)[4:])
