"""Tokenized texts of any number and length, and their padded batches.

Letters: N examples, T ids of an example, B batch or texts, L sequence, C classes.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from albert_tf.data.finetuning.few_shapes import padded_length
from albert_tf.data.finetuning.stored_arrays import Ragged, gather
from albert_tf.data.finetuning.text_counts import counts_of, report_parts
from albert_tf.tokenization.batching import BatchLayout, TokenRows, build_inputs, choose_windows
from albert_tf.tokenization.interface import SpecialPieceIds

if TYPE_CHECKING:
    from albert_tf.tokenization import AlbertTokenizer

# Tokens that are computed at once. With more, a CPU takes longer per token: base_v2 takes 1.6 times as long in
# bfloat16, and 1.3 times in int8, with batches of 32 rows of 20 to 300 tokens.
MAX_TOKENS = 1024
# Labels to be ignored, as in Hugging Face's data.
IGNORED_LABEL = -100
# Logit of a token that cannot be in an answer.
IMPOSSIBLE = np.float32(-1e9)
# A rough number for texts that are not tokenized yet.
BYTES_PER_TOKEN = 4

Inputs = dict[str, np.ndarray]
_Row = TypeVar("_Row")

_TEXTS_AT_ONCE, _LONG_TEXTS_AT_ONCE = 1024, 64
# Of the rows of texts of any length that are tokenized at once.
_ROWS_AT_ONCE, _CHARACTERS_AT_ONCE = 256, 1 << 20
_NO_LIMIT = 1 << 30
# Shuffled examples are sorted by length within windows of this many batches.
_BATCHES_PER_WINDOW = 32


def window_stride(max_length: int, doc_stride: int | None = None) -> int:
    """Distance in tokens of the starts of two windows: the given one as far as no token falls between windows.

    By default the reference's 128 tokens, or a third of shorter windows, which would not overlap otherwise.

    Example:

    >>> window_stride(384), window_stride(96), window_stride(96, doc_stride=128)
    (128, 32, 94)
    """
    return min(128, max_length // 3) if doc_stride is None else min(doc_stride, max_length - 2)


@dataclass(frozen=True)
class EncodedTexts:
    """Tokenized examples with special tokens, truncated or in windows.

    Attributes:
        ids: int32 [T] of each of the N examples.
        token_types: int8 [T].
        max_length: maximum number of ids in an example.
        pad_token_id: id of the padding.
        text: index of the text of each example, int32 [N], if long texts are in several windows; else None.
    """

    ids: Ragged
    token_types: Ragged
    max_length: int
    pad_token_id: int
    text: np.ndarray | None = None

    @classmethod
    def take(cls, arrays: dict[str, np.ndarray], tokenizer: "AlbertTokenizer", max_length: int) -> "EncodedTexts":
        """Takes `ids`, `token_types` and `lengths`, the number of ids of each example, out of arrays of `gather`."""
        ids = Ragged.of(arrays.pop("ids"), arrays.pop("lengths"))
        types = Ragged(arrays.pop("token_types"), ids.starts, ids.lengths)
        return cls(ids, types, max_length, tokenizer.pad_token_id)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def lengths(self) -> np.ndarray:
        """Number of ids of each example: int32 [N]."""
        return self.ids.lengths

    def batch(self, rows: np.ndarray, multiple: int | None = 8) -> Inputs:
        """The model's inputs for some examples, padded to the longest of them.

        Args:
            rows: int [B], indices of the examples.
            multiple: L is rounded up to a multiple of this, at most to `max_length`, so that there are few shapes.
                None: there are fewer, see `padded_length`.

        Returns:
            A dict of int32 [B, L]: `input_ids`, `attention_mask`, `token_type_ids`.
        """
        lengths = self.lengths[rows]
        longest = int(lengths.max())
        if multiple is None:
            longest = padded_length(longest, self.max_length)
        else:
            longest = min(-(-longest // multiple) * multiple, self.max_length)
        mask = np.arange(longest) < lengths[:, None]  # [B, L]
        ids = np.full(mask.shape, self.pad_token_id, np.int32)
        types = np.zeros(mask.shape, np.int32)
        ids[mask] = np.concatenate([self.ids[row] for row in rows])
        types[mask] = np.concatenate([self.token_types[row] for row in rows])
        return {"input_ids": ids, "attention_mask": mask.astype(np.int32), "token_type_ids": types}

    def joined(self, logits: np.ndarray, windows: str | None, problem: str) -> np.ndarray:
        """The logits of texts, float32 [B, C], from those of their windows, float32 [N, C].

        Where one label is chosen, the logits of a window are first normalised to logarithms of probabilities, because
        they are only known but for a constant.

        Args:
            logits: of all examples.
            windows: how those of a text are joined, by their `"mean"` or `"max"`; None: each text is one example.
            problem: `"classification"`, `"multi_label"` or `"regression"`.
        """
        if windows is None or self.text is None:
            return logits
        if problem == "classification":
            logits = logits - logits.max(axis=-1, keepdims=True)
            logits = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        first = np.flatnonzero(np.diff(self.text, prepend=-1))
        if windows == "max":
            return np.maximum.reduceat(logits, first)
        counts = np.diff(first, append=len(logits)).astype(logits.dtype)
        return np.add.reduceat(logits, first) / counts[:, None]


def rows_by_length(
    lengths: np.ndarray, batch_size: int, max_tokens: int | None = MAX_TOKENS, longest_first: bool = False
) -> Iterator[np.ndarray]:
    """Indices of the rows of batches of similar length.

    Args:
        lengths: number of tokens of each row, int [N].
        batch_size: maximum number of rows of a batch.
        max_tokens: maximum number of tokens of a batch, with padding, unless it is a single row. None: no limit.
        longest_first: whether the batch with the longest rows comes first, rather than last.
    """
    order = np.argsort(-lengths if longest_first else lengths, kind="stable")
    limit = np.inf if max_tokens is None else max_tokens
    while len(order):
        longest = np.maximum.accumulate(lengths[order[:batch_size]])  # of the first 1, 2, ... rows
        size = max(1, int((longest * np.arange(1, 1 + len(longest)) <= limit).sum()))
        yield order[:size]
        order = order[size:]


def epoch_batches(
    lengths: np.ndarray, batch_size: int, seed: int, epoch: int, drop_remainder: bool = False
) -> list[np.ndarray]:
    """Groups the examples, of lengths int [N], into batches of similar length, in a random order of each epoch.

    Returns:
        Arrays of example indices, each example once.

    Example:

    >>> [batch.tolist() for batch in epoch_batches(np.array([5, 9, 5, 9]), batch_size=2, seed=1, epoch=0)]
    [[0, 2], [1, 3]]
    """
    random = np.random.default_rng([seed, epoch])
    order = random.permutation(len(lengths))
    if drop_remainder:
        order = order[: len(order) // batch_size * batch_size]
    window = batch_size * _BATCHES_PER_WINDOW
    windows = [order[start : start + window] for start in range(0, len(order), window)]
    order = np.concatenate([rows[np.argsort(lengths[rows], kind="stable")] for rows in windows])
    batches = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
    return [batches[index] for index in random.permutation(len(batches))]


def best_windows(num_tokens: int, start: np.ndarray, count: np.ndarray) -> np.ndarray:
    """For each token of a text, the index of the window that shows most of its surroundings, int [num_tokens].

    A token's surroundings in a window are the smaller number of tokens before and after it, plus 0.01 for each token of
    the window; the first best window counts.

    Args:
        num_tokens: number of tokens of the text.
        start: index of the first token in each window, int.
        count: number of tokens in each window, int.

    References: `_check_is_max_context` in squad_utils.py of google-research/albert.
    """
    start, count, tokens = start[:, None], count[:, None], np.arange(num_tokens)
    before, after = tokens - start, start + count - 1 - tokens
    return np.where((before >= 0) & (after >= 0), np.minimum(before, after) + 0.01 * count, -1.0).argmax(axis=0)


def parts_of(rows: Iterable[_Row], text_of: Callable[[_Row], str]) -> Iterator[list[_Row]]:
    """Splits rows into lists to be tokenized at once, each of a limited number of rows and of characters."""
    part, characters = [], 0
    for row in rows:
        length = len(text_of(row))
        if part and (len(part) == _ROWS_AT_ONCE or characters + length > _CHARACTERS_AT_ONCE):
            yield part
            part, characters = [], 0
        part.append(row)
        characters += length
    if part:
        yield part


def encode_with_spans(tokenizer: "AlbertTokenizer", texts: Sequence[str]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Tokenizes texts of any length, without special ids.

    Returns:
        For each text its ids, int32 [T], and start and exclusive end of each in characters, int32 [T, 2].
    """
    ids_and_spans = []
    for first in range(0, len(texts), _LONG_TEXTS_AT_ONCE):
        inputs = tokenizer(texts[first : first + _LONG_TEXTS_AT_ONCE], max_length=_NO_LIMIT, return_offsets=True)
        for ids, mask, spans in zip(inputs["input_ids"], inputs["attention_mask"], inputs["offsets"]):
            end = int(mask.sum()) - 1
            ids_and_spans.append((ids[1:end].copy(), spans[1:end].copy()))
    return ids_and_spans


