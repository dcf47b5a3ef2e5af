"""Batches of similar length in a random order that can be resumed at any step.

Letters: N examples, B batch, L sequence.
"""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from albert_tf.data.autotuning import PREFETCHED_BATCHES, without_autotuning
from albert_tf.data.finetuning.encoded import IGNORED_LABEL, Inputs, epoch_batches
from albert_tf.data.sharding import EVERYTHING, InputShard


class TrainingExamples(Protocol):
    """Tokenized examples with labels."""

    @property
    def lengths(self) -> np.ndarray:
        """Number of ids of each example: int32 [N]."""
        ...

    def training_batch(self, rows: np.ndarray, multiple: int | None = 8) -> tuple[Any, ...]:
        """Inputs, labels and perhaps weights of some examples, as `model.fit` takes them; see `EncodedTexts.batch`."""
        ...


def steps_per_epoch(num_examples: int, batch_size: int, drop_remainder: bool = False) -> int:
    """Number of batches that contain each example once.

    Args:
        num_examples: N.
        batch_size: B.
        drop_remainder: whether the examples that do not fill a batch are left out of an epoch, others in each.

    Raises:
        ValueError: there are fewer examples than a batch holds.

    Example:

    >>> steps_per_epoch(100, 32), steps_per_epoch(100, 32, drop_remainder=True)
    (4, 3)
    """
    if not drop_remainder:
        return -(-num_examples // batch_size)
    if num_examples < batch_size:
        raise ValueError(
            f"`batch_size` must not exceed the number of examples with several devices or gradient accumulation. "
            f"Received: batch_size={batch_size}, {num_examples} examples."
        )
    return num_examples // batch_size


def training_dataset(
    examples: TrainingExamples,
    batch_size: int,
    seed: int,
    first_step: int = 0,
    drop_remainder: bool = False,
    shard: InputShard = EVERYTHING,
    multiple: int | None = 8,
    full_rows: bool = False,
) -> tf.data.Dataset:
    """An endless, deterministic dataset of the batches of all epochs.

    Args:
        examples: TrainingExamples.
        batch_size: B.
        seed: of the order.
        first_step: number of batches to skip, without making them.
        drop_remainder: as in `steps_per_epoch`.
        shard: this host's rows of each batch, in batches of its replicas. With several, `drop_remainder` must be True.
        multiple: see `EncodedTexts.batch`.
        full_rows: whether the last batch of an epoch gets B rows, of which those that were added do not count in the
            loss. All batches then have weights.

    Returns:
        Dataset of (inputs, labels) or (inputs, labels, weights), padded to the longest example of the batch.

    Raises:
        ValueError: B is not a multiple of the number of replicas.
    """
    shard.replica_batch_size(batch_size)

    def batch_of(rows: np.ndarray) -> tuple[Any, ...]:
        if not full_rows:
            return examples.training_batch(rows, multiple)
        copies = batch_size - len(rows)
        batch = examples.training_batch(np.pad(rows, (0, copies), mode="edge"), multiple)
        return _without_copies(*batch, copies=copies)

    def batches() -> Iterator[tuple[Any, ...]]:
        epoch, skipped = divmod(first_step, steps_per_epoch(len(examples.lengths), batch_size, drop_remainder))
        while True:
            for rows in epoch_batches(examples.lengths, batch_size, seed, epoch, drop_remainder)[skipped:]:
                batch, size = batch_of(rows), batch_size if full_rows else len(rows)
                for replica in shard.replicas:
                    part = slice(*(size * end // shard.num_replicas for end in (replica, replica + 1)))
                    yield tf.nest.map_structure(lambda array, part=part: array[part], batch)
            epoch, skipped = epoch + 1, 0

    signature = tf.nest.map_structure(
        lambda array: tf.TensorSpec([None] * array.ndim, array.dtype), batch_of(np.arange(1))
    )
    dataset = tf.data.Dataset.from_generator(batches, output_signature=signature).prefetch(PREFETCHED_BATCHES)
    return without_autotuning(dataset)


def _without_copies(inputs: Inputs, labels: Any, weights: Any = 1.0, *, copies: int) -> tuple[Inputs, Any, np.ndarray]:
    """A batch whose last rows do not count in the loss, and where labels are classes not in metrics either."""
    rows = len(inputs["input_ids"])
    is_copy = np.arange(rows) >= rows - copies
    weights = (~is_copy * weights).astype(np.float32)
    if not isinstance(labels, np.ndarray) or labels.dtype.kind != "i":
        return inputs, labels, weights * np.float32(rows / (rows - copies))  # means are divided by the number of rows
    return inputs, np.where(np.expand_dims(is_copy, [*range(1, labels.ndim)]), IGNORED_LABEL, labels), weights
