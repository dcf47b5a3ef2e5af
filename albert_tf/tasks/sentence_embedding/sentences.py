"""Sentences to learn embeddings from: rows of a sentence, a similar one and perhaps a different one.

Letters: N rows, T sentences of each.
"""

import array
import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from albert_tf.data.finetuning.classification import Columns, as_number, label_of
from albert_tf.data.finetuning.encoded import encode_texts
from albert_tf.data.finetuning.stored_rows import StoredRows
from albert_tf.data.finetuning.table_format import TableFormat
from albert_tf.data.finetuning.tables import describe_table, listed, read_rows
from albert_tf.files.origins import name_of
from albert_tf.tasks.multiple_choice.choices import EncodedChoices

if TYPE_CHECKING:
    from albert_tf.tokenization import AlbertTokenizer

# Columns of two similar sentences, and of their similarity, as published data sets call them.
_PAIRS = (("anchor", "positive"), ("sentence1", "sentence2"), ("sentence_1", "sentence_2"), ("query", "positive"))
_LABELS = ("score", "similarity_score", "similarity", "labels.real-label")


@dataclass(frozen=True)
class SentenceRows:
    """The rows of a table.

    Attributes:
        sentences: the sentences of the N rows, those of a row next to each other.
        num_sentences: T.
        similarities: float32 [N], from 0 to 1; zeros without labels.
        form: what the file was recognised as.
    """

    sentences: Sequence[str]
    num_sentences: int
    similarities: np.ndarray
    form: str = ""

    def __len__(self) -> int:
        return len(self.similarities)

    def rows(self) -> Iterator[tuple[str, ...]]:
        """The T sentences of each row."""
        return zip(*[iter(self.sentences)] * self.num_sentences)

    def encode(self, tokenizer: "AlbertTokenizer", max_length: int) -> EncodedChoices:
        """Tokenizes the sentences of each row next to each other."""
        encoded = encode_texts(tokenizer, self.sentences, None, max_length)
        return EncodedChoices(encoded, self.similarities, self.num_sentences)


def known_columns(path: Path, columns: Columns, table: TableFormat) -> Columns:
    """The columns of pairs of sentences: the given ones or, without a column of pairs, those that the table has.

    Raises:
        ValueError: there is no column of pairs.
    """
    if columns.pair is not None:
        return columns
    row = next(read_rows(path, table), None)
    fields = {} if row is None else row.fields
    pair = next((pair for pair in _PAIRS if all(name in fields for name in pair)), None)
    if pair is None:
        raise ValueError(
            f"`pair_column` must be given for pairs of sentences. Received: None, and {name_of(path)} with "
            f"the columns {listed(fields)}."
        )
    label = columns.label if columns.label in fields else next((name for name in _LABELS if name in fields), "label")
    return dataclasses.replace(columns, text=pair[0], pair=pair[1], label=label)


def read_sentences(
    path: Path, columns: Columns, table: TableFormat, negative: str | None = None, largest_label: float | None = None
) -> SentenceRows:
    """Reads a table (see `tables.read_rows`) of sentences.

    Args:
        path: the file.
        columns: `pair` is the column of similar sentences; None: see `known_columns`.
        table: TableFormat.
        negative: column of sentences that differ.
        largest_label: labels are numbers from 0 to this one, by which they are divided. None: labels are not read.

    Raises:
        ValueError: as `read_rows`; or there is no row, or a label is not a number from 0 to the largest.
    """
    columns = known_columns(path, columns, table)
    sentences, similarities = StoredRows[str](), array.array("f")
    names = [(columns.text, "--text-column"), (str(columns.pair), "--pair-column")]
    names += [] if negative is None else [(negative, "--set negative_column")]
    left_out, has_answers = 0, "answer" in (columns.label, *(name for name, _ in names))
    for row in read_rows(path, table):
        if row.is_rejected and not has_answers:
            left_out += 1
            continue
        texts = [row.text(*name) for name in names]
        label = "" if largest_label is None else label_of(row, columns)
        similarity = 0.0 if largest_label is None else as_number(label) / largest_label
        if not 0 <= similarity <= 1:  # false for NaN
            raise ValueError(
                f"{row.where}: the label {label!r} is not a number from 0 to {largest_label:g}; correct "
                "it, or set `largest_label` (--set largest_label=5)."
            )
        for text in texts:
            sentences.append(text)
        similarities.append(similarity)
    if not similarities:
        raise ValueError(f"{name_of(path)} has no rows; is it the right file?")
    facts = [f"{len(similarities):,} rows of {', '.join(name for name, _ in names)}", *describe_table(path, table)]
    facts += [f"{left_out:,} not accepted left out"] if left_out else []
    return SentenceRows(sentences, len(names), np.array(similarities, np.float32), ", ".join(facts))
