"""Reads TFRecords of pretraining examples, by `prepare` or by `create_pretraining_data.py`, as a `tf.data.Dataset`.

Letters: B batch, L sequence, P predictions.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

import tensorflow as tf

from albert_tf.data.autotuning import PREFETCHED_BATCHES, without_autotuning
from albert_tf.data.features import Feature, features_to_learn, split_roles
from albert_tf.data.options import Objective
from albert_tf.data.sharding import EVERYTHING, InputShard
from albert_tf.data.sources import Source, check_expectations, find_shards, shards_to_read

_OPEN_SHARDS = 16

Sizes = Mapping[str, int]


def parse_spec(features: Iterable[Feature], sizes: Sizes) -> dict[str, tf.io.FixedLenFeature]:
    """Returns the spec with which `tf.io.parse_example` reads `features`; for `sizes` see `Feature.row_shape`."""
    return {
        feature.disk_name: tf.io.FixedLenFeature(feature.row_shape(sizes), feature.disk_dtype) for feature in features
    }


def pretraining_dataset(
    source: Source,
    batch_size: int,
    *,
    seed: int = 0,
    shuffle: bool = True,
    repeat: bool = True,
    drop_remainder: bool = True,
    shuffle_buffer: int = 8192,
    max_seq_length: int | None = None,
    vocab_hash: str | None = None,
    objective: Objective | str = Objective.SENTENCE_ORDER,
    skip_corrupt: bool = False,
    first_batch: int = 0,
    shard: InputShard = EVERYTHING,
) -> tf.data.Dataset:
    """Reads batches of pretraining examples.

    Args:
        source: a folder made by `prepare`, or TFRecord files of one sequence length.
        batch_size: B.
        seed: seed of the order of shards and examples.
        shuffle: False reads the shards in turn, each in order.
        repeat: repeat forever, each epoch in another order.
        drop_remainder: drop a last batch of fewer than B examples.
        shuffle_buffer: size of the shuffle buffer; it can be small, because shards are shuffled already.
        max_seq_length: expected L, or None.
        vocab_hash: expected `tokenizer.vocab_hash` of a folder, or None.
        objective: expected objective of a folder.
        skip_corrupt: check all shards first; skip, with a warning, those that are damaged or differ from the manifest.
        first_batch: the batch to start with. In a folder, only the earlier records of its epoch are read and skipped;
            with a list of files, all earlier records.
        shard: this host's rows of each batch.

    Returns:
        Dataset of pairs (inputs, labels). Inputs: int32 `input_ids`, `attention_mask`, `token_type_ids` [B, L],
        `masked_lm_positions` [B, P]. Labels: int32 `masked_lm_ids` and float32 `masked_lm_weights` [B, P], and
        depending on the objective int32 `sentence_order_labels` or `next_sentence_labels` [B], or neither. Packed rows
        have further inputs and labels, see `PackedExamples`.

    Raises:
        ValueError: the folder is incomplete or was made for another length, vocabulary or objective, or a shard is
            missing, truncated or from another folder; with `skip_corrupt`, all shards are damaged. Damage within a
            shard is found when it is read; see `name_damage`.

    Example:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from albert_tf.data import PrepareOptions, prepare
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text, examples = Path(folder) / "text.txt", Path(folder) / "examples"
    ...     _ = text.write_text("It rained.\\nIt stopped.\\n")
    ...     _ = prepare(PrepareOptions(inputs=[text], output_dir=examples, max_seq_length=16, dupe_factor=4))
    ...     inputs, labels = next(iter(pretraining_dataset(examples, batch_size=2)))
    >>> inputs["input_ids"].shape, labels["sentence_order_labels"].shape
    (TensorShape([2, 16]), TensorShape([2]))
    """
    shards = find_shards(source)
    objective = Objective(objective)
    check_expectations(shards, max_seq_length, vocab_hash, objective)
    paths, to_read = shards_to_read(shards, skip_corrupt)
    counts = dict(zip(shards.paths, (listed.records for listed in shards.manifest.shards))) if shards.manifest else {}
    records = sum(counts.get(path, 0) for path in paths)
    epochs, skipped = divmod(first_batch * batch_size, records) if records and repeat else (0, first_batch * batch_size)

    def read_epoch(epoch: tf.Tensor) -> tf.data.Dataset:
        order = (tf.constant(seed, tf.int64), epoch) if shuffle else None
        return _epoch(to_read, order, shuffle_buffer)

    dataset = (tf.data.Dataset.counter(epochs) if repeat else tf.data.Dataset.range(1)).flat_map(read_epoch)
    dataset = dataset.skip(skipped).batch(batch_size, drop_remainder=drop_remainder)
    if repeat:
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY))
    elif records:
        # Without a cardinality, Keras warns when the data end.
        remaining = max(records - skipped, 0)
        batches = remaining // batch_size if drop_remainder else -(-remaining // batch_size)
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(batches))
    dataset = shard.take(dataset)
    parse = _parser(shards.sizes, objective)
    dataset = dataset.map(parse, num_parallel_calls=tf.data.AUTOTUNE).prefetch(PREFETCHED_BATCHES)
    return without_autotuning(dataset)


def _epoch(paths: list[Path], order: tuple[tf.Tensor, tf.Tensor] | None, shuffle_buffer: int) -> tf.data.Dataset:
    """All records once, shuffled by `order` = (seed, epoch), or in the order of the files if it is None."""
    seeds = _seeds(order)
    dataset = tf.data.Dataset.from_tensor_slices([*map(str, paths)])
    if seeds is not None:
        dataset = dataset.shuffle(len(paths), seed=seeds[0], reshuffle_each_iteration=False)
    dataset = dataset.interleave(
        tf.data.TFRecordDataset, cycle_length=min(len(paths), _OPEN_SHARDS), num_parallel_calls=tf.data.AUTOTUNE
    )
    return dataset if seeds is None else dataset.shuffle(shuffle_buffer, seed=seeds[1], reshuffle_each_iteration=False)


def _seeds(order: tuple[tf.Tensor, tf.Tensor] | None) -> tf.Tensor | None:
    """Two seeds: of the order of the shards, and of that of the records."""
    if order is None:
        return None
    # `shuffle` also depends on the global seed, and takes no tensor if that is 0; this sets it in this graph only.
    tf.random.set_seed(1)
    # Stateless, so that the order of an epoch does not depend on earlier ones.
    return tf.random.stateless_uniform([2], tf.stack(order), None, None, tf.int64)


def _parser(sizes: Sizes, objective: Objective):
    """Returns a function from serialized examples [B] to (inputs, labels)."""
    read = features_to_learn(objective.value, packed="S" in sizes)
    spec = parse_spec(read, sizes)

    def parse(records: tf.Tensor):
        parsed = tf.io.parse_example(records, spec)
        return split_roles(read, {feature.name: tf.cast(parsed[feature.disk_name], feature.dtype) for feature in read})

    return parse
