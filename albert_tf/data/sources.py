"""Where examples come from, found and checked before it is read: folders with a manifest, or plain TFRecord files."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import tensorflow as tf
from google.protobuf.message import DecodeError

from albert_tf.data.features import PACKED_FEATURES, PRETRAINING_FEATURES, with_role
from albert_tf.data.manifest import MANIFEST_NAME, Manifest, Recipe, Shard
from albert_tf.data.options import Format, Objective
from albert_tf.data.shards import DamagedShardError, ShardFault, find_fault, read_records

Source = str | Path | Sequence[str | Path]


@dataclass(frozen=True)
class Shards:
    """Where examples come from.

    Args:
        paths: the files.
        sizes: lengths of their axes, as `Feature.row_shape` takes them.
        listed: what a manifest says of each file; None: no manifest is beside it.
        vocab_hash, objective: what they were made with, or None without a manifest.
    """

    paths: list[Path]
    sizes: dict[str, int]
    listed: list[Shard | None]
    vocab_hash: str | None
    objective: Objective | None


def find_shards(source: Source, expected: Format | None = "examples") -> Shards:
    """Finds the files of a source and what is known of them.

    Args:
        source: a folder made by `prepare`, or TFRecord files of examples.
        expected: what a folder must hold; None: anything.

    Raises:
        ValueError: a folder has no manifest, holds something else or files that its manifest does not list, a file is
            no TFRecord file, has no examples or is not listed, or files of several folders do not fit each other.
    """
    if isinstance(source, str | Path) and Path(source).is_file():
        source = [source]
    if isinstance(source, str | Path):
        manifest, folder = Manifest.load(source), Path(source)
        recipe = manifest.recipe
        if expected not in (None, recipe.format):
            raise ValueError(
                f"The folder must hold {expected}. Received: {folder}, which holds {recipe.format}; "
                f"run `albert-tf prepare --format {expected}`, or name it as `{recipe.format}`."
            )
        paths = [folder / shard.name for shard in manifest.shards]
        _refuse_strangers(sorted(set(folder.glob("[!.]*.tfrecord")) - set(paths)))
        return Shards(paths, recipe.examples.sizes, list(manifest.shards), recipe.vocab_hash, recipe.examples.objective)
    paths = [Path(path) for path in source]
    if not paths:
        raise ValueError("`source` must be a folder or at least one TFRecord file. Received: no files. Name some.")
    manifests = _manifests_beside(paths)
    listed = _listed(paths, manifests)
    _refuse_strangers([path for path, shard in zip(paths, listed) if shard is None and path.parent in manifests])
    made = [(path, manifests[path.parent].recipe) for path in paths if path.parent in manifests]
    for other in made[1:]:
        _refuse_mixture(made[0], other)
    known = (made[0][1].vocab_hash, made[0][1].examples.objective) if made else (None, None)
    return Shards(paths, _sizes_of_first_record(paths[0]), listed, *known)


def _manifests_beside(paths: list[Path]) -> dict[Path, Manifest]:
    """Returns the manifests in the folders of files; another program's file of that name tells nothing."""
    manifests = {}
    for folder in {path.parent for path in paths}:
        with suppress(ValueError):
            manifests[folder] = Manifest.load(folder)
    return manifests


def _listed(paths: list[Path], manifests: Mapping[Path, Manifest]) -> list[Shard | None]:
    listed = {folder / shard.name: shard for folder, manifest in manifests.items() for shard in manifest.shards}
    return [listed.get(path) for path in paths]


def _refuse_strangers(strangers: list[Path]) -> None:
    """Raises ValueError where files lie beside a manifest that does not list them."""
    if strangers:
        raise ValueError(
            f"Every shard beside a {MANIFEST_NAME} must be one that it lists. Received: {strangers[0]}, which it does "
            f"not list (such files: {len(strangers)}); move what is of another folder back there."
        )


