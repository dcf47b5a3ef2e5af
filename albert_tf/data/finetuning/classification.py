"""Labelled texts, read from a table file. N examples."""

import array
import contextlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from albert_tf.data.finetuning.separated import NEEDS_QUOTES
from albert_tf.data.finetuning.stored_rows import StoredRows
from albert_tf.data.finetuning.table_format import TableFormat
from albert_tf.data.finetuning.tables import TableRow, describe_table, is_missing, listed, read_rows
from albert_tf.files.json import nearest
from albert_tf.files.origins import name_of, where

_BOOLEANS = {"true": "1", "false": "0"}


@dataclass(frozen=True)
class Columns:
    """The columns of a table.

    Attributes:
        text: name of the column with the text.
        pair: name of the column with the second text, or None.
        label: name of the column with the label.
        separator: of the labels of a text that may have any number of them, also as a JSON list; None for one label.
        labels: columns with 1 where a text has the label of this name and 0 elsewhere, instead of `label`.
    """

    text: str = "text"
    pair: str | None = None
    label: str = "label"
    separator: str | None = None
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class LabelledTexts:
    """The examples of one file, in order; each field has length N.

    Attributes:
        source: the file.
        lines: number of the first line of each example, from 1.
        texts: the texts.
        pairs: the second texts, or None.
        labels: the labels as written in the file.
        separator: as in Columns.
        form: what the file was recognised as.
        columns: those of the labels, if they have columns of their own.
    """

    source: Path
    lines: Sequence[int]
    texts: Sequence[str]
    pairs: Sequence[str] | None
    labels: Sequence[str]
    separator: str | None = None
    form: str = ""
    columns: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.texts)

    def label_names(self) -> tuple[str, ...]:
        """The distinct labels, sorted, integers by value; those with columns of their own in the order of these."""
        if self.columns:
            return self.columns
        if self.separator is not None:
            return tuple(sorted({label for labels in self.label_sets() for label in labels}, key=_sort_key))
        return tuple(sorted(set(self.labels), key=_sort_key))

    def label_sets(self) -> list[list[str]]:
        """The labels of each text that may have any number of them."""
        sets = []
        for line, labels in zip(self.lines, self.labels):
            if (parts := _split_labels(labels, self.separator)) is None:
                raise ValueError(
                    f"{where(self.source, line)}: {labels[:60]!r} is not a JSON list of different labels, such as "
                    '["law", "war"] or [0, 3]. Decisions, 0 or 1, need a column for each label: set `label_columns` '
                    '(--set \'label_columns=["a", "b"]\').'
                )
            sets.append(parts)
        return sets

    def label_decisions(self, names: Sequence[str]) -> np.ndarray:
        """Whether each text has each label, float32 [N, C]; raises ValueError if a label is not in `names`."""
        if self.columns and set(self.columns) != set(names):
            raise ValueError(
                f"`label_columns` must name a column for each label of the model: {', '.join(names)}. Received: "
                f"{', '.join(self.columns)}."
            )
        ids = {name: index for index, name in enumerate(names)}
        decisions = np.zeros([len(self), len(names)], np.float32)
        for row, labels in enumerate(self.label_sets()):
            for label in labels:
                decisions[row, self._index(ids, label, self.lines[row])] = 1.0
        return decisions

    def label_ids(self, names: Sequence[str]) -> np.ndarray:
        """The index of each label in `names`, int32 [N]; raises ValueError if a label is not one of them."""
        ids = {name: index for index, name in enumerate(names)}
        return np.array([self._index(ids, label, line) for line, label in zip(self.lines, self.labels)], np.int32)

    def _index(self, ids: dict[str, int], label: str, line: int) -> int:
        if label not in ids:
            raise ValueError(
                f"{where(self.source, line)}: the label {label!r} is not one of {listed(ids)}{nearest(label, ids)}"
            )
        return ids[label]

    def label_values(self) -> np.ndarray:
        """The labels as numbers, float32 [N]; raises ValueError if one is not a finite number."""
        values = [as_number(label) for label in self.labels]
        for line, label, value in zip(self.lines, self.labels, values):
            if not np.isfinite(value):
                raise ValueError(
                    f"{where(self.source, line)}: the label {label!r} is not a number; correct it, or train a "
                    f"classifier."
                )
        return np.array(values, np.float32)


