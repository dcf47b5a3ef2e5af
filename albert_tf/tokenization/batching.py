"""Converts rows of ids to padded arrays. B texts, R rows of the batch, L sequence.

R is B, or more if long texts are split into several windows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from albert_tf.tokenization.interface import SpecialPieceIds

PADDINGS = ("longest", "max_length")
# Of a text that is truncated so many characters are tokenized for each id that is kept, and at least so many: far more
# than ids have in any language, and few enough that megabytes do not block a server.
_CHARACTERS_OF_AN_ID, _FEWEST_CHARACTERS = 128, 1 << 16


@dataclass(frozen=True)
class BatchLayout:
    """Length, padding and windows of a batch; see the call arguments of `AlbertTokenizer`.

    Raises:
        ValueError: a value is out of range.
    """

    max_length: int = 512
    padding: str = "longest"
    truncation: bool = True
    pad_to_multiple_of: int | None = None
    doc_stride: int | None = None

    @property
    def max_characters(self) -> int | None:
        """The number of characters of a text that are tokenized. None: all, because nothing is truncated."""
        if self.doc_stride is not None or not self.truncation:
            return None
        return max(_FEWEST_CHARACTERS, _CHARACTERS_OF_AN_ID * self.max_length)

    def used_parts(self, texts: Sequence[Any]) -> list[Any]:
        """The beginnings of texts that are tokenized; bytes stay whole."""
        return [text[: self.max_characters] if isinstance(text, str) else text for text in texts]

    def __post_init__(self):
        if self.padding not in PADDINGS:
            hint = "; write padding='longest'" if self.padding is True else ""
            raise ValueError(
                f"`padding` must be one of {', '.join(PADDINGS)}. Received: padding={self.padding!r}{hint}."
            )
        if not _is_integer(self.max_length, 3):
            raise ValueError(
                "`max_length` must be an integer of at least 3, for [CLS], [SEP] and [SEP]. "
                f"Received: max_length={self.max_length!r}."
            )
        multiple, stride = self.pad_to_multiple_of, self.doc_stride
        if multiple is not None and (not _is_integer(multiple, 1) or self.max_length % multiple):
            raise ValueError(
                "`pad_to_multiple_of` must be an integer that divides `max_length`. "
                f"Received: pad_to_multiple_of={multiple!r} for max_length={self.max_length}."
            )
        if stride is not None and (not _is_integer(stride, 1) or stride > self.max_length - 2):
            raise ValueError(
                "`doc_stride` must be an integer from 1 to `max_length` - 2, or text between windows would be lost. "
                f"Received: doc_stride={stride!r} for max_length={self.max_length}."
            )
        for name, value in vars(self).items():
            if isinstance(value, np.integer):  # not JSON, as which layouts are saved
                object.__setattr__(self, name, int(value))


def as_batch(texts: str | bytes | Iterable[str | bytes]) -> list[Any]:
    """The texts of a batch, a single text being a batch of one; raises ValueError for what is not texts."""
    if type(texts).__module__.startswith(("tensorflow.", "keras.")):
        raise ValueError(
            f"`texts` must be strings. Received: a {type(texts).__name__}; for tensors, in `tf.data` or in a model, "
            "use `tokenizer.as_layer()`."
        )
    if isinstance(texts, Mapping) or hasattr(texts, "columns"):  # their names would be tokenized
        raise ValueError(
            f"`texts` must be a list of strings. Received: a {type(texts).__name__}; pass one of its columns."
        )
    if not isinstance(texts, Iterable):
        raise ValueError(f"`texts` must be a string or a list of strings. Received: {texts!r}.")
    batch: list[Any] = [texts] if isinstance(texts, str | bytes) else list(texts)
    for index, text in enumerate(batch):
        if not isinstance(text, str | bytes):
            raise ValueError(
                f"Every text must be a string. Received: {text!r} ({type(text).__name__}) at position {index}."
            )
    return batch


@dataclass(frozen=True)
class TokenRows:
    """The ids of texts, without special ids, and their offsets."""

    ids: Sequence[np.ndarray]  # int32 [T] for each text
    offsets: Sequence[np.ndarray] | None = None  # int32 [T, 2] for each text


@dataclass(frozen=True)
class Windows:
    """The contents of the rows of a batch. All are int arrays [R]."""

    samples: np.ndarray  # index of the text and of its pair
    first: np.ndarray  # number of ids of the text
    second: np.ndarray  # number of ids of the pair, 0 without pairs
    starts: np.ndarray  # index of the first id of the text, or of the pair if there are pairs


def pair_lengths(first: np.ndarray, second: np.ndarray, capacity: int) -> tuple[np.ndarray, np.ndarray]:
    """Truncates pairs of lengths, int [B] each, to `capacity` in total, the longer one first.

    If both are equally long, the second one is shortened, as in the reference.

    >>> pair_lengths(np.array([10, 3, 4]), np.array([2, 3, 9]), 5)
    (array([3, 3, 3]), array([2, 2, 2]))
    """
    left = np.minimum(first, np.maximum(capacity - second, (capacity + 1) // 2))
    right = np.minimum(second, np.maximum(capacity - first, capacity // 2))
    return left, right


def build_inputs(
    texts: TokenRows, pairs: TokenRows | None, special: SpecialPieceIds, layout: BatchLayout
) -> dict[str, np.ndarray]:
    """Adds [CLS] and [SEP], truncates and pads; returns what a call of `AlbertTokenizer` returns.

    Raises:
        ValueError: a row does not fit and must not be truncated, or a first text leaves no space for windows.
    """
    windows = choose_windows(_lengths(texts), None if pairs is None else _lengths(pairs), layout)
    totals = windows.first + windows.second + (2 if pairs is None else 3)  # [R]
    positions = np.arange(_padded_length(totals, layout))  # [L]
    mask = positions < totals[:, None]  # [R, L]
    types = mask & (positions >= windows.first[:, None] + 2) if pairs is not None else np.zeros_like(mask)
    ids = np.where(mask, np.int32(special.sep), np.int32(special.pad))  # [R, L]
    ids[:, :1] = special.cls
    _write(ids, texts.ids, None if pairs is None else pairs.ids, windows)
    inputs = {"input_ids": ids, "attention_mask": mask.astype(np.int32), "token_type_ids": types.astype(np.int32)}
    if texts.offsets is not None:
        inputs["offsets"] = np.zeros((*ids.shape, 2), np.int32)
        _write(inputs["offsets"], texts.offsets, None if pairs is None else pairs.offsets, windows)
    if layout.doc_stride is not None:
        inputs["overflow_to_sample_mapping"] = windows.samples.astype(np.int32)
    return inputs


def choose_windows(first: np.ndarray, second: np.ndarray | None, layout: BatchLayout) -> Windows:
    """Chooses the contents of rows from the lengths of texts and of their pairs, int [B] each.

    Raises:
        ValueError: as `build_inputs`.
    """
    if layout.doc_stride is not None:
        return _split(first, second, layout)
    capacity = layout.max_length - (2 if second is None else 3)
    totals = first if second is None else first + second
    if not layout.truncation and len(totals) and totals.max() > capacity:
        row = int(totals.argmax())
        raise ValueError(
            f"Every row must fit in `max_length` with `truncation=False`. Received: row {row} with "
            f"{layout.max_length - capacity + int(totals[row])} ids for max_length={layout.max_length}; "
            "raise max_length or pass truncation=True."
        )
    none = np.zeros_like(first)
    lengths_used = (np.minimum(first, capacity), none) if second is None else pair_lengths(first, second, capacity)
    return Windows(np.arange(len(first)), *lengths_used, none)


def _split(first: np.ndarray, second: np.ndarray | None, layout: BatchLayout) -> Windows:
    """Splits each text, or the second text of each pair, into one or more windows."""
    lengths = first if second is None else second
    capacity = np.full_like(first, layout.max_length - 2) if second is None else layout.max_length - 3 - first
    if len(capacity) and capacity.min() < 1:
        raise ValueError(
            "The first text of a pair must leave space for the second in every window. "
            f"Received: row {capacity.argmin()} with {first[capacity.argmin()]} ids for "
            f"max_length={layout.max_length}; raise max_length or shorten the text."
        )
    step = np.minimum(capacity, layout.doc_stride or capacity)
    counts = 1 + -(-np.maximum(lengths - capacity, 0) // step)  # [B]
    samples = np.repeat(np.arange(len(first)), counts)  # [R]
    starts = (np.arange(len(samples)) - np.repeat(np.cumsum(counts) - counts, counts)) * step[samples]
    lengths_used = np.minimum(capacity[samples], lengths[samples] - starts)
    if second is None:
        return Windows(samples, lengths_used, np.zeros_like(lengths_used), starts)
    return Windows(samples, first[samples], lengths_used, starts)


def _padded_length(totals: np.ndarray, layout: BatchLayout) -> int:
    if layout.padding == "max_length":
        return layout.max_length
    longest, multiple = int(totals.max(initial=0)), layout.pad_to_multiple_of or 1
    return -(-longest // multiple) * multiple


def _write(
    target: np.ndarray, rows: Sequence[np.ndarray], pairs: Sequence[np.ndarray] | None, windows: Windows
) -> None:
    """Writes texts and pairs between the special ids in `target` [R, L, ...]."""
    parts = zip(*(array.tolist() for array in (windows.samples, windows.first, windows.second, windows.starts)))
    for index, (sample, first, second, start) in enumerate(parts):
        end = 1 + first
        if pairs is None:
            target[index, 1:end] = rows[sample][start : start + first]
        else:
            target[index, 1:end] = rows[sample][:first]
            target[index, end + 1 : end + 1 + second] = pairs[sample][start : start + second]


def _lengths(rows: TokenRows) -> np.ndarray:
    return np.array([len(row) for row in rows.ids], np.int64)


def _is_integer(number: object, least: int) -> bool:
    return isinstance(number, Integral) and not isinstance(number, bool) and int(number) >= least
