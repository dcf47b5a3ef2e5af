"""What the tokenizer's graph does with ragged rows. B rows, T values of a row."""

# The checker's stubs of TensorFlow know little of ragged tensors.
# pyright: reportAttributeAccessIssue=false, reportReturnType=false, reportArgumentType=false

import tensorflow as tf


def sums(values: tf.Tensor) -> tf.Tensor:
    """Returns the sum of the values in front of each, and of all: [T] in, [T + 1] out."""
    return tf.pad(tf.cumsum(values), [[1, 0]])


def positions_in_rows(lengths: tf.RaggedTensor) -> tf.Tensor:
    """Returns how much of its row stands in front of each part: [all parts], for the parts' lengths [B, (parts)]."""
    before = sums(lengths.values)
    return before[:-1] - tf.gather(tf.gather(before, lengths.row_starts()), lengths.value_rowids())


def select(rows: tf.RaggedTensor, kept: tf.Tensor) -> tf.RaggedTensor:
    """Leaves values of [B, (T), ...] out: those for which `kept`, one bool for each value of all rows, is false."""
    splits = tf.gather(sums(tf.cast(kept, tf.int32)), rows.row_splits)
    return tf.RaggedTensor.from_row_splits(tf.boolean_mask(rows.values, kept), splits, validate=False)


def take(rows: tf.RaggedTensor, samples: tf.Tensor, starts: tf.Tensor, lengths: tf.Tensor) -> tf.RaggedTensor:
    """Cuts R parts out of [B, (T), ...]: `lengths` values of rows `samples`, from `starts` on; all int32 [R]."""
    starts += tf.gather(rows.row_starts(), samples)
    positions = tf.ragged.range(starts, starts + lengths, row_splits_dtype=tf.int32)
    return positions.with_values(tf.gather(rows.values, positions.values))


def rows_of(splits: tf.Tensor) -> tf.Tensor:
    """Returns which row each value is in, given where rows begin and end: int32, one for each value of all rows."""
    values = tf.range(splits[-1])
    return tf.raw_ops.UpperBound(sorted_inputs=splits[tf.newaxis, 1:], values=values[tf.newaxis])[0]


def follows_in_row(rows: tf.RaggedTensor, values: tf.Tensor) -> tf.Tensor:
    """Tells of each value whether the one before it in the same row is true: bool, flat as `values`."""
    row_ids = rows.value_rowids()
    same_row = tf.equal(row_ids[1:], row_ids[:-1])
    return tf.concat([tf.zeros_like(values[:1]), values[:-1] & same_row], axis=0)


def precedes_in_row(rows: tf.RaggedTensor, values: tf.Tensor) -> tf.Tensor:
    """Tells of each value whether the one after it in the same row is true: bool, flat as `values`."""
    row_ids = rows.value_rowids()
    same_row = tf.equal(row_ids[1:], row_ids[:-1])
    return tf.concat([values[1:] & same_row, tf.zeros_like(values[:1])], axis=0)
