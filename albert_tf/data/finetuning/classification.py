"""Labelled texts, read from a table file. N examples."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from albert_tf.data.finetuning.tables import Row, listed, nearest, read_rows


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
        values = [as_number(label) for label in self.labels]
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


def label_of(row: Row, columns: Columns) -> str:
    """The label of a row as text; raises ValueError if it is empty."""
    label = row.field(columns.label, "--label-column")
    label = "" if label is None else label.strip() if isinstance(label, str) else json.dumps(label)
    if not label:
        raise ValueError(
            f"{row.source}, line {row.line}: the label ({columns.label!r}) is empty; fill it in or delete the row."
        )
    return label


def as_number(label: str) -> float:
    """A label as a number, NaN if it is none."""
    try:
        return float(label)
    except ValueError:
        return float("nan")


def _example(row: Row, columns: Columns) -> tuple[int, str, str | None, str]:
    text = row.text(columns.text, "--text-column")
    pair = None if columns.pair is None else row.text(columns.pair, "--pair-column")
    return row.line, text, pair, label_of(row, columns)


def _sort_key(label: str) -> tuple[bool, int, str]:
    return (False, int(label), label) if label.isdecimal() else (True, 0, label)
