"""A line on the terminal while a command works: elapsed time and, where rows are counted, rate and remaining time."""

import contextlib
import contextvars
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

_Batch = TypeVar("_Batch")
# Called with the number of rows that were done, if it is known that of all rows, and what they are.
_report: contextvars.ContextVar[Callable[[int, int | None, str], None] | None] = contextvars.ContextVar(
    "report", default=None
)


@contextlib.contextmanager
def progress_line(title: str, shown: bool = True) -> Iterator[None]:
    """Shows a line on standard error, if that is a terminal, until the context ends.

    Args:
        title: what is being done.
        shown: False to show nothing.
    """
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), TextColumn("{task.fields[count]}")
    # A descriptor of its own, because the commands hide what is written to descriptor 2 while TensorFlow is imported.
    is_shown = shown and sys.stderr is not None and sys.stderr.isatty()
    with (
        open(os.dup(sys.stderr.fileno()) if is_shown and sys.stderr else os.devnull, "w", errors="replace") as file,
        Progress(*columns, console=Console(file=file), transient=True, disable=not is_shown) as progress,
    ):
        task, begun, done = progress.add_task(title, total=None, count=""), 0.0, 0

        def report(count: int, total: int | None, unit: str) -> None:
            nonlocal begun, done
            begun, done = begun or time.monotonic(), done + count
            if not done:
                return
            rate = done / max(time.monotonic() - begun, 1e-3)
            of, left = ("", "") if total is None else (f" of {total:,}", f", {(total - done) / rate:,.0f} s left")
            progress.update(task, count=f"{done:,}{of} {unit}, {rate:,.1f}/s{left}")

        token = _report.set(report)
        try:
            yield
        finally:
            _report.reset(token)


def counted(
    batches: Iterable[_Batch], total: int | None = None, unit: str = "rows", size: Callable[[Any], int] = len
) -> Iterator[_Batch]:
    """Yields batches; within a `progress_line`, which adds up several calls, it shows how many of their rows are done.

    Args:
        batches: collections of rows.
        total: the number of all rows, if it is known.
        unit: what the rows are called.
        size: the number of rows of a batch.
    """
    report = _report.get() or (lambda count, total, unit: None)
    report(0, total, unit)
    for batch in batches:
        yield batch
        report(size(batch), total, unit)
