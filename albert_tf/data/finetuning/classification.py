"""Labelled texts for classifiers, from a table file to padded batches.

Letters: N examples, T ids of all examples together, B batch, L sequence.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from albert_tf.data.finetuning.tables import Row, listed, nearest, read_rows

if TYPE_CHECKING:
    import tensorflow as tf

    from albert_tf.tokenization import AlbertTokenizer

Inputs = dict[str, np.ndarray]

_TEXTS_AT_ONCE = 1024
# Shuffled examples are sorted by length within windows of this many batches.
_BATCHES_PER_WINDOW = 32


@dataclass(frozen=True)
class Columns:
    """The columns of a table.

    Attributes:
        text: name of the column with the text.
        pair: name of the column with the second text, or None.
        label: name of the column with the label.
        header: whether the first row of a TSV or CSV file names the columns; otherwise they are numbered from 0.
    """

    text: str = "text"
    pair: str | None = None
    label: str = "label"
    header: bool = True


@dataclass(frozen=True)
class LabelledTexts:
    """The examples of one file, in order; each field has length N.

    Attributes:
        source: the file.
        lines: number of the first line of each example, from 1.
        texts: the texts.
        pairs: the second texts, or None.
        labels: the labels as written in the file.
    """

    source: Path
    lines: tuple[int, ...]
    texts: tuple[str, ...]
    pairs: tuple[str, ...] | None
    labels: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.texts)

    def label_names(self) -> tuple[str, ...]:
        """The distinct labels, sorted, integers by value."""
        return tuple(sorted(set(self.labels), key=_sort_key))

    def label_ids(self, names: Sequence[str]) -> np.ndarray:
        """The index of each label in `names`, int32 [N]; raises ValueError if a label is not one of them."""
        ids = {name: index for index, name in enumerate(names)}
        for line, label in zip(self.lines, self.labels):
            if label not in ids:
                raise ValueError(
                    f"{self.source}, line {line}: the label {label!r} is not one of {listed(names)}"
                    f"{nearest(label, names)}."
                )
        return np.array([ids[label] for label in self.labels], np.int32)

    def label_values(self) -> np.ndarray:
        """The labels as numbers, float32 [N]; raises ValueError if one is not a finite number."""
        values = [_float(label) for label in self.labels]
        for line, label, value in zip(self.lines, self.labels, values):
            if not np.isfinite(value):
                raise ValueError(
                    f"{self.source}, line {line}: the label {label!r} is not a number; correct it, or train a "
                    f"classifier."
                )
        return np.array(values, np.float32)


def read_texts(path: str | Path, columns: Columns | None = None) -> LabelledTexts:
    """Reads a table of labelled texts (TSV, CSV or JSONL, see `tables.read_rows`), by default "text" and "label".

    Raises:
        ValueError: the file has another suffix, is not UTF-8, is empty or damaged, or lacks a column; the message names
            the file and the line.
    """
    path, columns = Path(path), columns or Columns()
    examples = [_example(row, columns) for row in read_rows(path, columns.header)]
    if not examples:
        raise ValueError(f"{path} has no rows; is it the right file?")
    lines, texts, pairs, labels = zip(*examples)
    return LabelledTexts(path, lines, texts, pairs if columns.pair is not None else None, labels)


@dataclass(frozen=True)
class EncodedTexts:
    """Tokenized and truncated examples with special tokens, concatenated.

    Attributes:
        ids: int32 [T].
        token_types: int8 [T].
        offsets: int64 [N + 1]; example n has `ids[offsets[n] : offsets[n + 1]]`.
        max_length: maximum number of ids in an example.
        pad_token_id: id of the padding.
    """

    ids: np.ndarray
    token_types: np.ndarray
    offsets: np.ndarray
    max_length: int
    pad_token_id: int

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Number of ids of each example: int64 [N]."""
        return np.diff(self.offsets)

    def batch(self, rows: np.ndarray, multiple: int = 8) -> Inputs:
        """The model's inputs for some examples, padded to the longest of them.

        Args:
            rows: int [B], indices of the examples.
            multiple: L is rounded up to a multiple of this, at most to `max_length`, so that there are few shapes.

        Returns:
            A dict of int32 [B, L]: `input_ids`, `attention_mask`, `token_type_ids`.
        """
        lengths = self.lengths[rows]
        longest = min(-(-int(lengths.max()) // multiple) * multiple, self.max_length)
        positions = np.arange(longest)
        mask = positions < lengths[:, None]  # [B, L]
        sources = (self.offsets[rows][:, None] + positions)[mask]
        ids = np.full(mask.shape, self.pad_token_id, np.int32)
        types = np.zeros(mask.shape, np.int32)
        ids[mask], types[mask] = self.ids[sources], self.token_types[sources]
        return {"input_ids": ids, "attention_mask": mask.astype(np.int32), "token_type_ids": types}


def encode_texts(
    tokenizer: "AlbertTokenizer", texts: Sequence[str], pairs: Sequence[str] | None, max_length: int
) -> EncodedTexts:
    """Tokenizes texts or pairs of texts, and truncates those of more than `max_length` ids."""
    ids, types, lengths = [], [], []
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        part = slice(start, start + _TEXTS_AT_ONCE)
        encoded = tokenizer(texts[part], None if pairs is None else pairs[part], max_length=max_length)
        mask = encoded["attention_mask"] == 1
        ids.append(encoded["input_ids"][mask])
        types.append(encoded["token_type_ids"][mask].astype(np.int8))
        lengths.append(mask.sum(axis=1))
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64)
    return EncodedTexts(np.concatenate(ids), np.concatenate(types), offsets, max_length, tokenizer.pad_token_id)


def epoch_batches(lengths: np.ndarray, batch_size: int, seed: int, epoch: int) -> list[np.ndarray]:
    """Groups the examples, of lengths int [N], into batches of similar length, in a random order of each epoch.

    Returns:
        ceil(N / B) arrays of example indices, each example once.

    Example:

    >>> [batch.tolist() for batch in epoch_batches(np.array([5, 9, 5, 9]), batch_size=2, seed=1, epoch=0)]
    [[0, 2], [1, 3]]
    """
    random = np.random.default_rng([seed, epoch])
    order = random.permutation(len(lengths))
    window = batch_size * _BATCHES_PER_WINDOW
    windows = [order[start : start + window] for start in range(0, len(order), window)]
    order = np.concatenate([rows[np.argsort(lengths[rows], kind="stable")] for rows in windows])
    batches = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
    return [batches[index] for index in random.permutation(len(batches))]


def training_dataset(
    encoded: EncodedTexts, labels: np.ndarray, batch_size: int, seed: int, epochs: int
) -> "tf.data.Dataset":
    """All epochs of training, as batches of `epoch_batches`.

    Returns:
        Dataset of (inputs, labels): a dict of int32 [B, L], padded to the longest example of the batch, and labels [B].
    """
    import tensorflow as tf

    def batches() -> Iterator[tuple[Inputs, np.ndarray]]:
        for epoch in range(epochs):
            for rows in epoch_batches(encoded.lengths, batch_size, seed, epoch):
                yield encoded.batch(rows), labels[rows]

    ids = tf.TensorSpec([None, None], tf.int32)
    inputs = {"input_ids": ids, "attention_mask": ids, "token_type_ids": ids}
    signature = (inputs, tf.TensorSpec([None], tf.as_dtype(labels.dtype)))
    return tf.data.Dataset.from_generator(batches, output_signature=signature).prefetch(tf.data.AUTOTUNE)


def _example(row: Row, columns: Columns) -> tuple[int, str, str | None, str]:
    text = row.text(columns.text, "--text-column")
    pair = None if columns.pair is None else row.text(columns.pair, "--pair-column")
    label = row.field(columns.label, "--label-column")
    label = "" if label is None else label.strip() if isinstance(label, str) else json.dumps(label)
    if not label:
        raise ValueError(
            f"{row.source}, line {row.line}: the label ({columns.label!r}) is empty; fill it in or delete the row."
        )
    return row.line, text, pair, label


def _sort_key(label: str) -> tuple[bool, int, str]:
    return (False, int(label), label) if label.isdecimal() else (True, 0, label)


def _float(label: str) -> float:
    try:
        return float(label)
    except ValueError:
        return float("nan")
