"""Finds and checks the shards of a data source: a folder with a manifest, or TFRecord files."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import tensorflow as tf
from google.protobuf.message import DecodeError

from albert_tf.data.features import PACKED_FEATURES, PRETRAINING_FEATURES, with_role
from albert_tf.data.manifest import MANIFEST_NAME, Manifest, Shard
from albert_tf.data.options import Format, Objective
from albert_tf.data.shard_files import DamagedShardError, ShardFault, find_fault, read_records
from albert_tf.files.urls import file_infos, is_remote, kind_of, local_copy, location

Source = str | Path | Sequence[str | Path]


@dataclass(frozen=True)
class Shards:
    """The shards of a data source.

    Args:
        paths: the files.
        sizes: lengths of the axes, as `Feature.row_shape` takes them.
        manifest: manifest of the folder, which lists `paths` in the same order; None for a list of files.
    """

    paths: list[Path]
    sizes: dict[str, int]
    manifest: Manifest | None

    @property
    def listed(self) -> list[Shard | None]:
        """The manifest's entry for each file, or None."""
        return [None] * len(self.paths) if self.manifest is None else list(self.manifest.shards)


def find_shards(source: Source, expected: Format | None = "examples") -> Shards:
    """Finds the shards of a folder made by `prepare`, or of a list of TFRecord files.

    Raises:
        ValueError: a folder has no manifest, another format than `expected`, or files that its manifest does not list,
            or a file is not a TFRecord file of examples.
    """
    paths, manifest = _locate(source)
    if manifest is None:
        if not paths:
            raise ValueError("`source` must be a folder or at least one TFRecord file. Received: no files. Add one.")
        return Shards(paths, _sizes_of_first_record(paths[0]), None)
    folder, actual = location(source), manifest.recipe.format
    if expected not in (None, actual):
        raise ValueError(
            f"{folder} holds {actual}, not {expected}; run `albert-tf prepare --format {expected}`, or pass the folder "
            f"as `{actual}`."
        )
    unlisted = sorted(set(folder.glob("[!.]*.tfrecord")) - set(paths))
    if unlisted:
        raise ValueError(
            f"{len(unlisted)} .tfrecord files are not listed in {folder / MANIFEST_NAME}, such as {unlisted[0].name}; "
            f"move them to another folder."
        )
    return Shards(paths, manifest.recipe.examples.sizes, manifest)


def _locate(source: Source) -> tuple[list[Path], Manifest | None]:
    """The files of a source, and the manifest if it is a folder."""
    if not isinstance(source, str | Path):
        return [location(path) for path in source], None
    path = location(source)
    if kind_of(path) == "file":
        return [path], None
    manifest = Manifest.load(path)
    return [path / shard.name for shard in manifest.shards], manifest


def _sizes_of_first_record(path: Path) -> dict[str, int]:
    """Reads the lengths of the axes from the first example of a file."""
    try:
        example = tf.train.Example.FromString(next(read_records(path)))
    except (OSError, StopIteration, DecodeError) as error:
        raise ValueError(
            f"{path} is not a TFRecord file of examples ({type(error).__name__}); correct the path."
        ) from None
    sizes, packed = {}, "example_ids" in example.features.feature
    for feature in with_role(PACKED_FEATURES if packed else PRETRAINING_FEATURES, "input", "label"):
        values = example.features.feature[feature.disk_name]
        length = len(values.int64_list.value) or len(values.float_list.value)
        if not length:
            raise ValueError(
                f"The examples in {path} have no feature {feature.disk_name!r}, only "
                f"{', '.join(sorted(example.features.feature))}; write the file with `albert-tf prepare`."
            )
        sizes.update(dict.fromkeys(feature.axes[1:], length))
    return sizes


def check_expectations(
    shards: Shards, max_seq_length: int | None, vocab_hash: str | None, objective: Objective
) -> None:
    """Raises ValueError if the examples have another length, vocabulary or objective than expected."""
    if max_seq_length not in (None, shards.sizes["L"]):
        raise ValueError(
            f"The examples have length {shards.sizes['L']}, but max_seq_length={max_seq_length} was requested; prepare "
            f"them again or change the setting."
        )
    if shards.manifest is None:
        return
    recipe = shards.manifest.recipe
    if vocab_hash not in (None, recipe.vocab_hash):
        raise ValueError(
            f"The examples in {shards.paths[0].parent} were made with another vocabulary (vocab_hash="
            f"{recipe.vocab_hash}, {recipe.vocab_size:,} pieces) than the requested one ({vocab_hash}); use the "
            f"tokenizer that they were made with, or prepare them again."
        )
    if recipe.examples.objective is not objective:
        raise ValueError(
            f"The examples in {shards.paths[0].parent} were made for objective={recipe.examples.objective.value!r}, "
            f"but {objective.value!r} was requested; prepare them again or change the setting."
        )