def _refuse_mixture(one: tuple[Path, Recipe], other: tuple[Path, Recipe]) -> None:
    """Raises ValueError where two files cannot be read together."""

    def facts(recipe: Recipe) -> dict[str, object]:
        examples = recipe.examples
        objective, sizes = examples.objective.value, examples.sizes
        return {"vocabulary": recipe.vocab_hash, "objective": objective, "lengths": sizes, "format": recipe.format}

    for (name, mine), theirs in zip(facts(one[1]).items(), facts(other[1]).values(), strict=True):
        if mine != theirs:
            raise ValueError(
                f"Shards that are read together must have the same {name}. Received: {one[0]} with {mine}, {other[0]} "
                f"with {theirs}; leave one of them out, or prepare it again."
            )


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
    for path, listed in zip(shards.paths, shards.listed, strict=True):
        if not path.is_file():
            raise ValueError(
                f"Every shard that {MANIFEST_NAME} lists must be there. Received: no {path}. "
                f"Copy it or prepare the folder again."
            )
        if listed and listed.bytes != path.stat().st_size:
            fault = find_fault(path, listed.records, listed.bytes)
            raise _unfit([fault or ShardFault(path, 0, "it changes while it is read")])
    return shards.paths


def undamaged_shards(shards: Shards) -> list[Path]:
    """Returns the shards that can be read to their end, with a warning about the others."""
    faults = _find_faults(shards.paths, shards.listed)
    if faults and len(faults) == len(shards.paths):
        raise _unfit(faults)
    for fault in faults:
        warnings.warn(f"Left out: {fault}.", stacklevel=3)
    unfit = {fault.path for fault in faults}
    return [path for path in shards.paths if path not in unfit]


def _find_faults(paths: list[Path], listed: list[Shard | None]) -> list[ShardFault]:
    faults = []
    for path, shard in zip(paths, listed, strict=True):
        expected = (shard.records, shard.bytes) if shard else ()
        fault = find_fault(path, *expected) if path.is_file() else ShardFault(path, 0, "there is no such file")
        faults += [fault] if fault else []
    return faults


def _unfit(faults: list[ShardFault]) -> ValueError:
    strange = any(fault.readable for fault in faults)
    must = f"be whole, and the one that {MANIFEST_NAME} lists" if strange else "be readable to its end"
    cause = "Shards of another folder, and so perhaps of another vocabulary, must not be mixed in. " * strange
    return ValueError(
        f"Every shard must {must}. Received: {'; '.join(map(str, faults))}. {cause}"
        f"Prepare the folder again, or leave such shards out with skip_corrupt=True."
    )


def verify_shards(source: Source) -> list[ShardFault]:
    """Reads every shard through.

    Args:
        source: as for `pretraining_dataset`.

    Returns:
        The first fault of each damaged shard, with its path, the record's index and the reason; empty if all is well.
    """
    if isinstance(source, str | Path) and Path(source).is_dir():
        manifest = Manifest.load(source)
        return _find_faults([Path(source) / shard.name for shard in manifest.shards], list(manifest.shards))
    paths = [Path(source)] if isinstance(source, str | Path) else [Path(path) for path in source]
    return _find_faults(paths, _listed(paths, _manifests_beside(paths)))


@contextmanager
def name_damage(*sources: Source) -> Iterator[None]:
    """Turns TensorFlow's error about unreadable data into one that names the shard and the record.

    TensorFlow's own message names neither, so the shards are read through when it comes. An error in making examples
    on the fly reaches TensorFlow as text.

    Args:
        *sources: what datasets read.

    Raises:
        ValueError: the block ended with an error of reading and a shard is damaged.
    """
    try:
        yield
    except (tf.errors.DataLossError, tf.errors.InvalidArgumentError) as error:
        if not isinstance(error, tf.errors.DataLossError) and DamagedShardError.__name__ not in error.message:
            raise
        faults = [fault for source in sources for fault in verify_shards(source)]
        if not faults:
            raise
        raise _unfit(faults) from error
