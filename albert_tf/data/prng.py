"""Counter-based random numbers: pure functions of a key and a counter.

No generator carries state from one draw to the next, so an example does not depend on which process makes it, in which
order or batch.

SplitMix64's finalizer is used rather than `numpy.random.Philox`, whose objects have one key each: here a single
vectorized call draws for many examples with different keys.
"""

import numpy as np
import numpy.typing as npt

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_LOW_HALF = np.uint64(0xFFFFFFFF)

Keys = npt.NDArray[np.uint64]


def splitmix64(values: npt.ArrayLike) -> Keys:
    """Returns SplitMix64's finalizer, a bijective hash, of each 64-bit value.

    Example:

    >>> hex(splitmix64(0x9E3779B97F4A7C15)[()])
    '0xe220a8397b1dcdaf'

    References: G. Steele, D. Lea, C. Flood, Fast Splittable Pseudorandom Number Generators, 2014.
    """
    mixed = np.array(values, dtype=np.uint64)
    with np.errstate(over="ignore"):
        mixed ^= mixed >> np.uint64(30)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(27)
        mixed *= np.uint64(0x94D049BB133111EB)
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
    keys, counters = np.asarray(keys, dtype=np.uint64), np.asarray(counters, dtype=np.uint64)
    with np.errstate(over="ignore"):
        return splitmix64(keys + (counters + np.uint64(1)) * _GAMMA)


def uniform_int(bits: Keys, bounds: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Returns uniform integers in [0, bound), bound < 2**32, from the upper 32 bits of `bits`.

    Example:

    >>> uniform_int(np.array([0, 2**63, 2**64 - 1], dtype=np.uint64), 10).tolist()
    [0, 5, 9]
    """
    return (((bits >> _HALF) * np.asarray(bounds, dtype=np.uint64)) >> _HALF).astype(np.int64)


def uniform_int_low(bits: Keys, bounds: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """As `uniform_int`, from the lower 32 bits: one draw serves two independent choices."""
    return (((bits & _LOW_HALF) * np.asarray(bounds, dtype=np.uint64)) >> _HALF).astype(np.int64)


def bernoulli(bits: Keys, probability: float) -> npt.NDArray[np.bool_]:
    """Returns True with the given probability, from the upper 32 bits of `bits`."""
    return (bits >> _HALF).astype(np.float64) < probability * 2.0**32
