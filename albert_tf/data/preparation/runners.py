"""Who does the work of `prepare`: this process or worker processes, with the same results in the same order.

`beam` has the runner for many machines.
"""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection
from pathlib import Path
from queue import Empty
from typing import Any, Generic, Protocol, Self, TypeVar

from albert_tf.data.preparation.tokenized_cache import (
    PrepareContext,
    Report,
    append_to_cache,
    cache_folder,
    read_batches,
    split_by_shard,
    tokenize_batch,
)

Context = TypeVar("Context")
Item = TypeVar("Item")
Result = TypeVar("Result")

_POLL_SECONDS = 0.2
# What a worker process holds from its start to its end: the context, and the function that reports progress.
_state: dict[str, Any] = {}


def _start(context: Any, queue: Any) -> None:
    _state.update(context=context, report=queue.put)
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    """Ends this process when its parent does, even by SIGKILL, which leaves the parent no time to end its workers."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)  # the main thread may be waiting for a lock or a pipe that nobody serves any more


def _call(function: Callable[..., Any], item: Any) -> Any:
    """Returns the function's result and how often it reported."""
    amounts = 0

    def report(amount: int) -> None:
        nonlocal amounts
        amounts += 1
        _state["report"](amount)

    return function(_state["context"], item, report), amounts


class Workers(Generic[Context]):
    """A pool for functions `(context, item, report) -> result`.

    Processes are spawned, not forked, so it works on every system and beside threads; functions are module-level ones,
    contexts, items and results can be pickled.

    Args:
        context: sent once to every process.
        num_processes: 1 calls the functions in this process.
    """

    def __init__(self, context: Context, num_processes: int):
        self.context = context
        self._num_processes = num_processes
        self._pool: ProcessPoolExecutor | None = None
        self._missing_reports = 0

    def __enter__(self) -> Self:
        if self._num_processes > 1:
            spawn = multiprocessing.get_context("spawn")
            self._queue = spawn.Queue()
            self._pool = ProcessPoolExecutor(self._num_processes, spawn, _start, (self.context, self._queue))
        return self

    def __exit__(self, *exception: object) -> None:
        if self._pool:
            self._pool.shutdown(cancel_futures=True)

    def map(
        self, function: Callable[[Context, Item, Report], Result], items: Iterable[Item], report: Report
    ) -> Iterator[Result]:
        """Yields the result of each item in the order of the items, which are taken a few ahead.

        Args:
            function: called with the context, an item, and a function that it may call with an amount of work done.
            items: what to work on.
            report: receives those amounts, in this process.

        Raises:
            RuntimeError: a worker process died.
        """
        if not self._pool:
            for item in items:
                yield function(self.context, item, report)
            return
        waiting: deque[Future[tuple[Result, int]]] = deque()
        try:
            for item in items:
                waiting.append(self._submit(self._pool, function, item))
                if len(waiting) > 2 * self._num_processes:
                    yield self._result(waiting.popleft(), report)
            while waiting:
                yield self._result(waiting.popleft(), report)
        except BrokenProcessPool:
            raise RuntimeError(
                f"Worker processes must run to their end. "
                f"Received: one of {self._num_processes} died, killed or out of memory. "
                f"Run the same command again, with fewer processes if memory is short; finished shards are kept."
            ) from None
        # Reports travel on a thread of their own and may come after the result.
        while self._missing_reports > 0:
            self._receive(report, block=True)

    def run(self, function: Callable[[Context, Item, Report], object], items: Iterable[Item], report: Report) -> None:
        """Calls the function for what it does; otherwise like `map`."""
        deque(self.map(function, items, report), maxlen=0)

    def _submit(self, pool: ProcessPoolExecutor, function: Callable[..., Any], item: Any) -> Future:
        """Starts a worker process if one more is needed; it inherits that Ctrl-C is for this process alone."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return pool.submit(_call, function, item)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _result(self, future: "Future[tuple[Result, int]]", report: Report) -> Result:
        while not future.done():
            wait([future], timeout=_POLL_SECONDS)
            while self._receive(report, block=False):
                continue
        result, amounts = future.result()
        self._missing_reports += amounts
        return result

    def _receive(self, report: Report, block: bool) -> bool:
        """Passes one report on; returns whether there was one."""
        try:
            amount = self._queue.get(block)
        except Empty:
            return False
        self._missing_reports -= 1
        report(amount)
        return True


class Runner(Protocol):
    """Who does the work: processes of this machine, or Apache Beam."""

    def tokenize(self, files: list[Path], report: Report) -> None:
        """Tokenises the corpus into the cache of each shard."""
        ...

    def run(self, function: Callable[[PrepareContext, int, Report], object], items: list[int], report: Report) -> None:
        """Calls the function for every item, in any order."""
        ...


class LocalRunner(Workers[PrepareContext]):
    """Does the work in processes of this machine."""

    def __init__(self, context: PrepareContext):
        super().__init__(context, context.options.num_processes)

    def tokenize(self, files: list[Path], report: Report) -> None:
        """Tokenises the corpus into the cache of each shard."""
        options = self.context.options
        for batch in self.map(tokenize_batch, read_batches(files, options, report), report):
            for shard, arrays in split_by_shard(batch, options.num_shards):
                append_to_cache(cache_folder(self.context.workspace, shard), arrays)
