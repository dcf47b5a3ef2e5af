"""What writing to a full disk is like."""

import contextlib
import resource
from collections.abc import Iterator


@contextlib.contextmanager
def full_disk(limit: int) -> Iterator[None]:
    """No file may grow beyond so many bytes: the system refuses to write more, as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
