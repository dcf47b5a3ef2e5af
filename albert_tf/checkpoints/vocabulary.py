"""Rows for tokens that were added to a vocabulary: V, the number of pieces, becomes larger."""

import dataclasses

import numpy as np

from albert_tf.checkpoints.checkpoint import Checkpoint
from albert_tf.config import AlbertConfig

# The arrays with a row or a value for each piece.
PATHS = ("encoder/embeddings/word_embeddings", "masked_lm/output_bias")


def with_vocabulary(checkpoint: Checkpoint, config: AlbertConfig) -> Checkpoint:
    """A checkpoint with as many word embeddings and output biases as `config` has pieces; see `with_rows`.

    Raises:
        ValueError: `config` has fewer pieces than the checkpoint.
    """
    old, new = checkpoint.config.vocab_size, config.vocab_size
    if new == old:
        return checkpoint
    arrays = checkpoint.arrays
    grown = with_more({path: arrays[path] for path in PATHS if path in arrays and len(arrays[path]) == old}, old, new)
    return dataclasses.replace(checkpoint, config=checkpoint.config.replace(vocab_size=new), arrays={**arrays, **grown})


def with_more(arrays: dict[str, np.ndarray], old: int, new: int) -> dict[str, np.ndarray]:
    """Arrays with a row for each piece, for more pieces; raises ValueError if these are fewer."""
    if isinstance(new, bool) or not isinstance(new, int) or new < old:
        raise ValueError(
            f"The new vocabulary size must be an integer of at least {old}, the model's own `vocab_size`, or ids would "
            f"lose their rows. Received: {new!r}; pass len(tokenizer), of the model's own tokenizer with added tokens."
        )
    return {path: with_rows(array, new) for path, array in arrays.items()}


def with_rows(table: np.ndarray, count: int) -> np.ndarray:
    """Appends rows to [V, ...], drawn from normal distributions with mean and deviation of each of its columns.

    So tokens that were added begin as average ones (Hewitt 2021, "Initializing new word embeddings for pretrained
    language models"), with logits that are neither large nor equal.
    """
    mean, deviation = table.mean(axis=0, dtype=np.float64), table.std(axis=0, dtype=np.float64)
    drawn = np.random.default_rng(0).normal(mean, deviation, (count - len(table), *table.shape[1:]))
    return np.concatenate([table, drawn.astype(table.dtype)])
