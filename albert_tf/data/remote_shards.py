"""Remote shards in `tf.data`: copied ahead of their turn, and returned to the cache after their last record."""

import tensorflow as tf

from albert_tf.data.shard_cache import SHARDS
from albert_tf.files.urls import is_url

_AT_ONCE, _AHEAD = 4, 4


def copied(names: tf.data.Dataset, following: tf.data.Dataset) -> tf.data.Dataset:
    """Pairs of the name of a shard and the path of its copy, in the order of `names`.

    Args:
        names: paths or URLs of the shards of an epoch.
        following: those that the next epoch begins with, which are copied when all others are.
    """
    now, ahead = (tf.data.Dataset.from_tensors(is_ahead).repeat() for is_ahead in (False, True))
    stages = tf.data.Dataset.zip(names, now), tf.data.Dataset.zip(following, ahead)
    pairs = stages[0].concatenate(stages[1]).map(_copy, num_parallel_calls=_AT_ONCE, deterministic=True)
    pairs = pairs.filter(lambda name, path, is_ahead: tf.logical_not(is_ahead))
    return pairs.map(lambda name, path, is_ahead: (name, path)).prefetch(_AHEAD)


def read_and_give_back(name: tf.Tensor, path: tf.Tensor) -> tf.data.Dataset:
    """The records of a shard; when they have all been read, its copy may go."""
    end = tf.data.Dataset.from_tensors(name).filter(_give_back).map(lambda name: name)  # has no elements
    return tf.data.TFRecordDataset(path).concatenate(end)


def _copy(name: tf.Tensor, is_ahead: tf.Tensor):
    path = tf.numpy_function(_take, [name, is_ahead], tf.string)
    path.set_shape([])
    return name, path, is_ahead


def _give_back(name: tf.Tensor) -> tf.Tensor:
    has_more = tf.numpy_function(_return, [name], tf.bool)
    has_more.set_shape([])
    return has_more


def _take(name: bytes, is_ahead: bool) -> bytes:
    url = name.decode()
    return str(SHARDS.take(url, bool(is_ahead))).encode() if is_url(url) else name


def _return(name: bytes) -> bool:
    if is_url(name.decode()):
        SHARDS.give_back(name.decode())
    return False
