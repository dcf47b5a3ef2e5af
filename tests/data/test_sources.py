"""Folders that do not fit, and shards that are damaged, lost or of others, are named, or left out when told to."""

import shutil

import pytest
import tensorflow as tf

from albert_tf.data import prepare, pretraining_dataset
from albert_tf.data.sharding import InputShard
from albert_tf.data.sources import name_damage, verify_shards
from tests.data.small_corpus import options_for, rows_of, shards_of
from tests.disk import flip_bit

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture
def copy(prepared, tmp_path):
    return shutil.copytree(prepared.folder, tmp_path / "copy")


def read(source, **options):
    return pretraining_dataset(source, 16, repeat=False, drop_remainder=False, **options)


def test_whole_folders_have_no_faults(prepared):
    assert verify_shards(prepared.folder) == verify_shards(shards_of(prepared.folder)) == []


def test_unfit_folders_are_refused(prepared, tmp_path):
    for name, text in (("long.txt", b"Plain text, and more of it than a header.\n"), ("short.txt", b"Short.\n")):
        (tmp_path / name).write_bytes(text)
    for source, options, message in (
        (prepared.folder, {"max_seq_length": 128}, "have length 64, but max_seq_length=128 was requested"),
        (prepared.folder, {"vocab_hash": "abc"}, r"30,000 pieces\) than the requested one \(abc\)"),
        (prepared.folder, {"objective": "none"}, "were made for objective='sentence_order', but 'none' was requested"),
        (prepared.folder, {"shard": InputShard(0, 3)}, "batch_size=8, 3 devices"),
        (tmp_path, {}, r"it has no manifest\.json"),
        (tmp_path / "long.txt", {}, r"long\.txt is damaged at record 0 \(the checksum"),
        (tmp_path / "short.txt", {}, r"short\.txt is damaged at record 0 \(the file ends"),
        ([tmp_path / "missing"], {}, r"missing is not a TFRecord file of examples \(FileNotFoundError\)"),
        ([], {}, "no files"),
    ):
        with pytest.raises(ValueError, match=message):
            pretraining_dataset(source, 8, **options)


def test_missing_and_truncated_shards_are_named_before_reading(copy):
    first, second = shards_of(copy)[:2]
    whole = first.read_bytes()
    first.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=rf"{first.name} is damaged at record \d+ \(the file ends inside the record\)"):
        pretraining_dataset(copy, 8)
    first.write_bytes(whole)
    second.unlink()
    with pytest.raises(ValueError, match=f"The shard .*{second.name} is missing"):
        pretraining_dataset(copy, 8)


def test_shards_of_another_folder_are_refused(copy, prepared, corpus, tmp_path):
    """Laid beside ours, or copied over one of ours."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces))
    other = options_for(corpus, tmp_path / "other", tokenizer=tmp_path / "vocab.txt")
    ours, theirs = shards_of(copy)[0], shards_of(prepare(other).folder)[0]
    shutil.copy(theirs, copy / "more.tfrecord")
    with pytest.raises(ValueError, match=r"1 \.tfrecord files are not listed in \S*manifest\.json, such as more"):
        pretraining_dataset(copy, 8)
    corrupt_record(ours, 1)
    assert [fault.path for fault in verify_shards(copy)] == [ours]
    (copy / "more.tfrecord").unlink()
    shutil.copy(theirs, ours)
    reason = rf"{ours.name} is not the file that `prepare` wrote \(it holds \d+ records in .* another vocabulary"
    with pytest.raises(ValueError, match=reason):
        pretraining_dataset(copy, 8)
    with pytest.warns(UserWarning, match=f"Skipped: .*{ours.name} is not the file that"):
        rows = rows_of(read(copy, skip_corrupt=True))
    assert sorted(rows) == sorted(rows_of(read(shards_of(prepared.folder)[1:])))


def corrupt_record(path, number):
    """Flips a byte in the middle of a record."""
    records = [record.numpy() for record in tf.data.TFRecordDataset(str(path))]
    flip_bit(path, sum(len(record) + 16 for record in records[:number]) + 12 + len(records[number]) // 2)


def test_corrupt_record_is_named_when_it_is_read(copy, prepared):
    path = shards_of(copy)[2]
    corrupt_record(path, 5)
    dataset = read(copy)
    reason = rf"{path.name} is damaged at record 5 \(the checksum of the record's data"
    with pytest.raises(ValueError, match=reason), name_damage(copy):
        rows_of(dataset)
    assert [(fault.path, fault.record) for fault in verify_shards(copy)] == [(path, 5)]
    with (
        pytest.raises(ValueError, match=reason),
        name_damage(prepared.folder, copy),
    ):  # damage in any of several sources
        rows_of(dataset)
    with pytest.raises(KeyError), name_damage("anywhere"):  # other errors pass through
        raise KeyError


def test_damaged_shards_are_left_out_when_told_to(copy, prepared):
    damaged, missing = shards_of(copy)[:2]
    corrupt_record(damaged, 0)
    missing.unlink()
    with pytest.warns(UserWarning, match="Skipped") as warned:
        rows = rows_of(read(copy, skip_corrupt=True))
    assert len(warned) == 2
    assert sorted(rows) == sorted(rows_of(read(shards_of(prepared.folder)[2:])))


def test_a_folder_without_a_whole_shard_is_refused(copy):
    for path in shards_of(copy):
        corrupt_record(path, 1)
    with pytest.raises(ValueError, match="is damaged at record 1"):
        pretraining_dataset(copy, 8, skip_corrupt=True)
