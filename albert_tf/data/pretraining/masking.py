"""N-gram whole-word masking of a batch of examples.

Every example visits its words in a random order of its own; the loop runs over the visits, each for the whole batch.

Letters: B batch, L sequence, W words.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from albert_tf.data.prng import Keys, bernoulli, fold_in, random_bits, uniform_int_low

ORDER_STREAM = 100
CORRUPT_STREAM = 101
PERMUTED_ORDER_STREAM = 102
PERMUTE_STREAM = 103
_LOW_16 = np.uint64(0xFFFF)

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class WordOrder:
    """The word that each visit starts at, and the n-gram length drawn for it, both [B, W]."""

    words: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]


def ngram_bounds(ngram: int, favor_shorter: bool) -> npt.NDArray[np.int64]:
    """Returns the cumulative probabilities of the n-gram lengths 1 to ngram - 1, in units of 2**-16.

    Example:

    >>> (ngram_bounds(3, favor_shorter=True) / 65536).round(3).tolist()  # 6/11, 9/11
    [0.545, 0.818]
    """
    weights = 1.0 / np.arange(1, ngram + 1)
    weights = weights if favor_shorter else weights[::-1]
    return np.rint(np.cumsum(weights / weights.sum())[:-1] * 2**16).astype(np.int64)


def word_order(
    keys: Keys, words: npt.NDArray[np.int64], ngram: int, favor_shorter: bool, stream: int = ORDER_STREAM
) -> WordOrder:
    """Draws the order of the words and their n-gram lengths; for the arguments see `select_masked`.

    Returns:
        WordOrder, whose row b starts with a permutation of `words[b]` words.
    """
    indices = np.arange(int(words.max(initial=0)), dtype=np.uint64)
    # 32 random bits to sort by, 16 random bits for the length, 16 bits for the index of the word.
    bits = random_bits(fold_in(keys, stream)[:, None], indices)  # [B, W]
    bits = (bits & ~_LOW_16) | indices
    bits[indices >= words[:, None].astype(np.uint64)] = np.iinfo(np.uint64).max
    bits.sort(axis=1)
    fractions = ((bits >> np.uint64(16)) & _LOW_16).astype(np.int64)
    lengths = np.ones(bits.shape, np.int64)
    for bound in ngram_bounds(ngram, favor_shorter):
        lengths += fractions >= bound
    return WordOrder((bits & _LOW_16).astype(np.int64), lengths)


def select_masked(
    starts: Bools,
    content: Bools,
    budgets: npt.NDArray[np.int64],
    keys: Keys,
    *,
    ngram: int = 3,
    favor_shorter: bool = True,
    taken: Bools | None = None,
    stream: int = ORDER_STREAM,
) -> Bools:
    """Selects the tokens to predict.

    Words are visited in random order. At each visit an n-gram length is drawn; the n-gram that starts at the word is
    shortened until it fits the remaining budget, and skipped if it does not fit or a word of it is already selected.

    Args:
        starts: bool [B, L], True where a word starts.
        content: bool [B, L], True where a token may be selected (no special token, no padding); each maximal run of
            content begins with a start.
        budgets: int64 [B], number of tokens to select.
        keys: uint64 [B], random key of each example.
        ngram: maximum n-gram length, in words; length n has probability proportional to 1 / n.
        favor_shorter: False reverses these probabilities.
        taken: bool [B, L], whole words that may not be selected, or None.
        stream: random stream of the keys; a second selection needs another one.

    Returns:
        bool [B, L], True at the selected tokens: whole words, never more than the budget.

    References: `create_pretraining_data.py`, create_masked_lm_predictions.
    """
    word_of_token = np.cumsum(starts, axis=1, dtype=np.int32) - 1  # [B, L]
    words = word_of_token[:, -1].astype(np.int64) + 1
    first_token = _first_tokens(starts, content, word_of_token, int(words.max(initial=0)) + ngram)
    order = word_order(keys, words, ngram, favor_shorter, stream)
    if taken is None:
        taken = np.zeros_like(content)
    taken_words = np.zeros(first_token.shape, np.bool_)
    rows, positions = np.nonzero(taken)
    taken_words[rows, word_of_token[rows, positions]] = True
    chosen_words = _select_words(order, words, first_token, budgets, taken_words)
    return np.take_along_axis(chosen_words, np.maximum(word_of_token, 0), axis=1) & content & ~taken


def _first_tokens(starts: Bools, content: Bools, word_of_token: npt.NDArray[np.int32], columns: int) -> npt.NDArray:
    """Returns int32 [B, columns]: the number of content tokens before each word; after the last word, of all."""
    counts = np.cumsum(content, axis=1, dtype=np.int32)  # [B, L]
    first_token = np.repeat(counts[:, -1:], columns, axis=1)
    rows, positions = np.nonzero(starts)
    first_token[rows, word_of_token[rows, positions]] = counts[rows, positions] - 1
    return first_token


def _select_words(
    order: WordOrder, words: npt.NDArray, first_token: npt.NDArray, budgets: npt.NDArray, taken_words: Bools
) -> Bools:
    """Visits the words of all examples in their orders; returns the selected and taken ones, bool [B, W + ngram]."""
    stride = first_token.shape[1]
    ngram = stride - order.words.shape[1]
    first_token, chosen = first_token.ravel(), taken_words.ravel()
    rows, left = np.arange(len(words)), budgets.astype(np.int64)
    for visit in range(order.words.shape[1]):
        going = (left > 0) & (visit < words[rows])
        if not going.all():
            rows, left = rows[going], left[going]
        if not len(rows):
            break
        words_visited = order.words[rows, visit] + rows * stride  # indices into the flat arrays
        lengths, taken = order.lengths[rows, visit], np.zeros(len(rows), np.int64)
        free, before, fitting = np.ones(len(rows), np.bool_), first_token[words_visited], []
        for n in range(1, ngram + 1):
            tokens = first_token[words_visited + n] - before
            fits = (n <= lengths) & (tokens <= left)
            free &= ~(fits & chosen[words_visited + n - 1])
            np.copyto(taken, tokens, where=fits)
            fitting.append(fits)
        for n, fits in enumerate(fitting):
            chosen[words_visited[fits & free] + n] = True
        left = left - taken * free
    return chosen.reshape(-1, stride)


def apply_masking(
    ids: npt.NDArray[np.int32], chosen: Bools, keys: Keys, *, mask_token_id: int, vocab_size: int
) -> npt.NDArray[np.int32]:
    """Replaces 80 % of the chosen tokens by [MASK] and 10 % by random tokens, and keeps 10 %, drawn per token.

    Random tokens come from the whole vocabulary, including special tokens, as in the reference.

    Args:
        ids: int32 [B, L].
        chosen: bool [B, L], the tokens to predict.
        keys: uint64 [B], random key of each example.
        mask_token_id: id of [MASK].
        vocab_size: number of tokens in the vocabulary.

    Returns:
        int32 [B, L], the model's input.
    """
    rows, positions = np.nonzero(chosen)
    bits = random_bits(fold_in(keys, CORRUPT_STREAM)[rows], positions)
    replaced = np.where(bernoulli(bits, 0.9), ids[rows, positions], uniform_int_low(bits, vocab_size))
    corrupted = ids.copy()
    corrupted[rows, positions] = np.where(bernoulli(bits, 0.8), mask_token_id, replaced)
    return corrupted


def permute(ids: npt.NDArray[np.int32], chosen: Bools, keys: Keys) -> npt.NDArray[np.int32]:
    """Shuffles the chosen tokens of each example among their positions; for the arguments see `apply_masking`."""
    rows, positions = np.nonzero(chosen)
    bits = random_bits(fold_in(keys, PERMUTE_STREAM)[rows], positions)
    sources = positions[np.lexsort((bits, rows))]
    permuted = ids.copy()
    permuted[rows, positions] = ids[rows, sources]
    return permuted
