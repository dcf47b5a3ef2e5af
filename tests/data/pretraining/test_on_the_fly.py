"""Examples made while training are those that `prepare` writes, in an order that neither hosts nor stops change."""

import itertools
import shutil
import time

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.data import PrepareOptions, documents_dataset, prepare, pretraining_dataset
from albert_tf.data.pretraining import on_the_fly
from albert_tf.data.pretraining.on_the_fly import ExampleOrder
from albert_tf.data.sharding import InputShard
from albert_tf.data.sources import name_damage
from tests.data.small_corpus import CORPUS, rows_of, shards_of
from tests.disk import flip_bit

OPTIONS = {"max_seq_length": 64, "num_shards": 3, "short_seq_prob": 0.3, "seed": 3}
BATCH = 16


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Forty documents of one up to ten sentences."""
    lines = iter([line for line in CORPUS.read_text().splitlines() if line])
    documents = ["\n".join(itertools.islice(lines, 1 + number % 10)) for number in range(40)]
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n\n".join(documents))
    return path


@pytest.fixture(scope="module")
def folders(text, tmp_path_factory):
    """The text as documents, and as examples."""
    path = tmp_path_factory.mktemp("prepared")
    kinds = {"documents": {"format": "documents"}, "one_pass": {"dupe_factor": 1}, "two_passes": {"dupe_factor": 2}}
    for name, options in kinds.items():
        prepare(PrepareOptions(inputs=(text,), output_dir=path / name, **OPTIONS, **options))
    return path


def written(folder):
    """The examples of each shard on disk."""
    return [rows_of(pretraining_dataset([path], 1, shuffle=False, repeat=False)) for path in shards_of(folder)]


def test_equal_what_is_written(folders):
    """Epoch 0 is pass 0 of all shards; epoch 1 is pass 1, in another order, as many examples as pass 0 had."""
    one, two = written(folders / "one_pass"), written(folders / "two_passes")
    passes = [one, [rows[len(first) :] for rows, first in zip(two, one, strict=True)]]
    order = ExampleOrder(OPTIONS["seed"], np.array([len(rows) for rows in one]))
    assert order.shards(0).tolist() != order.shards(1).tolist()
    made = iter(rows_of(documents_dataset(folders / "documents", 1).take(2 * order.per_epoch)))
    for epoch, shards in enumerate(passes):
        for shard in order.shards(epoch):
            rows = list(itertools.islice(made, len(one[shard])))
            common = min(len(rows), len(shards[shard]))
            assert rows[:common] == shards[shard][:common]
            assert len(set(rows)) == len(rows), "what fills a visit up is new"
    assert {len(rows) for rows in passes[0]} != {len(rows) for rows in passes[1]}


def test_any_example_is_found_without_those_before():
    order = ExampleOrder(7, np.array([5, 0, 9, 3]))
    whole = [visit for visit, _ in zip(order.visits(0), range(9))]
    assert [visit.epoch for visit in whole] == [0] * 3 + [1] * 3 + [2] * 3
    numbers = [(visit.epoch, visit.shard, row) for visit in whole for row in range(visit.count)]
    for index, example in enumerate(numbers):
        visit = next(order.visits(index))
        assert (visit.epoch, visit.shard, visit.first) == example
    far = next(ExampleOrder(7, np.array([2**40, 2**41])).visits(2**62))
    assert far.epoch == 2**62 // (3 * 2**40)


def test_going_on_reads_what_going_on_needs(folders, monkeypatch):
    """After a million batches, no more shards are read and no more pairs made than after none."""
    read = []
    original = on_the_fly.read_document_shard
    monkeypatch.setattr(on_the_fly, "read_document_shard", lambda path: read.append(path) or original(path))
    for first in (0, 10**6):
        read.clear()
        rows_of(documents_dataset(folders / "documents", 1, first_batch=first).take(1))
        assert len(read) <= 3


def test_one_usable_document_is_enough_and_none_is_an_error(text, tmp_path):
    source = tmp_path / "text.txt"
    source.write_text("One.\n\nTwo.\n\nThree.\n\nIt rained.\nIt stopped.\n\nFour.\n")
    options = PrepareOptions(inputs=[source], output_dir=tmp_path / "one", max_seq_length=16, format="documents")
    with pytest.warns(UserWarning, match="4 of 5 documents have a single sentence"):
        prepare(options)
    made = documents_dataset(tmp_path / "one", 32)
    begun = time.monotonic()
    assert len(rows_of(made.take(1))) == 32
    assert time.monotonic() - begun < 5
    source.write_text("One.\n\nTwo.\n\nThree.\n")
    with pytest.raises(ValueError, match="No document has two sentences"):
        prepare(options.model_copy(update={"output_dir": tmp_path / "none"}))
    assert not (tmp_path / "none").exists()


def test_it_is_like_the_other_reader_and_strategies_take_it(folders):
    made = documents_dataset(folders / "documents", BATCH)
    assert made.element_spec == pretraining_dataset(folders / "one_pass", BATCH).element_spec
    assert made.cardinality() == tf.data.INFINITE_CARDINALITY
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    batches = strategy.distribute_datasets_from_function(lambda _: documents_dataset(folders / "documents", BATCH))
    (inputs, _), (plain, _) = next(iter(batches)), next(iter(made))
    assert np.array_equal(strategy.experimental_local_results(inputs["input_ids"])[0], plain["input_ids"])


def test_goes_on_at_any_batch(folders):
    batches = 30  # more than three epochs
    whole = rows_of(documents_dataset(folders / "documents", BATCH).take(batches))
    assert len(set(whole)) == len(whole) > 3 * sum(map(len, written(folders / "one_pass")))
    for first in (7, 22):
        rest = documents_dataset(folders / "documents", BATCH, first_batch=first).take(batches - first)
        assert rows_of(rest) == whole[first * BATCH :]


@pytest.mark.parametrize(("count", "parts"), [(8, 1), (2, 2), (1, 4)])
def test_hosts_and_devices_share_each_batch(folders, count, parts):
    whole = rows_of(documents_dataset(folders / "documents", BATCH, first_batch=2).take(12))
    piece = BATCH // (count * parts)
    own = []
    for index in range(count):
        dataset = documents_dataset(folders / "documents", BATCH, first_batch=2, shard=InputShard(index, count, parts))
        assert dataset.element_spec[0]["input_ids"].shape == (piece, OPTIONS["max_seq_length"])
        own.append(rows_of(dataset.take(12 * parts)))
    share = parts * piece
    batches = [rows[start : start + share] for start in range(0, 12 * share, share) for rows in own]
    assert [row for rows in batches for row in rows] == whole


def test_unfit_folders_and_damage_are_named(folders, tmp_path):
    for read, name, options, message in (
        (documents_dataset, "one_pass", {}, "holds examples, not documents"),
        (pretraining_dataset, "documents", {}, "holds documents, not examples"),
        (documents_dataset, "documents", {"max_seq_length": 128}, "have length 64, but max_seq_length=128"),
        (documents_dataset, "documents", {"objective": "none"}, "but 'none' was requested"),
        (documents_dataset, "documents", {"shard": InputShard(0, 3)}, "16, 3 devices"),
    ):
        with pytest.raises(ValueError, match=message):
            read(folders / name, BATCH, **options)
    shutil.copytree(folders / "documents", tmp_path, dirs_exist_ok=True)
    for path in shards_of(tmp_path):
        flip_bit(path, -100)
    with pytest.raises(ValueError, match="tfrecord is damaged at record 3"), name_damage(tmp_path):
        rows_of(documents_dataset(tmp_path, BATCH).take(1))
    with pytest.raises(ValueError, match="tfrecord is damaged at record 3"):
        documents_dataset(tmp_path, BATCH, skip_corrupt=True)


def test_damaged_shards_are_left_out_when_told_to(folders, tmp_path):
    copy = shutil.copytree(folders / "documents", tmp_path / "copy")
    damaged = shards_of(copy)[1]
    flip_bit(damaged, -100)
    first, _, last = written(folders / "one_pass")
    with pytest.warns(UserWarning, match=f"Skipped: .*{damaged.name} is damaged at record 3"):
        made = documents_dataset(copy, 1, skip_corrupt=True)
    assert sorted(rows_of(made.take(len(first) + len(last)))) == sorted(first + last)
