"""Seeds of weights and of dropout, which only the layers that are made next determine."""

import contextlib
import random
from collections.abc import Iterator
from typing import Any

_generator: Any = random  # Python's, which `keras.utils.set_random_seed` seeds


def next_seed() -> int:
    """A seed as Keras draws them."""
    return _generator.randint(1, 10**9)


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draws the seeds of the layers that are made in the block from a generator of their own.

    They are those that follow `keras.utils.set_random_seed`, but do not depend on what else draws from Python's
    generator, such as libraries for buckets, in threads of theirs, when a server is busy.
    """
    global _generator
    before, _generator = _generator, random.Random(seed)
    try:
        yield
    finally:
        _generator = before
