"""The training and held-out batches of a pretraining run."""

import tensorflow as tf

from albert_tf.data import documents_dataset, pretraining_dataset
from albert_tf.data.manifest import MANIFEST_NAME, Manifest
from albert_tf.data.sharding import EVERYTHING, InputShard
from albert_tf.data.sources import find_shards
from albert_tf.files.atomic import sha256
from albert_tf.trainer.recipe import Recipe


def train_batches(
    recipe: Recipe, skip_corrupt: bool = False, first_batch: int = 0, shard: InputShard = EVERYTHING
) -> tf.data.Dataset:
    """An endless, deterministic dataset of training batches.

    Args:
        recipe: Recipe.
        skip_corrupt: whether to skip damaged shards with a warning.
        first_batch: index of the first batch, which equals the number of updates made before.
        shard: this host's rows of each batch.

    Raises:
        ValueError: the data do not match the recipe, or the examples are too long for the model.
    """
    training, data = recipe.training, recipe.data
    options = {"objective": data.objective, "skip_corrupt": skip_corrupt, "first_batch": first_batch, "shard": shard}
    if data.documents is not None:
        batches = documents_dataset(data.documents, training.batch_size, **options)
    else:
        batches = pretraining_dataset(data.source, training.batch_size, seed=training.seed, **options)
    _check_examples(recipe)
    return batches


def heldout_batches(recipe: Recipe) -> tf.data.Dataset | None:
    """All held-out examples once, in order; None if the recipe has none."""
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


def _check_examples(recipe: Recipe) -> None:
    length, limit = data_sizes(recipe)["L"], recipe.config.max_position_embeddings
    if length > limit:
        raise ValueError(
            f"Examples must not be longer than `max_position_embeddings`. Received: length={length}, "
            f"max_position_embeddings={limit}; prepare shorter ones or raise the limit."
        )
    if recipe.data.examples is None:  # examples made on the fly are not counted
        return
    rows = sum(shard.records for shard in find_shards(recipe.data.examples).listed if shard is not None)
    if recipe.training.batch_size > rows:
        raise ValueError(
            f"batch_size={recipe.training.batch_size:,} is larger than the {rows:,} examples in "
            f"{recipe.data.examples}; lower it, or prepare more text."
        )


def data_sizes(recipe: Recipe) -> dict[str, int]:
    """Axis lengths of the examples: L (sequence) and P (predictions)."""
    return find_shards(recipe.data.source, expected=None).sizes


def data_facts(recipe: Recipe) -> dict[str, str]:
    """Digests that identify the data wherever they are stored."""
    folders = {"source": recipe.data.source, "heldout": recipe.data.heldout}
    files = {name: folder / MANIFEST_NAME for name, folder in folders.items() if folder is not None}
    digests = {name: sha256(file) for name, file in files.items() if file.is_file()}
    return {"vocabulary": Manifest.load(recipe.data.source).recipe.vocab_hash, **digests}
