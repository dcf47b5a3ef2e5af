"""Runs the work of `prepare` in this process or in worker processes; `beam` runs it on many machines.

A runner has two methods: `tokenize`, which reports the bytes that it has read, and `run`, which yields each item when
it is done. Results and their order do not depend on the runner.
"""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection
from pathlib import Path
from typing import Any, Self

from albert_tf.data.preparation.tokenized_cache import (
    PrepareContext,
    Report,
    append_to_cache,
    cache_folder,
    read_batches,
    split_by_shard,
    tokenize_batch,
    written_caches,
)

_context: Any = None  # of a worker process


def _start(context: Any) -> None:
    global _context
    _context = context
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    """Exits when the parent process does, even if it is killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)  # the main thread may be blocked by a lock or a pipe of the parent


def _call(function: Callable[..., Any], item: Any) -> Any:
    """Calls a function in a worker."""
    return function(_context, item)


class Workers:
    """A process pool for functions `(context, item) -> result`.

    Processes are spawned, so functions have to be importable, and contexts, items and results have to be picklable.

    Args:
        context: sent once to every process.
        num_processes: 1 calls the functions in this process.
    """

    def __init__(self, context: Any, num_processes: int):
        self.context = context
        self._num_processes = num_processes
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        if self._num_processes > 1:
            spawn = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self._num_processes, spawn, _start, (self.context,))
        return self

    def __exit__(self, *exception: object) -> None:
        if self._pool:
            self._pool.shutdown(cancel_futures=True)

    def map(self, function: Callable[[Any, Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Yields the results in the order of the items.

        Args:
            function: called with the context and an item.
            items: the items; a few are submitted ahead.

        Raises:
            RuntimeError: a worker process died.
        """
        if not self._pool:
            for item in items:
                yield function(self.context, item)
            return
        waiting: deque[Future[Any]] = deque()
        try:
            for item in items:
                waiting.append(self._submit(self._pool, function, item))
                if len(waiting) > 2 * self._num_processes:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            raise RuntimeError(
                f"One of {self._num_processes} worker processes died; it was killed or ran out of memory. Run the same "
                f"command again, with fewer processes if memory is short; finished shards are kept."
            ) from None

    def run(self, function: Callable[[Any, Any], object], items: Sequence[Any]) -> Iterator[Any]:
        """As `map`, but yields the items."""
        return (item for item, _ in zip(items, self.map(function, items)))

    def _submit(self, pool: ProcessPoolExecutor, function: Callable[..., Any], item: Any) -> Future:
        """Submits an item; a process that this starts inherits the signal mask and ignores Ctrl-C."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return pool.submit(_call, function, item)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class LocalRunner(Workers):
    """Runs the work in processes on this machine."""

    def __init__(self, context: PrepareContext):
        super().__init__(context, context.options.num_processes)

    def tokenize(self, files: list[Path], report: Report) -> None:
        """Tokenizes the corpus into the cache of each shard."""
        options = self.context.options
        with written_caches(self.context.workspace) as workspace:
            for batch in self.map(tokenize_batch, read_batches(files, options, report)):
                for shard, arrays in split_by_shard(batch, options.num_shards):
                    append_to_cache(cache_folder(workspace, shard), arrays)
