"""Operations on ragged tensors for tokenizers in graphs. B rows, T values of a row."""

# The checker's stubs of TensorFlow know little of ragged tensors.
# pyright: reportAttributeAccessIssue=false, reportReturnType=false, reportArgumentType=false

import tensorflow as tf


def sums(values: tf.Tensor) -> tf.Tensor:
    """Exclusive cumulative sums, and the total: [T] to [T + 1]."""
    return tf.pad(tf.cumsum(values), [[1, 0]])


def positions_in_rows(lengths: tf.RaggedTensor) -> tf.Tensor:
    """The position of each part in its row: from lengths [B, (parts)] to [all parts]."""
    before = sums(lengths.values)
    return before[:-1] - tf.gather(tf.gather(before, lengths.row_starts()), lengths.value_rowids())


def select(rows: tf.RaggedTensor, mask: tf.Tensor) -> tf.RaggedTensor:
    """Keeps the values of [B, (T), ...] for which the flat bool mask `kept` is true."""
    splits = tf.gather(sums(tf.cast(mask, tf.int32)), rows.row_splits)
    return tf.RaggedTensor.from_row_splits(tf.boolean_mask(rows.values, mask), splits, validate=False)


def take(rows: tf.RaggedTensor, samples: tf.Tensor, starts: tf.Tensor, lengths: tf.Tensor) -> tf.RaggedTensor:
    """Slices rows of [B, (T), ...]: `lengths` values of rows `samples`, from `starts` on; all int32 [R]."""
    starts += tf.gather(rows.row_starts(), samples)
    positions = tf.ragged.range(starts, starts + lengths, row_splits_dtype=tf.int32)
    return positions.with_values(tf.gather(rows.values, positions.values))


def follows_in_row(rows: tf.RaggedTensor, values: tf.Tensor) -> tf.Tensor:
    """Whether the previous value in the same row is true: bool, flat like `values`."""
    row_ids = rows.value_rowids()
    same_row = tf.equal(row_ids[1:], row_ids[:-1])
    return tf.concat([tf.zeros_like(values[:1]), values[:-1] & same_row], axis=0)
