"""Proves that lengths are padded to few, none beyond the limit, at a bounded cost."""

import pytest

from albert_tf.data.finetuning.few_shapes import padded_length, padded_lengths, power_of_two


@pytest.mark.parametrize(
    ("longest", "lengths"),
    [
        (512, (16, 32, 64, 96, 128, 192, 256, 384, 512)),
        (100, (16, 32, 64, 96, 100)),
        (1100, (16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1100)),
        (10, (10,)),
    ],
)
def test_lengths_are_few_and_none_is_beyond_the_limit(longest, lengths):
    assert padded_lengths(longest) == lengths
    for length in range(1, longest + 1):
        assert padded_length(length, longest) == next(each for each in lengths if each >= length)
        assert length <= 16 or padded_length(length, longest) < 2 * length


def test_powers_of_two():
    assert [power_of_two(count) for count in (1, 2, 3, 4, 5, 32, 33)] == [1, 2, 4, 4, 8, 32, 64]
