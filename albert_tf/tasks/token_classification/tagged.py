"""Texts with tagged words or labelled spans, for token classification.

Letters: N texts, T tokens of a text, W windows, B batch, L sequence.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from albert_tf.data.finetuning.encoded import (
    IGNORED_LABEL,
    EncodedTexts,
    Inputs,
    best_windows,
    encode_with_spans,
    flat_rows,
    parts_of,
    window_stride,
)
from albert_tf.data.finetuning.stored_arrays import Ragged, gather
from albert_tf.data.finetuning.tables import listed
from albert_tf.data.finetuning.text_counts import counts_of, report_parts
from albert_tf.files.json import nearest
from albert_tf.metrics.entities import are_of_words
from albert_tf.tokenization.batching import BatchLayout, choose_windows

if TYPE_CHECKING:
    from albert_tf.tokenization import AlbertTokenizer

OUTSIDE = "O"
TAG = re.compile("O|[BIESLU]-.+")


@dataclass(frozen=True)
class TaggedText:
    """A text, and what is known of parts of it.

    Attributes:
        where: file and line.
        text: the text; words are joined by spaces.
        words: start and exclusive end of each word in characters; None if spans are labelled.
        tags: the tag of each word.
        spans: start, exclusive end and label of each labelled span.
    """

    where: str
    text: str
    words: tuple[tuple[int, int], ...] | None = None
    tags: tuple[str, ...] = ()
    spans: tuple[tuple[int, int, str], ...] = ()


def tag_names(texts: Sequence[TaggedText]) -> tuple[str, ...]:
    """The tags that occur, sorted, with "O" first unless words have labels alone; spans are "B-label" and "I-label"."""
    names = {tag for text in texts for tag in text.tags}
    names |= {f"{prefix}-{label}" for text in texts for *_, label in text.spans for prefix in "BI"}
    return tuple(sorted(names)) if names and are_of_words(names) else (OUTSIDE, *sorted(names - {OUTSIDE}))


@dataclass(frozen=True)
class EncodedTags:
    """Tokenized texts, long ones in several windows, with labels.

    Attributes:
        texts: the N texts.
        encoded: EncodedTexts of the W windows, those of one text next to each other.
        text: index of the text of each window, int32 [W].
        start, count: first token of the text in each window and number of tokens, int32 [W].
        spans: for each text, start and exclusive end of its tokens in characters, int32 [T, 2].
        labels: for each text, the label of each token, int32 [T]; -100 for all but the first token of a word.
    """

    texts: Sequence[TaggedText]
    encoded: EncodedTexts
    text: np.ndarray
    start: np.ndarray
    count: np.ndarray
    spans: Ragged
    labels: Ragged

    @property
    def lengths(self) -> np.ndarray:
        """Number of ids of each window."""
        return self.encoded.lengths

    def batch(self, rows: np.ndarray, multiple: int | None = 8) -> Inputs:
        """The model's inputs for some windows, see `EncodedTexts.batch`."""
        return self.encoded.batch(rows, multiple)

    def training_batch(self, rows: np.ndarray, multiple: int | None = 8) -> tuple[Inputs, np.ndarray]:
        """Inputs and labels, int32 [B, L], of some windows."""
        inputs = self.encoded.batch(rows, multiple)
        labels = np.full(inputs["input_ids"].shape, IGNORED_LABEL, np.int32)
        for index, row in enumerate(rows.tolist()):
            start, count = int(self.start[row]), int(self.count[row])
            labels[index, 1 : 1 + count] = self.labels[int(self.text[row])][start : start + count]
        return inputs, labels

    def join(self, predictions: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The predictions for the tokens of each text, [T, ...], from those for the tokens of each window.

        A token's prediction is that of the window that shows most of its surroundings.
        """
        joined = []
        for index, spans in enumerate(self.spans):
            first, end = np.searchsorted(self.text, [index, index + 1]).tolist()
            best = best_windows(len(spans), self.start[first:end], self.count[first:end])
            tokens = np.empty([len(spans), *predictions[first].shape[1:]], predictions[first].dtype)
            for window in range(first, end):
                mine = np.flatnonzero(best == window - first)
                tokens[mine] = predictions[window][mine - self.start[window]]
            joined.append(tokens)
        return joined


def encode_tagged(
    tokenizer: "AlbertTokenizer",
    texts: Sequence[TaggedText],
    names: Sequence[str],
    max_length: int = 512,
    doc_stride: int | None = None,
) -> EncodedTags:
    """Tokenizes texts and labels their tokens; long texts are split into windows.

    Args:
        tokenizer: AlbertTokenizer.
        texts: the texts.
        names: the tags in order of their ids.
        max_length: maximum number of ids of a window.
        doc_stride: distance in tokens of the starts of two windows. None: 128, or a third of `max_length` if that is
            less.

    Raises:
        ValueError: a tag is not one of `names`; the message names the line.
    """
    stride = window_stride(max_length, doc_stride)
    parts = _parts(tokenizer, texts, names, BatchLayout(max_length, doc_stride=stride))
    columns = gather(parts)
    report_parts(columns.pop("counts"))
    encoded = EncodedTexts.take(columns, tokenizer, max_length)
    spans = Ragged.of(columns.pop("spans").reshape(-1, 2), columns.pop("num_tokens"))
    labels = Ragged(columns.pop("labels"), spans.starts, spans.lengths)
    return EncodedTags(texts, encoded, spans=spans, labels=labels, **columns)


def _parts(
    tokenizer: "AlbertTokenizer", texts: Sequence[TaggedText], names: Sequence[str], layout: BatchLayout
) -> Iterator[dict[str, np.ndarray]]:
    """Yields the windows of some texts at a time, and the spans and labels of their tokens."""
    num_texts = 0
    for part in parts_of(texts, lambda text: text.text):
        tokens, spans = zip(*encode_with_spans(tokenizer, [text.text for text in part]))
        num_tokens = np.array([len(ids) for ids in tokens], np.int64)
        windows = choose_windows(num_tokens, None, layout)
        yield {
            **flat_rows(tokenizer, tokens, None, layout),
            "text": (num_texts + windows.samples).astype(np.int32),
            "start": windows.starts.astype(np.int32),
            "count": windows.first.astype(np.int32),
            "num_tokens": num_tokens.astype(np.int32),
            "counts": counts_of(num_tokens),
            "spans": np.concatenate(spans).reshape(-1),
            "labels": np.concatenate([_labels(text, token_spans, names) for text, token_spans in zip(part, spans)]),
        }
        num_texts += len(part)


def first_tokens(text: TaggedText, spans: np.ndarray) -> list[int | None]:
    """The index of the first token that ends in each word of a text; None for a word without tokens."""
    words, ends = np.array(text.words or (), np.int64).reshape(-1, 2), spans[:, 1]
    tokens = np.searchsorted(ends, words[:, 0], side="right").tolist()  # tokens are in order
    return [
        token if token < len(ends) and ends[token] <= end else None for token, end in zip(tokens, words[:, 1].tolist())
    ]


def find_words(text: str, spans: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Splits a text into words: runs of letters and digits, and single other characters or tokens.

    Args:
        text: the text.
        spans: start and exclusive end of its tokens in characters, int [T, 2].

    Returns:
        For each word, the index of its first token, int [words], and its start and end, int [words, 2].
    """
    first, words, end = [], [], -1
    for index, (start, stop) in enumerate(spans.tolist()):
        token = text[start:stop]
        if not token.strip():
            continue
        if start == end and _is_letter(text[start - 1]) and _is_letter(token[0]):
            words[-1][1] = stop
        else:
            first.append(index)
            words.append([start, stop])
        end = stop
    return np.array(first, np.int64), np.array(words, np.int64).reshape(-1, 2)


def _is_letter(character: str) -> bool:
    return character == "_" or unicodedata.category(character)[0] in "LMN"


def _labels(text: TaggedText, spans: np.ndarray, names: Sequence[str]) -> np.ndarray:
    ids = {name: index for index, name in enumerate(names)}

    def label_of(tag: str) -> int:
        if tag == OUTSIDE and tag not in ids:  # of texts without labels, where the model's tags are of words
            return IGNORED_LABEL
        if tag not in ids:
            raise ValueError(f"{text.where}: the tag {tag!r} is not one of {listed(names)}{nearest(tag, names)}")
        return ids[tag]

    if text.words is not None:
        labels = np.full(len(spans), IGNORED_LABEL, np.int32)
        for token, tag in zip(first_tokens(text, spans), text.tags):
            label = label_of(tag)
            if token is not None:
                labels[token] = label
        return labels
    labels = np.full(len(spans), label_of(OUTSIDE), np.int32)
    for start, end, label in text.spans:
        tokens = np.flatnonzero((spans[:, 0] < end) & (spans[:, 1] > start) & (spans[:, 1] > spans[:, 0]))
        labels[tokens[:1]] = label_of(f"B-{label}")
        if len(tokens) > 1:
            labels[tokens[1:]] = label_of(f"I-{label}")
    return labels