def encode_texts(
    tokenizer: "AlbertTokenizer",
    texts: Sequence[str],
    pairs: Sequence[str] | None,
    max_length: int,
    *,
    windows: bool = False,
    doc_stride: int | None = None,
    allow_special: bool = False,
) -> EncodedTexts:
    """Tokenizes texts or pairs of texts, and reports those that are cut or empty (see `text_counts`).

    Args:
        tokenizer: AlbertTokenizer.
        texts, pairs: the texts, and the second texts of pairs or None.
        max_length: maximum number of ids of an example; ids beyond are left out.
        windows: whether single texts that are longer are split into windows instead.
        doc_stride: distance in tokens of the starts of two windows, see `window_stride`.
        allow_special: as in a call of the tokenizer.
    """
    layout = BatchLayout(max_length, doc_stride=window_stride(max_length, doc_stride) if windows else None)
    columns = gather(_parts(tokenizer, texts, pairs, layout, allow_special))
    report_parts(
        columns.pop("counts"),
        cause=f"did not fit into {max_length} tokens, and their ends were left out; raise `max_length` as far as the "
        "model has positions, or set `windows` where single texts get labels or numbers",
    )
    encoded = EncodedTexts.take(columns, tokenizer, max_length)
    return replace(encoded, text=columns["text"]) if windows else encoded


