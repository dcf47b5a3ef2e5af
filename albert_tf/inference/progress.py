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
def progress_line(title: str, shown: bool = True) -> Iterator[Callable[..., None]]:
    """Shows a line on standard error, if that is a terminal, until the context ends.

    Args:
        title: what is being done.
        shown: False to show nothing.

    Yields:
        A function to be called with how much is done, of how much if that is known, the unit, and the stage if the work
        has several; rates are those of a stage.
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
        task, begun, done_rows = progress.add_task(title, total=None, count=""), {}, 0

        def show(done: int, total: int | None, unit: str, stage: str = title) -> None:
            seconds = time.monotonic() - begun.setdefault(stage, time.monotonic())
            if done:
                rate = done / max(seconds, 1e-3)
                of, left = ("", "") if total is None else (f" of {total:,}", f", {(total - done) / rate:,.0f} s left")
                progress.update(task, description=stage, count=f"{done:,}{of} {unit}, {rate:,.1f}/s{left}")

        def report(count: int, total: int | None, unit: str) -> None:
            nonlocal done_rows
            done_rows += count
            show(done_rows, total, unit)

        token = _report.set(report)
        try:
            yield show
        finally:
            _report.reset(token)


def show_compiling(shape: tuple[int, ...]) -> None:
    """Says within a `progress_line` that a program for a shape is compiled, until more rows are done."""
    if report := _report.get():
        report(0, None, f"rows; compiling for {' x '.join(map(str, shape))}")


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
