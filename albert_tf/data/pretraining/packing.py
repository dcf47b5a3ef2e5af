"""Packs several short examples into one row, to reduce padding.

Each example keeps its [CLS], positions from 0, masked tokens and sentence label; `example_ids` restricts attention to
within an example.

Letters: X examples, R rows, L sequence, P predictions, S maximum number of examples per row.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from albert_tf.data.features import PACKED_FEATURES
from albert_tf.data.options import ExampleOptions
from albert_tf.data.pretraining.examples import Ints, PretrainingExamples
from albert_tf.data.prng import Keys


@dataclass(frozen=True)
class PackedExamples(PretrainingExamples):
    """A batch of rows; the fields are those of `PACKED_FEATURES`.

    Args:
        input_ids, attention_mask, token_type_ids, token_boundary: as in `PretrainingExamples`, int32 [R, L].
        masked_lm_positions, masked_lm_ids, masked_lm_weights: as in `PretrainingExamples`, [R, P].
        sentence_order_labels: int32 [R, S].
        sentence_order_weights: float32 [R, S], 1 for an example, 0 for padding.
        example_ids: int32 [R, L], number of a token's example in the row, from 1; 0 on padding.
        position_ids: int32 [R, L], position of a token in its example; 0 on padding.
        cls_positions: int32 [R, S], position in the row of each example's [CLS], padded with 0.
    """

    sentence_order_weights: npt.NDArray[np.float32]
    example_ids: Ints
    position_ids: Ints
    cls_positions: Ints


@dataclass(frozen=True)
class Assignment:
    """The row of each example, its index there, and the offsets of its tokens and predictions, all int64 [X]."""

    row: npt.NDArray[np.int64]
    index: npt.NDArray[np.int64]
    token: npt.NDArray[np.int64]
    prediction: npt.NDArray[np.int64]


def assign_rows(lengths: npt.NDArray, predictions: npt.NDArray, options: ExampleOptions) -> Assignment:
    """Assigns examples to rows by best fit: the longest first, each into the fullest row with enough space.

    Args:
        lengths: int [X], tokens of each example.
        predictions: int [X], masked tokens of each example.
        options: the limits of a row.

    Example:

    >>> options = ExampleOptions(max_seq_length=32, pack=True)
    >>> assign_rows(np.array([9, 30, 22, 8]), np.array([1, 1, 1, 1]), options).row.tolist()
    [1, 0, 1, 2]
    """
    length = options.max_seq_length
    rows_by_space: list[list[int]] = [[] for _ in range(length + 1)]
    predictions_left: list[int] = []
    counts: list[int] = []
    assigned = np.zeros((4, len(lengths)), np.int64)
    sizes = list(zip(lengths.tolist(), predictions.tolist(), strict=True))
    for example in np.argsort(-lengths, kind="stable").tolist():
        tokens, masked = sizes[example]
        for space in range(tokens, length + 1):
            rows = rows_by_space[space]
            if rows and predictions_left[rows[-1]] >= masked and counts[rows[-1]] < options.examples_per_row:
                row = rows.pop()
                break
        else:
            row, space = len(counts), length
            predictions_left.append(options.predictions)
            counts.append(0)
        assigned[:, example] = row, counts[row], length - space, options.predictions - predictions_left[row]
        predictions_left[row] -= masked
        counts[row] += 1
        rows_by_space[space - tokens].append(row)
    return Assignment(*assigned)


def pack_examples(
    examples: PretrainingExamples, keys: Keys, options: ExampleOptions, pad_token_id: int
) -> PackedExamples:
    """Packs examples into rows, in an order that depends on the examples' random keys, uint64 [X]."""
    lengths, predictions = examples.attention_mask.sum(axis=1), examples.masked_lm_weights.sum(axis=1).astype(int)
    assigned = assign_rows(lengths, predictions, options)
    first = np.flatnonzero(assigned.index == 0)
    order = np.empty(len(first), np.int64)
    order[assigned.row[first][np.argsort(keys[first])]] = np.arange(len(first))
    row = order[assigned.row]
    arrays = {
        feature.name: np.zeros((len(first), *feature.row_shape(options.sizes)), feature.dtype)
        for feature in PACKED_FEATURES
    }
    arrays["input_ids"][:] = pad_token_id
    example, token = np.nonzero(examples.attention_mask)
    target = row[example], assigned.token[example] + token
    for name in ("input_ids", "attention_mask", "token_type_ids", "token_boundary"):
        arrays[name][target] = getattr(examples, name)[example, token]
    arrays["example_ids"][target], arrays["position_ids"][target] = assigned.index[example] + 1, token
    example, slot = np.nonzero(examples.masked_lm_weights)
    target = row[example], assigned.prediction[example] + slot
    arrays["masked_lm_positions"][target] = assigned.token[example] + examples.masked_lm_positions[example, slot]
    arrays["masked_lm_ids"][target], arrays["masked_lm_weights"][target] = examples.masked_lm_ids[example, slot], 1.0
    target = row, assigned.index
    arrays["cls_positions"][target], arrays["sentence_order_weights"][target] = assigned.token, 1.0
    arrays["sentence_order_labels"][target] = examples.sentence_order_labels
    return PackedExamples(**arrays)
