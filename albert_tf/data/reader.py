"""TFRecords of pretraining examples become a `tf.data` pipeline of batches.

Reads what `prepare` writes, and what `create_pretraining_data.py` writes too.

Letters: B batch, L sequence, P predictions.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

import tensorflow as tf

from albert_tf.data.features import Feature, Role, features_to_learn, with_role
from albert_tf.data.options import Objective
from albert_tf.data.sharding import EVERYTHING, InputShard
from albert_tf.data.sources import Source, check_expectations, complete_shards, find_shards, undamaged_shards

_OPEN_SHARDS = 16

Sizes = Mapping[str, int]


def parse_spec(features: Iterable[Feature], sizes: Sizes) -> dict[str, tf.io.FixedLenFeature]:
    """Returns what `tf.io.parse_example` needs to read `features`, by their names on disk.

    Args:
        features: what to read.
        sizes: length of each axis but the batch, such as `{"L": 512, "P": 77}`.
    """
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
        seed: of the order of shards and examples; the same seed gives the same batches.
        shuffle: False reads the shards in turns and their examples in order.
        repeat: go on for ever, each time in another order.
        drop_remainder: leave out a last batch with less than B examples.
        shuffle_buffer: examples among which the next one is drawn; not large, because shards are shuffled already.
        max_seq_length: L that the caller expects, or None.
        vocab_hash: `tokenizer.vocab_hash` that the caller expects of a folder, or None.
        objective: what the examples are to teach beside masked tokens; a folder made for another one is refused.
        skip_corrupt: read every shard through first and leave damaged ones out with a warning, and those that are not
            as the manifest has them.
        first_batch: the batch to begin with. Of a folder only records of the epoch in which it lies are passed over,
            unparsed; of files named one by one, of which nothing is known, all before it.
        shard: which rows of each batch to give, where several hosts share it.

    Returns:
        Dataset of pairs (inputs, labels). Inputs: int32 `input_ids`, `attention_mask`, `token_type_ids` [B, L],
        `masked_lm_positions` [B, P]. Labels: int32 `masked_lm_ids` and float32 `masked_lm_weights` [B, P], and int32
        `sentence_order_labels` or `next_sentence_labels` [B], or neither, as the objective is. Packed rows have inputs
        and labels more, see `PackedExamples`.

    Raises:
        ValueError: the folder is not a finished one, was made for another length, vocabulary or objective, or a shard
            is of another folder, missing, cut short or (with `skip_corrupt`, where none is left) damaged. Damage inside
            a shard is found when it is read; see `name_damage`.

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
    paths = undamaged_shards(shards) if skip_corrupt else complete_shards(shards)
    counts = dict(zip(shards.paths, (listed.records for listed in shards.manifest.shards))) if shards.manifest else {}
    records = sum(counts.get(path, 0) for path in paths)
    epochs, skipped = divmod(first_batch * batch_size, records) if records and repeat else (0, first_batch * batch_size)

    def read_epoch(epoch: tf.Tensor) -> tf.data.Dataset:
        return _epoch(paths, (tf.constant(seed, tf.int64), epoch) if shuffle else None, shuffle_buffer)

    dataset = (tf.data.Dataset.counter(epochs) if repeat else tf.data.Dataset.range(1)).flat_map(read_epoch)
    dataset = dataset.skip(skipped).batch(batch_size, drop_remainder=drop_remainder)
    if repeat:
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY))
    elif records:
        # Keras warns of data that end unless it is told how many there are.
        left = max(records - skipped, 0)
        batches = left // batch_size if drop_remainder else -(-left // batch_size)
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(batches))
    dataset = shard.take(dataset)
    return dataset.map(_parser(shards.sizes, objective), num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def _epoch(paths: list[Path], order: tuple[tf.Tensor, tf.Tensor] | None, shuffle_buffer: int) -> tf.data.Dataset:
    """All records once, in an order that the seed and the epoch decide, or in that of the files if there is none."""
    dataset = tf.data.Dataset.from_tensor_slices([str(path) for path in paths])
    seeds = None
    if order is not None:
        # Of this function's graph alone: a global seed would enter the order, and of 0 `shuffle` takes no tensor.
        tf.random.set_seed(1)
        # A stateless draw: any epoch's order is known without those before.
        seeds = tf.random.stateless_uniform([2], tf.stack(order), None, None, tf.int64)
        dataset = dataset.shuffle(len(paths), seed=seeds[0], reshuffle_each_iteration=False)
    dataset = dataset.interleave(
        tf.data.TFRecordDataset, cycle_length=min(len(paths), _OPEN_SHARDS), num_parallel_calls=tf.data.AUTOTUNE
    )
    return dataset if seeds is None else dataset.shuffle(shuffle_buffer, seed=seeds[1], reshuffle_each_iteration=False)


def _parser(sizes: Sizes, objective: Objective):
    """Returns a function from serialised examples [B] to (inputs, labels)."""
    read = features_to_learn(objective.value, packed="S" in sizes)
    spec = parse_spec(read, sizes)

    def parse(records: tf.Tensor):
        parsed = tf.io.parse_example(records, spec)

        def select(role: Role):
            return {
                feature.name: tf.cast(parsed[feature.disk_name], feature.dtype) for feature in with_role(read, role)
            }

        return select("input"), select("label")

    return parse
