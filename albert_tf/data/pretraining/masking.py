"""N-gram whole-word masking of many examples at once.

Every example visits its words in its own random order; the loop runs over places in that order and handles all examples
of the batch in each round, so its cost per example is a few dozen array elements a round.
`tests/data/test_masking.py` holds the same rule written for one example in plain Python, with the same draws.

Letters: B batch, L sequence, W words.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from albert_tf.data.prng import bernoulli, fold_in, random_bits, uniform_int_low

ORDER_STREAM = 100
CORRUPT_STREAM = 101
PERMUTED_ORDER_STREAM = 102
PERMUTE_STREAM = 103
_PLACES = np.uint64(0xFFFF)

Bools = npt.NDArray[np.bool_]
Keys = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class WordOrder:
    """In which order an example's words are visited and how long an n-gram each visit asks for, both [B, W]."""

    words: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]


def ngram_bounds(ngram: int, favor_shorter: bool) -> npt.NDArray[np.int64]:
    """Returns the upper bounds, in 1/65536, of the n-gram lengths 1 .. ngram - 1.

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
    """Draws the order of the words and their n-gram lengths.

    Args:
        keys: uint64 [B], one key an example.
        words: int64 [B], number of words in each example.
        ngram: longest n-gram.
        favor_shorter: whether shorter n-grams are likelier.
        stream: which of the keys' draws to use.

    Returns:
        WordOrder, whose row b begins with a permutation of `words[b]` words.
    """
    places = np.arange(int(words.max(initial=0)), dtype=np.uint64)
    # One sort does both: 32 random bits to sort by, 16 for the length, 16 for the word's number.
    bits = random_bits(fold_in(keys, stream)[:, None], places)  # [B, W]
    bits = (bits & ~_PLACES) | places
    bits[places >= words[:, None].astype(np.uint64)] = np.iinfo(np.uint64).max
    bits.sort(axis=1)
    fractions = ((bits >> np.uint64(16)) & _PLACES).astype(np.int64)
    lengths = np.ones(bits.shape, np.int64)
    for bound in ngram_bounds(ngram, favor_shorter):
        lengths += fractions >= bound
    return WordOrder((bits & _PLACES).astype(np.int64), lengths)


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
    """Chooses the tokens to predict.

    Words are visited in random order. At each visit an n-gram length is drawn; the n-gram that starts at the word is
    shortened until it fits what is left of the budget, and passed over if it does not fit or a part is chosen already.

    Args:
        starts: bool [B, L], True where a word starts.
        content: bool [B, L], True where a token may be chosen (no special token, no padding); each maximal run of
            content begins with a start.
        budgets: int64 [B], how many tokens to choose.
        keys: uint64 [B], one key an example.
        ngram: longest n-gram, in words; n-gram lengths n have probability proportional to 1 / n.
        favor_shorter: False reverses those probabilities.
        taken: bool [B, L], whole words that may not be chosen, or None.
        stream: which of the keys' draws to use; a second choice needs another one.

    Returns:
        bool [B, L], True at the chosen tokens: whole words, never more than the budget.

    References: `create_pretraining_data.py`, create_masked_lm_predictions.
    """
    word_of_token = np.cumsum(starts, axis=1, dtype=np.int32) - 1  # [B, L]
    words = word_of_token[:, -1].astype(np.int64) + 1
    first_token = _first_tokens(starts, content, word_of_token, int(words.max(initial=0)) + ngram)
    order = word_order(keys, words, ngram, favor_shorter, stream)
    if taken is None:
        taken = np.zeros_like(content)
    taken_words = np.zeros(first_token.shape, np.bool_)
    rows, places = np.nonzero(taken)
    taken_words[rows, word_of_token[rows, places]] = True
    chosen_words = _select_words(order, words, first_token, budgets, taken_words)
    return np.take_along_axis(chosen_words, np.maximum(word_of_token, 0), axis=1) & content & ~taken


def _first_tokens(starts: Bools, content: Bools, word_of_token: npt.NDArray[np.int32], columns: int) -> npt.NDArray:
    """Returns [B, columns]: how many content tokens stand before each word; past the last word, all of them."""
    counts = np.cumsum(content, axis=1, dtype=np.int32)  # [B, L]
    first_token = np.repeat(counts[:, -1:], columns, axis=1)
    rows, places = np.nonzero(starts)
    first_token[rows, word_of_token[rows, places]] = counts[rows, places] - 1
    return first_token


def _select_words(
    order: WordOrder, words: npt.NDArray, first_token: npt.NDArray, budgets: npt.NDArray, taken_words: Bools
) -> Bools:
    """Visits the words of all examples in their orders; returns which are chosen or taken, [B, W + ngram]."""
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
        places = order.words[rows, visit] + rows * stride
        lengths, taken = order.lengths[rows, visit], np.zeros(len(rows), np.int64)
        free, before, fitting = np.ones(len(rows), np.bool_), first_token[places], []
        for n in range(1, ngram + 1):
            tokens = first_token[places + n] - before
            fits = (n <= lengths) & (tokens <= left)
            free &= ~(fits & chosen[places + n - 1])
            np.copyto(taken, tokens, where=fits)
            fitting.append(fits)
        for n, fits in enumerate(fitting):
            chosen[places[fits & free] + n] = True
        left = left - taken * free
    return chosen.reshape(-1, stride)


def apply_masking(
    ids: npt.NDArray[np.int32], chosen: Bools, keys: Keys, *, mask_token_id: int, vocab_size: int
) -> npt.NDArray[np.int32]:
    """Replaces chosen tokens: 80 % by the mask, 10 % by a random token, 10 % not at all, each token by itself.

    Random tokens come from the whole vocabulary, special tokens included, as in the reference.

    Args:
        ids: int32 [B, L].
        chosen: bool [B, L], the tokens to predict.
        keys: uint64 [B], one key an example.
        mask_token_id: id of [MASK].
        vocab_size: V.

    Returns:
        int32 [B, L], the ids that the model sees.
    """
    rows, places = np.nonzero(chosen)
    bits = random_bits(fold_in(keys, CORRUPT_STREAM)[rows], places)
    replaced = np.where(bernoulli(bits, 0.9), ids[rows, places], uniform_int_low(bits, vocab_size))
    corrupted = ids.copy()
    corrupted[rows, places] = np.where(bernoulli(bits, 0.8), mask_token_id, replaced)
    return corrupted


def permute(ids: npt.NDArray[np.int32], chosen: Bools, keys: Keys) -> npt.NDArray[np.int32]:
    """Puts the chosen tokens of each example in random order, in the same places.

    Args:
        ids: int32 [B, L].
        chosen: bool [B, L].
        keys: uint64 [B], one key an example.

    Returns:
        int32 [B, L].
    """
    rows, places = np.nonzero(chosen)
    bits = random_bits(fold_in(keys, PERMUTE_STREAM)[rows], places)
    sources = places[np.lexsort((bits, rows))]
    permuted = ids.copy()
    permuted[rows, places] = ids[rows, sources]
    return permuted
