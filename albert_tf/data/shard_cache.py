"""Copies of remote shards on disk: those that are read now or next, and of others as many as a limit allows."""

import contextlib
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from albert_tf.files.urls import download, is_remote, location, place_of_copy

LIMIT_VARIABLE = "ALBERT_TF_CACHE_BYTES"
_DEFAULT_LIMIT = 10 * 2**30


@dataclass
class _Copy:
    """A shard that is being copied, or was.

    Attributes:
        readers: number of those that have taken it and not returned it.
        is_ahead: whether one of them has only announced to take it.
    """

    file: Path
    size: int = 0
    readers: int = 0
    is_ahead: bool = False
    copying: threading.Lock = field(default_factory=threading.Lock)


class ShardCache:
    """Copies of shards by URL.

    What is taken is kept until it is returned, whatever the limit; of the rest, what was returned first goes first.

    Args:
        limit: bytes of all copies. None: `ALBERT_TF_CACHE_BYTES` of the environment, else 10 GiB.

    Attributes:
        failure: the error of the last shard that could not be copied, because tf.data passes only its text on.
        largest: bytes of all copies at their most.
    """

    def __init__(self, limit: int | None = None):
        self.limit = limit
        self.failure: ValueError | None = None
        self.largest = 0
        self._copies: dict[str, _Copy] = {}  # in the order in which they were returned
        self._lock = threading.RLock()

    def take(self, url: str, is_ahead: bool = False) -> Path:
        """Copies a shard unless it is there; with `is_ahead`, for one who will take it without being counted again.

        Raises:
            ValueError: it cannot be read.
        """
        remote = location(url)
        with self._lock:
            copy = self._copies.setdefault(url, _Copy(place_of_copy(remote, "shards")))
            copy.readers += 0 if copy.is_ahead else 1
            copy.is_ahead = is_ahead
        try:
            self.limit = _limit() if self.limit is None else self.limit
            with copy.copying:
                if not copy.size:
                    copy.file.parent.mkdir(parents=True, exist_ok=True)
                    download(remote, copy.file)
                    copy.size = copy.file.stat().st_size
        except ValueError as error:
            self.failure = error
            self.give_back(url)
            raise
        self._trim()
        return copy.file

    def give_back(self, url: str) -> None:
        """Says that a shard was read."""
        with self._lock:
            copy = self._copies.pop(url)
            copy.readers -= 1
            self._copies[url] = copy  # now the last one to go
        self._trim()

    @contextlib.contextmanager
    def lent(self, path: Path) -> Iterator[Path]:
        """A shard on disk for the time of the block: its copy, or the path itself if it is no URL."""
        if not is_remote(path):
            yield path
            return
        copy = self.take(str(path))
        try:
            yield copy
        finally:
            self.give_back(str(path))

    def _trim(self) -> None:
        with self._lock:
            total = sum(copy.size for copy in self._copies.values())
            for url in [url for url, copy in self._copies.items() if copy.readers <= 0 and copy.size]:
                if total <= (self.limit or 0):
                    break
                copy = self._copies.pop(url)
                total -= copy.size
                copy.file.unlink(missing_ok=True)
            self.largest = max(self.largest, total)


def _limit() -> int:
    text = os.environ.get(LIMIT_VARIABLE, str(_DEFAULT_LIMIT))
    if not text.isdecimal():
        raise ValueError(f"{LIMIT_VARIABLE} must be a number of bytes. Received: {text!r}; correct it, or unset it.")
    return int(text)


SHARDS = ShardCache()