def check_pairs(are_trained: bool | None, are_given: bool) -> None:
    """Raises ValueError for single texts if a model was trained on pairs, or the other way round; None: not known."""
    if are_trained is None or are_trained == are_given:
        return
    if are_trained:
        raise ValueError(
            "The classifier was trained on pairs of texts, but received single texts; give the second text of each as "
            "its pair (`--pair`)."
        )
    raise ValueError("The classifier was trained on single texts, but received pairs; leave out the second.")


def _parts(
    tokenizer: "AlbertTokenizer",
    texts: Sequence[str],
    pairs: Sequence[str] | None,
    layout: BatchLayout,
    allow_special: bool,
) -> Iterator[dict[str, np.ndarray]]:
    """Yields the ids of some texts at a time."""
    columns = [texts] if pairs is None else [texts, pairs]
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        part = slice(start, start + _TEXTS_AT_ONCE)
        ids = [tokenizer.encode_batch(column[part], allow_special=allow_special) for column in columns]
        lengths = [np.array([len(row) for row in rows], np.int64) for rows in ids]
        windows = choose_windows(lengths[0], None if pairs is None else lengths[1], layout)
        is_cut = layout.doc_stride is None and windows.first + windows.second < np.sum(lengths, axis=0)
        yield {
            **flat_rows(tokenizer, ids[0], None if pairs is None else ids[1], layout),
            "text": (start + windows.samples).astype(np.int32),
            "counts": counts_of(np.min(lengths, axis=0), is_cut),
        }


def flat_rows(
    tokenizer: "AlbertTokenizer",
    texts: Sequence[np.ndarray],
    pairs: Sequence[np.ndarray] | None,
    layout: BatchLayout,
) -> dict[str, np.ndarray]:
    """`ids`, int32, and `token_types`, int8, of all rows one after the other, and `lengths` of each, int32 [N].

    Args:
        tokenizer: AlbertTokenizer.
        texts, pairs: ids of the texts, and of the second texts of pairs or None.
        layout: see `build_inputs`, which makes the N rows.
    """
    names = ("pad", "unk", "cls", "sep", "mask")
    special = SpecialPieceIds(*(getattr(tokenizer, f"{name}_token_id") for name in names))
    inputs = build_inputs(TokenRows(texts), None if pairs is None else TokenRows(pairs), special, layout)
    mask = inputs["attention_mask"] == 1
    types = inputs["token_type_ids"][mask].astype(np.int8)
    return {"ids": inputs["input_ids"][mask], "token_types": types, "lengths": mask.sum(axis=1, dtype=np.int32)}