def read_texts(path: str | Path, columns: Columns | None = None, table: TableFormat | None = None) -> LabelledTexts:
    """Reads a table of labelled texts (see `tables.read_rows`), by default "text" and "label".

    Texts that nobody labelled in a full export of Label Studio are left out, and those whose labels were not accepted
    in Prodigy.

    Raises:
        ValueError: the file has another suffix, is not UTF-8, is empty or damaged, or lacks a column; the message names
            the file and the line.
    """
    path, columns = Path(path), columns or Columns()
    table = table or TableFormat()
    texts, pairs = StoredRows[str](), None if columns.pair is None else StoredRows[str]()
    lines, labels, row, left_out = array.array("q"), [], None, 0
    has_answers = "answer" in (columns.text, columns.pair, columns.label, *columns.labels)  # which are not Prodigy's
    for row in read_rows(path, table):
        if row.is_annotated is False or (row.is_rejected and not has_answers):
            left_out += 1
            continue
        texts.append(row.text(columns.text, "--text-column"))
        if pairs is not None:
            pairs.append(row.text(str(columns.pair), "--pair-column"))
        labels.append(sys.intern(label_of(row, columns)))
        lines.append(row.line)
    if not labels:
        accepted = " with an accepted annotation" if left_out else ""
        raise ValueError(f"{name_of(path)} has no rows{accepted}; is it the right file?")
    if row is not None and not columns.labels and not any(labels):
        row.field(columns.label, "--label-column")  # raises if no row has it
    facts = [f"{len(labels):,} {'texts' if pairs is None else 'pairs'}", *describe_table(path, table)]
    facts += [f"{left_out:,} without an accepted annotation left out"] if left_out else []
    return LabelledTexts(path, lines, texts, pairs, labels, columns.separator, ", ".join(facts), columns.labels)


def label_of(row: TableRow, columns: Columns) -> str:
    """The label of a row as text; raises ValueError if it is empty, or a list where texts have one label each."""
    if columns.labels:
        return join_labels([name for name in columns.labels if _is_one(row, name)], columns.separator)
    if columns.separator is not None and columns.label not in row.fields and row.is_annotated:
        return ""  # Label Studio leaves out the field if nothing was chosen
    label = _choices(row.field(columns.label, "--label-column"), columns.separator)
    if isinstance(label, dict) or (isinstance(label, list) and columns.separator is None):
        raise ValueError(
            f"{row.where}: the label {str(label)[:60]} is not a single value; if texts may have any "
            "number of labels, set the problem to 'multi_label', and give a list of labels, or a column for each with "
            "`label_columns`."
        )
    if is_missing(label) or (isinstance(label, str) and not label.strip() and columns.separator is None):
        raise ValueError(f"{row.where}: the label ({columns.label!r}) is empty; fill it in or delete the row.")
    if isinstance(label, bytes):
        raise ValueError(f"{row.where}: the label ({columns.label!r}) is binary; write it as text.")
    label = label.strip() if isinstance(label, str) else label
    # JSON has no decimals and dates, but Parquet does.
    is_json = isinstance(label, int | float | list | dict)
    return json.dumps(label, ensure_ascii=False, default=str) if is_json else str(label)


def _is_one(row: TableRow, column: str) -> bool:
    """Whether a label's column has 1, or "true" as pandas writes it; raises ValueError if it does not have 0 either."""
    value = row.field(column, "--set label_columns")
    number = as_number(_BOOLEANS.get(value.lower(), value) if isinstance(value, str) else value)
    if number not in (0, 1):
        raise ValueError(f"{row.where}: {column!r} must be 0 or 1, as a column of a label. Received: {value!r}.")
    return number == 1


def _choices(label: Any, separator: str | None) -> Any:
    """The list of labels in Label Studio's {"choices": [...]}; of texts that have one label each, a label alone."""
    if isinstance(label, str) and label.startswith('{"choices"'):  # in its CSV files
        with contextlib.suppress(ValueError):
            label = json.loads(label)
    if not isinstance(label, dict) or not isinstance(label.get("choices"), list):
        return label
    choices = label["choices"]
    return choices[0] if separator is None and len(choices) == 1 else choices


def join_labels(labels: Sequence[str], separator: str | None) -> str:
    """Several labels as a cell of a table: separated, or as a JSON list if they would be read as other labels.

    Example:

    >>> print(join_labels(["law", "war"], "|"), join_labels(["IT, science", "law"], ","))
    law|war ["IT, science", "law"]
    """
    text = (separator or ",").join(labels)
    is_plain = _split_labels(text, separator) == list(labels) and not NEEDS_QUOTES.search(text)
    return text if is_plain else json.dumps(labels, ensure_ascii=False)


def _split_labels(text: str, separator: str | None) -> list[str] | None:
    """The labels in a cell of a table; None if it begins like a JSON list, but is not one of different labels."""
    if not text.startswith("["):
        return [part.strip() for part in text.split(separator or ",") if part.strip()]
    try:
        parts = json.loads(text)
    except ValueError:
        return None
    if not all(type(part) in (str, int) and part != "" for part in parts) or len(set(parts)) < len(parts):
        return None
    return [str(part) for part in parts]


def as_number(label: Any) -> float:
    """A label as a number, NaN if it is not one."""
    try:
        return float(label)
    except (TypeError, ValueError):
        return float("nan")


def _sort_key(label: str) -> tuple[bool, int, str]:
    return (False, int(label), label) if label.removeprefix("-").isdecimal() else (True, 0, label)
