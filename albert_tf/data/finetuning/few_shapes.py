"""The few shapes that batches have where a program is compiled for each shape.

Letters: B batch, L sequence.
"""

_SHORTEST = 16


def padded_length(length: int, longest: int = 1 << 30) -> int:
    """The length that rows of up to `length` tokens are padded to: 16, 32, 64, 96, 128, 192, 256, 384, 512, ...

    Batches of 32 texts of similar length then have 1.2 times as many tokens with padding as without where texts are
    long (SQuAD, RACE, 10 to 128 tokens), 1.3 to 1.5 where they are short (MRPC, RTE, STS-B), in 2 to 6 shapes. More
    lengths below 64 would save no time on a GPU, which such batches do not fill.

    Args:
        length: at least 1.
        longest: of the model or its settings; nothing is padded above it.

    Example:

    >>> [padded_length(length, longest=200) for length in (5, 33, 65, 97, 129, 193)]
    [16, 64, 96, 128, 192, 200]
    """
    power = max(_SHORTEST, power_of_two(length))
    between = power * 3 // 4
    return min(between if power > 64 and length <= between else power, longest)


def padded_lengths(longest: int) -> tuple[int, ...]:
    """All values of `padded_length`, in ascending order."""
    return tuple(sorted({padded_length(length, longest) for length in range(1, longest + 1)}))


def power_of_two(count: int) -> int:
    """The smallest power of two that is not below a count of at least 1, such as that of rows: 1, 2, 4, 8, ..."""
    return 1 << max(0, count - 1).bit_length()
