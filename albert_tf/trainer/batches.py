"""The batches of a pretraining run: examples read from disk, or made of documents on the fly, and held-out ones."""

import hashlib

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.data import documents_dataset, pretraining_dataset
from albert_tf.data.manifest import MANIFEST_NAME, Manifest
from albert_tf.data.sharding import EVERYTHING, InputShard
from albert_tf.data.sources import find_shards
from albert_tf.trainer.recipe import Recipe


def train_batches(
    recipe: Recipe,
    skip_corrupt: bool = False,
    first_batch: int = 0,
    shard: InputShard = EVERYTHING,
) -> tf.data.Dataset:
    """Batches to train on, without end, the same for the same recipe.

    Args:
        recipe: Recipe.
        skip_corrupt: leave damaged shards out with a warning.
        first_batch: the batch to begin with, that is, the updates made before.
        shard: which rows of each batch to give, where several hosts share it.

    Raises:
        ValueError: the data are not those that the recipe asks for, or their examples are too long for the model.
    """
    training, data = recipe.training, recipe.data
    options = {"objective": data.objective, "skip_corrupt": skip_corrupt, "first_batch": first_batch, "shard": shard}
    if data.documents is not None:
        batches = documents_dataset(data.documents, training.batch_size, **options)
    else:
        batches = pretraining_dataset(data.source, training.batch_size, seed=training.seed, **options)
    check_length(data_sizes(recipe)["L"], recipe.config)
    check_batch_size(recipe)
    return batches


def check_length(length: int, config: AlbertConfig) -> None:
    """Raises ValueError if examples are longer than the model takes."""
    if length > config.max_position_embeddings:
        raise ValueError(
            f"Examples must not be longer than `max_position_embeddings`. Received: length={length}, "
            f"max_position_embeddings={config.max_position_embeddings}; prepare shorter ones or raise the limit."
        )


def heldout_batches(recipe: Recipe) -> tf.data.Dataset | None:
    """All held-out examples once, in their order; None where the recipe names none."""
    if recipe.data.heldout is None:
        return None
    return pretraining_dataset(
        recipe.data.heldout,
        recipe.training.batch_size,
        shuffle=False,
        repeat=False,
        drop_remainder=False,
        max_seq_length=data_sizes(recipe)["L"],
        vocab_hash=Manifest.load(recipe.data.source).recipe.vocab_hash,
        objective=recipe.data.objective,
    )


def check_batch_size(recipe: Recipe) -> None:
    """Raises ValueError if a batch is larger than the examples in a folder; those made on the fly are not counted."""
    if recipe.data.examples is None:
        return
    rows = sum(shard.records for shard in find_shards(recipe.data.examples).listed if shard is not None)
    if recipe.training.batch_size > rows:
        raise ValueError(
            f"batch_size={recipe.training.batch_size:,} is larger than the {rows:,} examples in "
            f"{recipe.data.examples}; lower it, or prepare more text."
        )


def data_sizes(recipe: Recipe) -> dict[str, int]:
    """Lengths of the axes of the examples: L and P."""
    return find_shards(recipe.data.source, expected=None).sizes


def data_facts(recipe: Recipe) -> dict[str, str]:
    """Identifies the data, wherever they are."""
    folders = {"source": recipe.data.source, "heldout": recipe.data.heldout}
    files = {name: folder / MANIFEST_NAME for name, folder in folders.items() if folder is not None}
    digests = {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in files.items() if file.is_file()}
    return {"vocabulary": Manifest.load(recipe.data.source).recipe.vocab_hash, **digests}
