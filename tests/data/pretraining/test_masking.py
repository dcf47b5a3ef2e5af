"""Masking of many examples at once equals the rule written for one example in plain Python, and has its properties."""

import numpy as np
import pytest

from albert_tf.data.pretraining.masking import PERMUTED_ORDER_STREAM, apply_masking, permute, select_masked, word_order
from albert_tf.data.prng import fold_in
from tests.data.small_corpus import random_words


def words_of(starts, content):
    """Positions of each word of one example."""
    words = []
    for position in np.flatnonzero(content):
        if starts[position]:
            words.append([])
        words[-1].append(int(position))
    return words


def choose_plainly(words, budget, visits, taken=frozenset()):
    """The reference's rule for one example; `visits` are pairs of a word's number and an n-gram length."""
    chosen = set()
    for word, length in visits:
        if len(chosen) >= budget:
            break
        while length > 0:
            tokens = [token for part in words[word : word + length] for token in part]
            if len(chosen) + len(tokens) <= budget:
                break
            length -= 1
        if length > 0 and not (chosen | taken).intersection(tokens):
            chosen.update(tokens)
    return chosen


def check_rows(chosen, starts, content, budgets, order, taken=None):
    """Compares each row with the rule for one example."""
    for row, words in enumerate(map(words_of, starts, content)):
        visits = list(zip(order.words[row, : len(words)], order.lengths[row], strict=False))
        assert sorted(int(word) for word, _ in visits) == list(range(len(words)))
        others = frozenset() if taken is None else set(np.flatnonzero(taken[row]))
        assert set(np.flatnonzero(chosen[row])) == choose_plainly(words, budgets[row], visits, others)


@pytest.mark.parametrize(("ngram", "favor_shorter"), [(1, True), (3, True), (3, False), (5, False)])
@pytest.mark.parametrize("budget", [1, 7, 60])
def test_equals_the_rule_for_one_example(ngram, favor_shorter, budget):
    starts, content = random_words(seed=ngram * 100 + budget, rows=200, length=64)
    keys, budgets = fold_in(budget, np.arange(200)), np.full(200, budget)
    budgets[::3] = budget // 2 + 1
    chosen = select_masked(starts, content, budgets, keys, ngram=ngram, favor_shorter=favor_shorter)
    order = word_order(keys, (starts & content).sum(axis=1), ngram, favor_shorter)
    check_rows(chosen, starts, content, budgets, order)


def test_a_second_choice_leaves_out_what_is_taken():
    starts, content = random_words(seed=7, rows=200, length=64)
    keys, budgets = fold_in(3, np.arange(200)), np.full(200, 12)
    taken = select_masked(starts, content, budgets, keys)
    second = select_masked(starts, content, budgets, keys, taken=taken, stream=PERMUTED_ORDER_STREAM)
    assert not (taken & second).any()
    order = word_order(keys, (starts & content).sum(axis=1), 3, True, PERMUTED_ORDER_STREAM)
    check_rows(second, starts, content, budgets, order, taken)


def test_every_word_is_as_likely():
    # A budget of one token in rows of 20 single-token words: a draw of one word, evenly.
    content = np.ones((40_000, 20), bool)
    chosen = select_masked(content, content, np.ones(40_000, int), fold_in(2, np.arange(40_000)))
    counts = chosen.sum(axis=0)
    assert counts.sum() == 40_000
    assert ((counts - 2000) ** 2 / 2000).sum() < 52.4  # chi squared, 19 degrees of freedom, p = 0.0001


@pytest.mark.parametrize(("favor_shorter", "shares"), [(True, (6, 3, 2)), (False, (2, 3, 6))])
def test_shares_of_ngram_lengths(favor_shorter, shares):
    lengths = word_order(fold_in(3, np.arange(2000)), np.full(2000, 50), 3, favor_shorter).lengths
    for length, share in zip((1, 2, 3), np.array(shares) / 11, strict=True):
        assert abs((lengths == length).mean() - share) < 4 * np.sqrt(share * (1 - share) / lengths.size)


def test_corruption_shares_and_untouched_rest():
    ids = np.random.default_rng(0).integers(5, 1000, (500, 200)).astype(np.int32)
    chosen = np.random.default_rng(1).random(ids.shape) < 0.3
    corrupted = apply_masking(ids, chosen, fold_in(8, np.arange(500)), mask_token_id=4, vocab_size=1000)
    assert np.array_equal(corrupted[~chosen], ids[~chosen])
    before, after = ids[chosen], corrupted[chosen]
    share_error = 4 / np.sqrt(len(after))
    assert abs((after == 4).mean() - (0.8 + 0.1 / 1000)) < share_error * np.sqrt(0.16)
    assert abs((after == before).mean() - (0.1 + 0.1 / 1000)) < share_error * np.sqrt(0.09)
    random = after[(after != 4) & (after != before)]
    assert random.min() >= 0
    assert random.max() < 1000
    # Over the whole vocabulary, evenly: the special tokens come up as often as others.
    assert abs(random.mean() - 500) < 4 * 289 / np.sqrt(len(random))
    assert (random < 4).any()


def test_permuting_moves_the_chosen_tokens_among_their_places_and_every_order_is_as_likely():
    ids = np.tile(np.arange(5, 13, dtype=np.int32), (6000, 1))
    chosen = np.isin(np.arange(8), [1, 4, 6])
    permuted = permute(ids, np.tile(chosen, (6000, 1)), fold_in(4, np.arange(6000)))
    assert np.array_equal(permuted[:, ~chosen], ids[:, ~chosen])
    orders, counts = np.unique(permuted[:, chosen], axis=0, return_counts=True)
    assert orders.tolist() == [[6, 9, 11], [6, 11, 9], [9, 6, 11], [9, 11, 6], [11, 6, 9], [11, 9, 6]]
    assert ((counts - 1000) ** 2 / 1000).sum() < 25.7  # chi squared, 5 degrees of freedom, p = 0.0001
