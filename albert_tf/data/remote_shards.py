"""Remote shards in `tf.data`: copied ahead of their turn, and removed after their last record."""

import pathlib
import secrets

import tensorflow as tf

from albert_tf.files.urls import fetch, is_url, location, process_folder

_AT_ONCE, _AHEAD = 4, 4


def copied(names: tf.data.Dataset) -> tf.data.Dataset:
    """The paths of copies of shards, in the order of their paths or URLs."""

    def copy(name: tf.Tensor) -> tf.Tensor:
        return tf.ensure_shape(tf.numpy_function(_copy, [name], tf.string), [])

    return names.map(copy, num_parallel_calls=_AT_ONCE, deterministic=True).prefetch(_AHEAD)


def read_and_removed(path: tf.Tensor) -> tf.data.Dataset:
    """The records of a shard, whose copy is removed after the last one."""

    def is_there(path: tf.Tensor) -> tf.Tensor:
        return tf.ensure_shape(tf.numpy_function(_remove, [path], tf.bool), [])

    # What removes the copy has no elements.
    return tf.data.TFRecordDataset(path).concatenate(tf.data.Dataset.from_tensors(path).filter(is_there))


def _copy(name: bytes) -> bytes:
    if not is_url(name.decode()):
        return name
    file = process_folder() / f"shard-{secrets.token_hex(8)}"
    fetch(location(name.decode()), [""], file)
    return str(file).encode()


def _remove(name: bytes) -> bool:
    path = pathlib.Path(name.decode())
    if path.parent == process_folder():  # else it is no copy
        path.unlink()
    return False
