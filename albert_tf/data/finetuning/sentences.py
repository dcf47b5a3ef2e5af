"""Sentences to learn embeddings from: rows of a sentence, a similar one and perhaps a different one.

Letters: N rows, T sentences of each.
"""

import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from albert_tf.data.finetuning.choices import EncodedChoices
from albert_tf.data.finetuning.classification import Columns, as_number, label_of
from albert_tf.data.finetuning.encoded import encode_texts
from albert_tf.data.finetuning.stored_rows import StoredRows
from albert_tf.data.finetuning.tables import listed, read_rows

if TYPE_CHECKING:
    from albert_tf.tokenization import AlbertTokenizer


@dataclass(frozen=True)
class SentenceRows:
    """The rows of a table.

    Attributes:
        sentences: the sentences of the N rows, those of a row next to each other.
        num_sentences: T.
        similarities: float32 [N], from 0 to 1; zeros without labels.
    """

    sentences: Sequence[str]
    num_sentences: int
    similarities: np.ndarray

    def __len__(self) -> int:
        return len(self.similarities)

    def rows(self) -> Iterator[tuple[str, ...]]:
        """The T sentences of each row."""
        return zip(*[iter(self.sentences)] * self.num_sentences)

    def encode(self, tokenizer: "AlbertTokenizer", max_length: int, folder: Path | None = None) -> EncodedChoices:
        """Tokenizes the sentences of each row next to each other; `folder` as in `gather`."""
        encoded = encode_texts(tokenizer, self.sentences, None, max_length, folder)
        return EncodedChoices(encoded, self.similarities, self.num_sentences)


def read_sentences(
    path: Path,
    columns: Columns,
    negative: str | None = None,
    positive_label: str | None = None,
    largest_label: float | None = None,
) -> SentenceRows:
    """Reads a table (see `tables.read_rows`) of sentences.

    Args:
        path: the file.
        columns: `pair` is the column of similar sentences.
        negative: column of sentences that differ.
        positive_label: of the rows to read, if not all of them; the others are left out.
        largest_label: labels are numbers from 0 to this one, by which they are divided. None: labels are not read.

    Raises:
        ValueError: as `read_rows`; or no row is left, or a label is not a number from 0 to the largest.
    """
    if columns.pair is None:
        raise ValueError("`pair_column` must be given to learn embeddings of sentences. Received: None.")
    sentences, similarities, labels = StoredRows[str](), array.array("f"), set()
    names = [(columns.text, "--text-column"), (columns.pair, "--pair-column")]
    names += [] if negative is None else [(negative, "--negative-column")]
    for row in read_rows(path, columns.header, columns.drop_ragged):
        texts = [row.text(*name) for name in names]
        label = "" if positive_label is None and largest_label is None else label_of(row, columns)
        if positive_label is not None:
            labels.add(label)
            if label != positive_label:
                continue
        similarity = 0.0 if largest_label is None else as_number(label) / largest_label
        if not 0 <= similarity <= 1:  # false for NaN
            raise ValueError(
                f"{row.where}: the label {label!r} is not a number from 0 to {largest_label:g}; correct "
                "it, or set --largest-label."
            )
        for text in texts:
            sentences.append(text)
        similarities.append(similarity)
    if not similarities:
        known = f" with the label {positive_label!r}; its labels are {listed(sorted(labels))}" if labels else ""
        raise ValueError(f"{path} has no rows{known}; is it the right file?")
    return SentenceRows(sentences, len(names), np.array(similarities, np.float32))
