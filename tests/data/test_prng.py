"""Draws are SplitMix64's, even, and independent of what else is drawn."""

import numpy as np

from albert_tf.data.prng import bernoulli, fold_in, random_bits, uniform_int, uniform_int_low


def test_published_sequence_of_splitmix64():
    # The first outputs of the generator seeded with 1234567, as its author's C code prints them.
    expected = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert random_bits(1234567, np.arange(5)).tolist() == expected


def test_a_draw_does_not_depend_on_its_neighbours():
    keys = fold_in(7, np.arange(1000))
    together = random_bits(keys[:, None], np.arange(50))
    assert together[123, 45] == random_bits(keys[123], 45)


def test_draws_are_even_and_uncorrelated():
    bits = random_bits(fold_in(1, np.arange(100_000)), 0)
    for values in (uniform_int(bits, 10), uniform_int_low(bits, 10)):
        counts = np.bincount(values, minlength=10)
        assert ((counts - 10_000) ** 2 / 10_000).sum() < 33.7  # chi squared, 9 degrees of freedom, p = 0.0001
    assert abs(np.corrcoef(uniform_int(bits, 1000), uniform_int_low(bits, 1000))[0, 1]) < 0.0127  # 4 standard errors
    assert abs(bernoulli(bits, 0.15).mean() - 0.15) < 4 * np.sqrt(0.15 * 0.85 / 100_000)


def test_children_of_neighbouring_keys_and_values_differ():
    keys = fold_in(np.arange(300)[:, None], np.arange(300))
    assert len(np.unique(keys)) == 300 * 300