def shards_to_read(shards: Shards, skip_corrupt: bool) -> tuple[list[Path], list[Path]]:
    """The shards without faults, and where they are read: remote ones in copies.

    Raises:
        ValueError: a shard is missing or, as its size shows, not that of the manifest; with `skip_corrupt`, which reads
            all of them and warns of each fault, all have faults.
    """
    # A folder behind a URL is listed once, instead of asking for each file.
    infos = {folder: file_infos(folder) for folder in {path.parent for path in shards.paths if is_remote(path)}}
    sizes = {
        path: infos[path.parent][path.name]["size"] for path in shards.paths if path.name in infos.get(path.parent, ())
    }
    paths = _undamaged(shards) if skip_corrupt else _complete(shards, sizes)
    names = {path.name for path in paths}
    copies = {folder: local_copy(folder, names.__contains__) for folder in infos}
    return paths, [copies[path.parent] / path.name if is_remote(path) else path for path in paths]


def _complete(shards: Shards, remote_sizes: Mapping[Path, int]) -> list[Path]:
    """The shards, which have the sizes of the manifest."""
    for path, listed in zip(shards.paths, shards.listed, strict=True):
        is_missing = path not in remote_sizes if is_remote(path) else not path.is_file()
        if is_missing:
            raise ValueError(f"The shard {path} is missing; copy it there, or prepare the folder again.")
        if listed and listed.bytes != (remote_sizes[path] if is_remote(path) else path.stat().st_size):
            fault = find_fault(path, listed.records, listed.bytes)
            raise _damaged([fault or ShardFault(path, 0, "it changed while it was read")])
    return shards.paths


def _undamaged(shards: Shards) -> list[Path]:
    """The shards without faults, with a warning about the others; raises ValueError if all have faults."""
    faults = _find_faults(shards)
    if faults and len(faults) == len(shards.paths):
        raise _damaged(faults)
    for fault in faults:
        warnings.warn(f"Skipped: {fault}.", stacklevel=4)
    damaged = {fault.path for fault in faults}
    return [path for path in shards.paths if path not in damaged]


def _find_faults(shards: Shards) -> list[ShardFault]:
    faults = []
    for path, shard in zip(shards.paths, shards.listed, strict=True):
        expected = (shard.records, shard.bytes) if shard else ()
        fault = find_fault(path, *expected) if path.is_file() else ShardFault(path, 0, "there is no such file")
        faults += [fault] if fault else []
    return faults


def _damaged(faults: list[ShardFault]) -> ValueError:
    cause = "; it may come from a folder with another vocabulary." if any(fault.readable for fault in faults) else "."
    return ValueError(
        f"{'; '.join(map(str, faults))}{cause} Prepare the folder again, or skip such shards with skip_corrupt=True."
    )


def verify_shards(source: Source) -> list[ShardFault]:
    """Reads every shard to its end and verifies all checksums.

    Args:
        source: as for `pretraining_dataset`.

    Returns:
        The first fault of each damaged shard.
    """
    paths, manifest = _locate(source)
    return _find_faults(Shards(paths, {}, manifest))


@contextmanager
def name_damage(*sources: Source) -> Iterator[None]:
    """Turns TensorFlow's error about unreadable data into one that names the shard and the record.

    TensorFlow's message names neither, so the shards are verified after the error.

    Args:
        *sources: the sources of the datasets that are read in the block.

    Raises:
        ValueError: the block raised a read error and a shard is damaged.
    """
    try:
        yield
    except tf.errors.OpError as error:
        if not isinstance(error, tf.errors.DataLossError | tf.errors.InvalidArgumentError):
            raise
        # Errors of the generator that makes examples on the fly arrive as text.
        if not isinstance(error, tf.errors.DataLossError) and DamagedShardError.__name__ not in error.message:
            raise
        faults = [fault for source in sources for fault in verify_shards(source)]
        if not faults:
            raise
        raise _damaged(faults) from error
