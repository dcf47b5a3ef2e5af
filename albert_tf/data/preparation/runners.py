"""Runs the work of `prepare` in this process or in worker processes; `beam` runs it on many machines.

A runner has two methods: `tokenize` and `run`. Results and their order do not depend on the runner.
"""

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection
from pathlib import Path
from queue import Empty
from typing import Any, Generic, Self, TypeVar

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

Context = TypeVar("Context")
Item = TypeVar("Item")
Result = TypeVar("Result")

_POLL_SECONDS = 0.2
_PR_SET_PDEATHSIG = 1  # of Linux's `prctl`
# State of a worker process: the context and the function that reports progress.
_state: dict[str, Any] = {}


def _start(context: Any, queue: Any) -> None:
    _state.update(context=context, report=queue.put)
    if sys.platform == "linux":  # the thread below cannot run while native code holds the interpreter's lock
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    """Exits when the parent process does, even if it is killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)  # the main thread may be blocked by a lock or a pipe of the parent


def _call(function: Callable[..., Any], item: Any) -> Any:
    """Calls a function in a worker; returns its result and the number of its reports."""
    count = 0

    def report(amount: int) -> None:
        nonlocal count
        count += 1
        _state["report"](amount)

    return function(_state["context"], item, report), count


class Workers(Generic[Context]):
    """A process pool for functions `(context, item, report) -> result`.

    Processes are spawned, so functions have to be importable, and contexts, items and results have to be picklable.

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
        """Yields the results in the order of the items.

        Args:
            function: called with the context, an item, and a function that reports amounts of work.
            items: the items; a few are submitted ahead.
            report: receives the amounts, in this process.

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
                f"One of {self._num_processes} worker processes died; it was killed or ran out of memory. Run the same "
                f"command again, with fewer processes if memory is short; finished shards are kept."
            ) from None
        # Reports are sent by another thread and may arrive after the result.
        while self._missing_reports > 0:
            self._receive(report, block=True)

    def run(self, function: Callable[[Context, Item, Report], object], items: Iterable[Item], report: Report) -> None:
        """As `map`, without results."""
        deque(self.map(function, items, report), maxlen=0)

    def _submit(self, pool: ProcessPoolExecutor, function: Callable[..., Any], item: Any) -> Future:
        """Submits an item; a process that this starts inherits the signal mask and ignores Ctrl-C."""
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
        result, count = future.result()
        self._missing_reports += count
        return result

    def _receive(self, report: Report, block: bool) -> bool:
        """Forwards one report; returns whether there was one."""
        try:
            amount = self._queue.get(block)
        except Empty:
            return False
        self._missing_reports -= 1
        report(amount)
        return True


class LocalRunner(Workers[PrepareContext]):
    """Runs the work in processes on this machine."""

    def __init__(self, context: PrepareContext):
        super().__init__(context, context.options.num_processes)

    def tokenize(self, files: list[Path], report: Report) -> None:
        """Tokenizes the corpus into the cache of each shard."""
        options = self.context.options
        with written_caches(self.context.workspace) as workspace:
            for batch in self.map(tokenize_batch, read_batches(files, options, report), report):
                for shard, arrays in split_by_shard(batch, options.num_shards):
                    append_to_cache(cache_folder(workspace, shard), arrays)
