"""From rows of ids to the padded arrays that the model takes. B batch, L sequence."""

from dataclasses import dataclass

import numpy as np

PADDINGS = ("longest", "max_length")


@dataclass(frozen=True)
class BatchLayout:
    """How rows of ids become arrays.

    Attributes:
        max_length: the most ids a row may have, special ones included.
        padding: "longest" pads to the longest row of the batch, "max_length" to `max_length`.
        truncation: shorten rows that do not fit; otherwise they are an error.
    """

    max_length: int = 512
    padding: str = "longest"
    truncation: bool = True

    def __post_init__(self):
        if self.padding not in PADDINGS:
            raise ValueError(f"`padding` must be one of {', '.join(PADDINGS)}. Received: padding={self.padding!r}.")
        if isinstance(self.max_length, bool) or not isinstance(self.max_length, int) or self.max_length < 3:
            raise ValueError(
                "`max_length` must be a whole number of at least 3, room for [CLS], [SEP] and [SEP]. "
                f"Received: max_length={self.max_length!r}."
            )


@dataclass(frozen=True)
class SpecialIds:
    """The ids that are put around and behind a text's own ids."""

    pad: int
    cls: int
    sep: int


def pair_lengths(first: np.ndarray, second: np.ndarray, room: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns what is left of two texts' lengths when the longer one gives way, id by id, until both fit.

    Where both are equally long the second gives way, as in the reference.

    Args:
        first, second: int [B], numbers of ids.
        room: how many ids fit in all.

    Returns:
        Two int arrays [B].

    Example:

    >>> pair_lengths(np.array([10, 3, 4]), np.array([2, 3, 9]), 5)
    (array([3, 3, 3]), array([2, 2, 2]))
    """
    left = np.minimum(first, np.maximum(room - second, (room + 1) // 2))
    right = np.minimum(second, np.maximum(room - first, room // 2))
    return left, right


def build_inputs(
    rows: list[np.ndarray], pairs: list[np.ndarray] | None, special: SpecialIds, layout: BatchLayout
) -> dict[str, np.ndarray]:
    """Puts [CLS] and [SEP] around each row of ids (and its pair), cuts it to length and pads the batch.

    Args:
        rows: one int32 array of ids, or of rows of offsets, per example.
        pairs: the second text of each example, or None.
        special: the ids of [PAD], [CLS] and [SEP].
        layout: length, padding and truncation.

    Returns:
        A dict of int32 [B, L]: `input_ids`, `attention_mask` (1 on every id that is no padding), `token_type_ids` (1 on
        the second text and its [SEP]).

    Raises:
        ValueError: if a row does not fit and may not be cut.
    """
    first, second = kept_lengths(rows, pairs, layout)
    totals = first + second + (2 if pairs is None else 3)  # [B]
    length = layout.max_length if layout.padding == "max_length" else int(totals.max(initial=0))
    positions = np.arange(length)  # [L]
    mask = positions < totals[:, None]  # [B, L]
    types = mask & (positions >= first[:, None] + 2) if pairs is not None else np.zeros_like(mask)
    ids = np.where(mask, np.int32(special.sep), np.int32(special.pad))  # [B, L]
    ids[:, :1] = special.cls
    place_rows(ids, rows, pairs, first, second)
    return {"input_ids": ids, "attention_mask": mask.astype(np.int32), "token_type_ids": types.astype(np.int32)}


def kept_lengths(
    rows: list[np.ndarray], pairs: list[np.ndarray] | None, layout: BatchLayout
) -> tuple[np.ndarray, np.ndarray]:
    """Returns how many ids of each row and of its pair stay: two int arrays [B], the second all zero without pairs."""
    first = np.array([len(row) for row in rows], np.int64)
    second = np.array([len(row) for row in pairs], np.int64) if pairs is not None else np.zeros_like(first)
    room = layout.max_length - (2 if pairs is None else 3)
    if not layout.truncation and len(first) and (first + second).max() > room:
        row = int((first + second).argmax())
        raise ValueError(
            f"Every row must fit into `max_length` where `truncation=False`. Received: row {row} with "
            f"{layout.max_length - room + int(first[row] + second[row])} ids for max_length={layout.max_length}; "
            "raise max_length or let rows be cut with truncation=True."
        )
    return (np.minimum(first, room), second) if pairs is None else pair_lengths(first, second, room)


def place_rows(
    target: np.ndarray,
    rows: list[np.ndarray],
    pairs: list[np.ndarray] | None,
    first: np.ndarray,
    second: np.ndarray,
) -> None:
    """Writes each row behind its [CLS], and its pair behind the [SEP] after that, into `target` [B, L, ...]."""
    for index, row in enumerate(rows):
        end = 1 + first[index]
        target[index, 1:end] = row[: first[index]]
        if pairs is not None:
            target[index, end + 1 : end + 1 + second[index]] = pairs[index][: second[index]]
