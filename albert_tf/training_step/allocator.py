"""How the C library handles the large buffers of a step."""

import ctypes
import functools
import sys
from collections.abc import Callable

# Parameters of mallopt(3) and their values: those at which glibc's own adjustment ends.
_MMAP_THRESHOLD, _TRIM_THRESHOLD = (-3, 32 << 20), (-1, 64 << 20)


def reuse_large_buffers() -> bool:
    """Lets glibc reuse buffers of up to 32 MiB; returns whether it does. Takes a microsecond.

    Under Python 3.11, the first batch of a `tf.data.Dataset.from_generator` makes TensorFlow 2.21 set glibc's
    M_TRIM_THRESHOLD to 128 KiB, which also stops the adjustment of M_MMAP_THRESHOLD. From then on each buffer of a step
    is mapped, filled with zeros and unmapped again, which takes up to half of the step.
    """
    mallopt = _mallopt()
    return mallopt is not None and all(mallopt(*setting) == 1 for setting in (_MMAP_THRESHOLD, _TRIM_THRESHOLD))


@functools.cache
def _mallopt() -> Callable[[int, int], int] | None:
    return getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None  # musl has none
