"""TFRecords of pretraining examples become a `tf.data` pipeline of batches.

Reads what `prepare` writes, and what `create_pretraining_data.py` writes too.

Letters: B batch, L sequence, P predictions.
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import tensorflow as tf
from google.protobuf.message import DecodeError

from albert_tf.data.features import PRETRAINING_FEATURES, Feature, Role, features_to_learn, with_role
from albert_tf.data.manifest import MANIFEST_NAME, Manifest
from albert_tf.data.options import Objective
from albert_tf.data.sharding import EVERYTHING, InputShard
from albert_tf.data.shards import ShardFault, find_fault, read_records

_OPEN_SHARDS = 16

Source = str | Path | Sequence[str | Path]
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
        vocab_hash: `tokenizer.vocab_hash` that the caller expects, or None; known for a folder only.
        objective: what the examples are to teach beside masked tokens; a folder made for another one is refused.
        skip_corrupt: read every shard through first and leave damaged ones out with a warning.
        first_batch: batches to leave out at the beginning, without parsing them.
        shard: which rows of each batch to give, where several hosts share it.

    Returns:
        Dataset of pairs (inputs, labels). Inputs: int32 `input_ids`, `attention_mask`, `token_type_ids` [B, L],
        `masked_lm_positions` [B, P]. Labels: int32 `masked_lm_ids` and float32 `masked_lm_weights` [B, P], and int32
        `sentence_order_labels` or `next_sentence_labels` [B], or neither, as the objective is.

    Raises:
        ValueError: the folder is not a finished one, was made for another length, vocabulary or objective, or a shard
            is missing, cut short or (with `skip_corrupt`, where none is left) damaged. Damage inside a shard is found
            when it is read; see `name_damage`.

    Example:

    >>> import tempfile
    >>> from albert_tf.data import PrepareOptions, prepare
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text, examples = Path(folder) / "text.txt", Path(folder) / "examples"
    ...     _ = text.write_text("It rained.\\nIt stopped.\\n")
    ...     _ = prepare(PrepareOptions(inputs=[text], output_dir=examples, max_seq_length=16, dupe_factor=4))
    ...     inputs, labels = next(iter(pretraining_dataset(examples, batch_size=2)))
    >>> inputs["input_ids"].shape, labels["sentence_order_labels"].shape
    (TensorShape([2, 16]), TensorShape([2]))
    """
    shards = _find_shards(source)
    objective = Objective(objective)
    _check_expectations(shards, max_seq_length, vocab_hash, objective)
    paths = _undamaged(shards.paths, shards.records) if skip_corrupt else _whole(shards)
    dataset = tf.data.Dataset.from_tensor_slices([str(path) for path in paths])
    if shuffle:
        dataset = dataset.shuffle(len(paths), seed=seed)
    dataset = dataset.interleave(
        tf.data.TFRecordDataset, cycle_length=min(len(paths), _OPEN_SHARDS), num_parallel_calls=tf.data.AUTOTUNE
    )
    if shuffle:
        dataset = dataset.shuffle(shuffle_buffer, seed=seed)
    if repeat:
        dataset = dataset.repeat()
    dataset = dataset.batch(batch_size, drop_remainder=drop_remainder)
    if not repeat and len(paths) == len(shards.paths) and None not in shards.records:
        # Keras warns of data that end unless it is told how many there are.
        examples = sum(count for count in shards.records if count)
        batches = examples // batch_size if drop_remainder else -(-examples // batch_size)
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(batches))
    dataset = shard.take(dataset.skip(first_batch))
    return dataset.map(_parser(shards.sizes, objective), num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def _parser(sizes: Sizes, objective: Objective):
    """Returns a function from serialised examples [B] to (inputs, labels)."""
    read = features_to_learn(objective.value)
    spec = parse_spec(read, sizes)

    def parse(records: tf.Tensor):
        parsed = tf.io.parse_example(records, spec)

        def select(role: Role):
            return {
                feature.name: tf.cast(parsed[feature.disk_name], feature.dtype) for feature in with_role(read, role)
            }

        return select("input"), select("label")

    return parse


@dataclass(frozen=True)
class _Shards:
    """Where examples come from; what only a manifest tells is None without one."""

    paths: list[Path]
    sizes: dict[str, int]
    records: list[int | None]
    bytes: list[int | None]
    vocab_hash: str | None
    objective: Objective | None


def _find_shards(source: Source) -> _Shards:
    if isinstance(source, str | Path) and Path(source).is_file():
        source = [source]
    if isinstance(source, str | Path):
        manifest, folder = Manifest.load(source), Path(source)
        return _Shards(
            [folder / shard.name for shard in manifest.shards],
            manifest.recipe.examples.sizes,
            [shard.statistics.examples for shard in manifest.shards],
            [shard.bytes for shard in manifest.shards],
            manifest.recipe.vocab_hash,
            manifest.recipe.examples.objective,
        )
    paths = [Path(path) for path in source]
    if not paths:
        raise ValueError("`source` must be a folder or at least one TFRecord file. Received: no files. Name some.")
    unknown: list[int | None] = [None] * len(paths)
    return _Shards(paths, _sizes_of_first_record(paths[0]), unknown, unknown, None, None)


def _sizes_of_first_record(path: Path) -> dict[str, int]:
    """Finds the lengths of the axes in the first example of a file."""
    try:
        example = tf.train.Example.FromString(next(read_records(path)))
    except (OSError, StopIteration, DecodeError) as error:
        raise ValueError(
            f"`source` must be TFRecord files with examples. "
            f"Received: {path} ({type(error).__name__}). Correct the path."
        ) from None
    sizes = {}
    for feature in with_role(PRETRAINING_FEATURES, "input", "label"):
        values = example.features.feature[feature.disk_name]
        length = len(values.int64_list.value) or len(values.float_list.value)
        if not length:
            raise ValueError(
                f"Pretraining examples must have the feature {feature.disk_name!r}. Received: {path} with "
                f"{sorted(example.features.feature)}. Write the file with `albert-tf prepare`."
            )
        sizes.update(dict.fromkeys(feature.axes[1:], length))
    return sizes


def _check_expectations(
    shards: _Shards, max_seq_length: int | None, vocab_hash: str | None, objective: Objective
) -> None:
    if max_seq_length not in (None, shards.sizes["L"]):
        raise ValueError(
            f"The examples must have the sequence length that is asked for. Received: max_seq_length={max_seq_length}, "
            f"examples of length {shards.sizes['L']}. Prepare them again or change the setting."
        )
    if None not in (vocab_hash, shards.vocab_hash) and vocab_hash != shards.vocab_hash:
        raise ValueError(
            f"The examples must be made with the vocabulary that is asked for. Received: vocab_hash={vocab_hash}, "
            f"examples with {shards.vocab_hash}. Prepare them again or use their vocabulary."
        )
    if shards.objective not in (None, objective):
        raise ValueError(
            f"The examples must be made for the objective that is asked for. Received: objective={objective.value!r}, "
            f"examples for {shards.objective.value!r}. Prepare them again or change the setting."
        )


def _whole(shards: _Shards) -> list[Path]:
    """Returns the shards after comparing their sizes with the manifest, which costs no reading."""
    for path, size, records in zip(shards.paths, shards.bytes, shards.records, strict=True):
        if not path.is_file():
            raise ValueError(
                f"Every shard that {MANIFEST_NAME} lists must be there. Received: no {path}. "
                f"Copy it or prepare the folder again."
            )
        if size not in (None, path.stat().st_size):
            raise _damaged([find_fault(path, records) or ShardFault(path, 0, "its size is not the manifest's")])
    return shards.paths


def _undamaged(paths: list[Path], records: list[int | None]) -> list[Path]:
    """Returns the shards that can be read to their end, with a warning about the others."""
    faults = _find_faults(paths, records)
    if faults and len(faults) == len(paths):
        raise _damaged(faults)
    for fault in faults:
        warnings.warn(f"Left out: {fault}.", stacklevel=3)
    damaged = {fault.path for fault in faults}
    return [path for path in paths if path not in damaged]


def _find_faults(paths: list[Path], records: list[int | None]) -> list[ShardFault]:
    faults = []
    for path, count in zip(paths, records, strict=True):
        fault = find_fault(path, count) if path.is_file() else ShardFault(path, 0, "there is no such file")
        faults += [fault] if fault else []
    return faults


def _damaged(faults: list[ShardFault]) -> ValueError:
    return ValueError(
        f"Every shard must be readable to its end. Received: {'; '.join(map(str, faults))}. "
        f"Prepare the folder again, or leave damaged shards out with skip_corrupt=True."
    )


def verify_shards(source: Source) -> list[ShardFault]:
    """Reads every shard through.

    Args:
        source: as for `pretraining_dataset`.

    Returns:
        The first fault of each damaged shard, with its path, the record's index and the reason; empty if all is well.
    """
    if isinstance(source, str | Path) and Path(source).is_dir():
        shards = _find_shards(source)
        return _find_faults(shards.paths, shards.records)
    paths = [Path(source)] if isinstance(source, str | Path) else [Path(path) for path in source]
    return _find_faults(paths, [None] * len(paths))


@contextmanager
def name_damage(source: Source) -> Iterator[None]:
    """Turns TensorFlow's error about unreadable data into one that names the shard and the record.

    TensorFlow's own message names neither, so the shards are read through when it comes.

    Args:
        source: what the dataset reads.

    Raises:
        ValueError: the block ended with a `DataLossError` and a shard is damaged.
    """
    try:
        yield
    except tf.errors.DataLossError as error:
        faults = verify_shards(source)
        if not faults:
            raise
        raise _damaged(faults) from error
