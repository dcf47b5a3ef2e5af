"""Random numbers that are pure functions of a key and a counter.

There is no generator whose state passes from one draw to the next, so an example is the same whichever process makes
it, in whatever order, alone or among a thousand others.

SplitMix64's finaliser and not `numpy.random.Philox`: it needs only uint64 multiply, xor and shift, so one call draws
for many examples with different keys (Philox objects have one key each), and TensorFlow has the same operations.
"""

import numpy as np
import numpy.typing as npt

GAMMA = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)
_HALF = np.uint64(32)
_LOW_HALF = np.uint64(0xFFFFFFFF)

Keys = npt.NDArray[np.uint64]


def splitmix64(values: npt.ArrayLike) -> Keys:
    """Returns a bijective hash of each 64-bit value: SplitMix64's finaliser.

    Example:

    >>> hex(splitmix64(0x9E3779B97F4A7C15)[()])
    '0xe220a8397b1dcdaf'

    References: G. Steele, D. Lea, C. Flood, Fast Splittable Pseudorandom Number Generators, 2014.
    """
    mixed = np.array(values, dtype=np.uint64)
    with np.errstate(over="ignore"):
        mixed ^= mixed >> np.uint64(30)
        mixed *= FIRST
        mixed ^= mixed >> np.uint64(27)
        mixed *= SECOND
        mixed ^= mixed >> np.uint64(31)
    return mixed


def fold_in(keys: npt.ArrayLike, values: npt.ArrayLike) -> Keys:
    """Returns keys that depend on both `keys` and `values` (non-negative integers), broadcast against each other.

    Example:

    >>> bool((fold_in(1, [0, 1]) != fold_in(2, [0, 1])).all())
    True
    """
    return splitmix64(np.asarray(keys, dtype=np.uint64) ^ random_bits(np.uint64(0), values))


def random_bits(keys: npt.ArrayLike, counters: npt.ArrayLike) -> Keys:
    """Returns 64 random bits for each pair of key and counter, broadcast against each other."""
    with np.errstate(over="ignore"):
        return splitmix64(
            np.asarray(keys, dtype=np.uint64) + (np.asarray(counters, dtype=np.uint64) + np.uint64(1)) * GAMMA
        )


def uniform_int(bits: Keys, bounds: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Returns integers in [0, bound) from the upper 32 bits of `bits`; bounds are below 2**32.

    Example:

    >>> uniform_int(np.array([0, 2**63, 2**64 - 1], dtype=np.uint64), 10).tolist()
    [0, 5, 9]
    """
    return (((bits >> _HALF) * np.asarray(bounds, dtype=np.uint64)) >> _HALF).astype(np.int64)


def uniform_int_low(bits: Keys, bounds: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Returns integers in [0, bound) from the lower 32 bits, so that one draw can serve two independent choices."""
    return (((bits & _LOW_HALF) * np.asarray(bounds, dtype=np.uint64)) >> _HALF).astype(np.int64)


def bernoulli(bits: Keys, probability: float) -> npt.NDArray[np.bool_]:
    """Returns where an event of this probability happens, from the upper 32 bits of `bits`."""
    return (bits >> _HALF).astype(np.float64) < probability * 2.0**32
