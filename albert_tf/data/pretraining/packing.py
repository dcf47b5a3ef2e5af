"""Several short examples in one row, so that less of it is padding.

Each keeps its own [CLS], positions that begin at 0, masked tokens and sentence label; attention must stay within an
example, which `example_ids` tells the model.

Letters: X examples, R rows, L sequence, P predictions, S examples of a row at most.
"""

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from albert_tf.data.features import PACKED_FEATURES
from albert_tf.data.options import ExampleOptions
from albert_tf.data.pretraining.examples import Ints, PretrainingExamples
from albert_tf.data.prng import Keys


@dataclass(frozen=True)
class PackedExamples:
    """Rows as the model takes them; the fields are those of `PACKED_FEATURES`.

    Args:
        input_ids, attention_mask, token_type_ids, token_boundary: as in `PretrainingExamples`, int32 [R, L].
        example_ids: int32 [R, L], which example of its row a token belongs to, from 1; 0 on padding.
        position_ids: int32 [R, L], place of a token in its example; 0 on padding.
        cls_positions: int32 [R, S], where in the row each example begins, then 0.
        masked_lm_positions, masked_lm_ids, masked_lm_weights: as in `PretrainingExamples`, [R, P].
        sentence_order_labels: int32 [R, S].
        sentence_order_weights: float32 [R, S], 1 for an example, then 0.
    """

    input_ids: Ints
    attention_mask: Ints
    token_type_ids: Ints
    token_boundary: Ints
    example_ids: Ints
    position_ids: Ints
    cls_positions: Ints
    masked_lm_positions: Ints
    masked_lm_ids: Ints
    masked_lm_weights: npt.NDArray[np.float32]
    sentence_order_labels: Ints
    sentence_order_weights: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.input_ids)


@dataclass(frozen=True)
class Places:
    """Where each example goes, all int64 [X]: its row, which one it is there, its first token, its first prediction."""

    row: npt.NDArray[np.int64]
    number: npt.NDArray[np.int64]
    token: npt.NDArray[np.int64]
    prediction: npt.NDArray[np.int64]


def find_places(lengths: npt.NDArray, predictions: npt.NDArray, options: ExampleOptions) -> Places:
    """Puts examples into rows: the longest first, each into the fullest row that has room for it.

    Args:
        lengths: int [X], tokens of each example.
        predictions: int [X], masked tokens of each.
        options: how much goes into a row.

    Returns:
        Places.

    Example:

    >>> options = ExampleOptions(max_seq_length=32, pack=True)
    >>> find_places(np.array([9, 30, 22, 8]), np.array([1, 1, 1, 1]), options).row.tolist()
    [1, 0, 1, 2]
    """
    length = options.max_seq_length
    rows_by_room: list[list[int]] = [[] for _ in range(length + 1)]
    predictions_left: list[int] = []
    numbers: list[int] = []
    places = np.zeros((4, len(lengths)), np.int64)
    sizes = list(zip(lengths.tolist(), predictions.tolist(), strict=True))
    for example in np.argsort(-lengths, kind="stable").tolist():
        tokens, masked = sizes[example]
        for room in range(tokens, length + 1):
            rows = rows_by_room[room]
            if rows and predictions_left[rows[-1]] >= masked and numbers[rows[-1]] < options.examples_per_row:
                row = rows.pop()
                break
        else:
            row, room = len(numbers), length
            predictions_left.append(options.predictions)
            numbers.append(0)
        places[:, example] = row, numbers[row], length - room, options.predictions - predictions_left[row]
        predictions_left[row] -= masked
        numbers[row] += 1
        rows_by_room[room - tokens].append(row)
    return Places(*places)


def pack_examples(
    examples: PretrainingExamples, keys: Keys, options: ExampleOptions, pad_token_id: int
) -> PackedExamples:
    """Packs examples into as few rows as `find_places` does, in an order that the examples' keys decide.

    Args:
        examples: X of them.
        keys: uint64 [X], one key an example.
        options: see `ExampleOptions`.
        pad_token_id: what fills rows up.
    """
    places = find_places(
        examples.attention_mask.sum(axis=1), examples.masked_lm_weights.sum(axis=1).astype(int), options
    )
    first = np.flatnonzero(places.number == 0)
    rank = np.empty(len(first), np.int64)
    rank[places.row[first][np.argsort(keys[first])]] = np.arange(len(first))
    row = rank[places.row]
    arrays = {
        feature.name: np.zeros((len(first), *feature.row_shape(options.sizes)), feature.dtype)
        for feature in PACKED_FEATURES
    }
    arrays["input_ids"][:] = pad_token_id
    example, token = np.nonzero(examples.attention_mask)
    place = row[example], places.token[example] + token
    for name in ("input_ids", "attention_mask", "token_type_ids", "token_boundary"):
        arrays[name][place] = getattr(examples, name)[example, token]
    arrays["example_ids"][place], arrays["position_ids"][place] = places.number[example] + 1, token
    example, slot = np.nonzero(examples.masked_lm_weights)
    place = row[example], places.prediction[example] + slot
    arrays["masked_lm_positions"][place] = places.token[example] + examples.masked_lm_positions[example, slot]
    arrays["masked_lm_ids"][place], arrays["masked_lm_weights"][place] = examples.masked_lm_ids[example, slot], 1.0
    place = row, places.number
    arrays["cls_positions"][place], arrays["sentence_order_weights"][place] = places.token, 1.0
    arrays["sentence_order_labels"][place] = examples.sentence_order_labels
    return PackedExamples(**{field.name: arrays[field.name] for field in fields(PackedExamples)})
