"""Batches of similar length in a random order that can be resumed at any step.

Letters: N examples, B batch, L sequence.
"""

from collections.abc import Iterator
from typing import Any, Literal, Protocol

import numpy as np
import tensorflow as tf

from albert_tf.data.autotuning import PREFETCHED_BATCHES, without_autotuning
from albert_tf.data.finetuning.encoded import Inputs, epoch_batches
from albert_tf.data.sharding import EVERYTHING, InputShard

LastBatch = Literal["short", "filled", "dropped"]
# Of filled batches, the sample weights are a dict: whether a row counts, and its weight if rows have weights.
COUNTED, WEIGHTS = "counted", "weights"


class TrainingExamples(Protocol):
    """Tokenized examples with labels."""

    @property
    def lengths(self) -> np.ndarray:
        """Number of ids of each example: int32 [N]."""
        ...

    def training_batch(self, rows: np.ndarray, multiple: int | None = 8) -> tuple[Any, ...]:
        """Inputs, labels and perhaps weights of some examples, as `model.fit` takes them; see `EncodedTexts.batch`."""
        ...


def steps_per_epoch(num_examples: int, batch_size: int, last_batch: LastBatch = "short") -> int:
    """Number of batches of an epoch.

    Args:
        num_examples: N.
        batch_size: B.
        last_batch: of the examples that do not fill a batch: it is `"short"`; is `"filled"` with copies, which do not
            count; or is `"dropped"`, with others in each epoch.

    Raises:
        ValueError: there are fewer examples than a batch holds, which would be dropped.

    Example:

    >>> steps_per_epoch(100, 32), steps_per_epoch(100, 32, "dropped")
    (4, 3)
    """
    if last_batch != "dropped":
        return -(-num_examples // batch_size)
    if num_examples < batch_size:
        raise ValueError(
            "`batch_size` must not exceed the number of examples where a teacher or objective='ranking' meets several "
            f"devices or gradient accumulation. Received: batch_size={batch_size}, {num_examples} examples; lower it."
        )
    return num_examples // batch_size


def training_dataset(
    examples: TrainingExamples,
    batch_size: int,
    seed: int,
    first_step: int = 0,
    last_batch: LastBatch = "short",
    shard: InputShard = EVERYTHING,
    multiple: int | None = 8,
) -> tf.data.Dataset:
    """An endless, deterministic dataset of the batches of all epochs.

    Args:
        examples: TrainingExamples.
        batch_size: B.
        seed: of the order.
        first_step: number of batches to skip, without making them.
        last_batch: as in `steps_per_epoch`. With `"filled"`, the weights say which rows count.
        shard: this host's rows of each batch, in batches of its replicas. With several, no batch must be short.
        multiple: see `EncodedTexts.batch`.

    Returns:
        Dataset of (inputs, labels) or (inputs, labels, weights), padded to the longest example of the batch.

    Raises:
        ValueError: B is not a multiple of the number of replicas.
    """
    shard.replica_batch_size(batch_size)

    def batch_of(rows: np.ndarray) -> tuple[Any, ...]:
        if last_batch != "filled":
            return examples.training_batch(rows, multiple)
        copies = batch_size - len(rows)
        batch = examples.training_batch(np.pad(rows, (0, copies), mode="edge"), multiple)
        return _with_counts(*batch, copies=copies)

    def batches() -> Iterator[tuple[Any, ...]]:
        epoch, skipped = divmod(first_step, steps_per_epoch(len(examples.lengths), batch_size, last_batch))
        while True:
            for rows in epoch_batches(examples.lengths, batch_size, seed, epoch, last_batch == "dropped")[skipped:]:
                batch, size = batch_of(rows), batch_size if last_batch == "filled" else len(rows)
                for replica in shard.replicas:
                    part = slice(*(size * end // shard.num_replicas for end in (replica, replica + 1)))
                    yield tf.nest.map_structure(lambda array, part=part: array[part], batch)
            epoch, skipped = epoch + 1, 0

    signature = tf.nest.map_structure(
        lambda array: tf.TensorSpec([None] * array.ndim, array.dtype), batch_of(np.arange(1))
    )
    dataset = tf.data.Dataset.from_generator(batches, output_signature=signature).prefetch(PREFETCHED_BATCHES)
    return without_autotuning(dataset)


def _with_counts(
    inputs: Inputs, labels: Any, weights: Any = None, *, copies: int
) -> tuple[Inputs, Any, dict[str, Any]]:
    """A batch whose last rows are copies, which count neither in the loss nor in metrics."""
    rows = len(inputs["input_ids"])
    counted = (np.arange(rows) < rows - copies).astype(np.float32)
    return inputs, labels, {COUNTED: counted} if weights is None else {COUNTED: counted, WEIGHTS: weights}
