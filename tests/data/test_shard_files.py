"""TensorFlow reads our shards, and damage is found wherever it is."""

import pytest
import tensorflow as tf

from albert_tf.data.shard_files import DamagedShardError, find_fault, read_records, write_records

RECORDS = [b"", b"a", b"some bytes" * 50, bytes(range(256))]


def written(folder, records=RECORDS):
    path = folder / "shard.tfrecord"
    with path.open("wb") as file:
        write_records(file, records)
    return path


def test_tensorflow_reads_the_records(tmp_path):
    path = written(tmp_path)
    assert [record.numpy() for record in tf.data.TFRecordDataset(str(path))] == RECORDS
    assert list(read_records(path)) == RECORDS


def test_bytes_are_those_of_tensorflows_writer(tmp_path):
    with tf.io.TFRecordWriter(str(tmp_path / "theirs")) as writer:
        for record in RECORDS:
            writer.write(record)
    assert written(tmp_path).read_bytes() == (tmp_path / "theirs").read_bytes()


def test_every_truncation_is_found(tmp_path):
    path = written(tmp_path, [b"abc", b"defg"])
    whole = path.read_bytes()  # records of 19 and 20 bytes
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        fault = find_fault(path, records=2)
        assert fault is not None
        assert fault.record == int(size >= 19)
        # A file that ends between records is only short of some.
        assert (find_fault(path) is None) == (size in (0, 19))
        if size not in (0, 19):
            with pytest.raises(DamagedShardError, match=r"shard\.tfrecord is damaged at record \d"):
                list(read_records(path))


def test_every_flipped_byte_is_found(tmp_path):
    path = written(tmp_path, [b"abc", b"defg"])
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        fault = find_fault(path)
        assert fault is not None
        assert fault.record == int(place >= 19)
        assert "checksum" in str(fault)


def test_surplus_records_are_found(tmp_path):
    assert "it holds 4 records in 821 bytes, but was written with 3 records)" in str(
        find_fault(written(tmp_path), records=3)
    )
