"""Where examples come from, found and checked before it is read: folders with a manifest, or plain TFRecord files."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import tensorflow as tf
from google.protobuf.message import DecodeError

from albert_tf.data.features import PACKED_FEATURES, PRETRAINING_FEATURES, with_role
from albert_tf.data.manifest import MANIFEST_NAME, Manifest
from albert_tf.data.options import Format, Objective
from albert_tf.data.shards import ShardFault, find_fault, read_records

Source = str | Path | Sequence[str | Path]


@dataclass(frozen=True)
class Shards:
    """Where examples come from; what only a manifest tells is None without one."""

    paths: list[Path]
    sizes: dict[str, int]
    records: list[int | None]
    bytes: list[int | None]
    vocab_hash: str | None
    objective: Objective | None


def find_shards(source: Source, expected: Format | None = "examples") -> Shards:
    """Finds the files of a source and what is known of them.

    Args:
        source: a folder made by `prepare`, or TFRecord files of examples.
        expected: what a folder must hold; None: anything.

    Raises:
        ValueError: a folder has no manifest or holds something else, or a file is no TFRecord file or has no examples.
    """
    if isinstance(source, str | Path) and Path(source).is_file():
        source = [source]
    if isinstance(source, str | Path):
        manifest, folder = Manifest.load(source), Path(source)
        if expected not in (None, manifest.recipe.format):
            raise ValueError(
                f"The folder must hold {expected}. Received: {folder}, which holds {manifest.recipe.format}; "
                f"run `albert-tf prepare --format {expected}`, or name it as `{manifest.recipe.format}`."
            )
        return Shards(
            [folder / shard.name for shard in manifest.shards],
            manifest.recipe.examples.sizes,
            [shard.records for shard in manifest.shards],
            [shard.bytes for shard in manifest.shards],
            manifest.recipe.vocab_hash,
            manifest.recipe.examples.objective,
        )
    paths = [Path(path) for path in source]
    if not paths:
        raise ValueError("`source` must be a folder or at least one TFRecord file. Received: no files. Name some.")
    unknown: list[int | None] = [None] * len(paths)
    return Shards(paths, _sizes_of_first_record(paths[0]), unknown, unknown, None, None)


def _sizes_of_first_record(path: Path) -> dict[str, int]:
    """Finds the lengths of the axes in the first example of a file."""
    try:
        example = tf.train.Example.FromString(next(read_records(path)))
    except (OSError, StopIteration, DecodeError) as error:
        raise ValueError(
            f"`source` must be TFRecord files with examples. "
            f"Received: {path} ({type(error).__name__}). Correct the path."
        ) from None
    sizes, packed = {}, "example_ids" in example.features.feature
    for feature in with_role(PACKED_FEATURES if packed else PRETRAINING_FEATURES, "input", "label"):
        values = example.features.feature[feature.disk_name]
        length = len(values.int64_list.value) or len(values.float_list.value)
        if not length:
            raise ValueError(
                f"Pretraining examples must have the feature {feature.disk_name!r}. Received: {path} with "
                f"{sorted(example.features.feature)}. Write the file with `albert-tf prepare`."
            )
        sizes.update(dict.fromkeys(feature.axes[1:], length))
    return sizes


def check_expectations(
    shards: Shards, max_seq_length: int | None, vocab_hash: str | None, objective: Objective
) -> None:
    """Raises ValueError where the examples are not of the length, vocabulary and objective that are asked for."""
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


def whole_shards(shards: Shards) -> list[Path]:
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


def undamaged_shards(paths: list[Path], records: list[int | None]) -> list[Path]:
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
        shards = find_shards(source, None)
        return _find_faults(shards.paths, shards.records)
    paths = [Path(source)] if isinstance(source, str | Path) else [Path(path) for path in source]
    return _find_faults(paths, [None] * len(paths))


@contextmanager
def name_damage(*sources: Source) -> Iterator[None]:
    """Turns TensorFlow's error about unreadable data into one that names the shard and the record.

    TensorFlow's own message names neither, so the shards are read through when it comes.

    Args:
        *sources: what datasets read.

    Raises:
        ValueError: the block ended with a `DataLossError` and a shard is damaged.
    """
    try:
        yield
    except tf.errors.DataLossError as error:
        faults = [fault for source in sources for fault in verify_shards(source)]
        if not faults:
            raise
        raise _damaged(faults) from error
