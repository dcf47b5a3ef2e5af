"""Runs commands of `albert-tf`, and demos, inside the test's process."""

import contextlib
import io
import os
import pty
import sys
import threading
from collections.abc import Callable, Iterator
from unittest import mock

from albert_tf.cli.app import main


def run(*arguments, program: Callable[[], None] = main, columns: int = 200) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of one call."""
    out, err = io.StringIO(), io.StringIO()
    environment = mock.patch.dict("os.environ", {"COLUMNS": str(columns), "TERM": "dumb"})
    command = mock.patch.object(sys, "argv", ["albert-tf", *map(str, arguments)])
    with environment, command, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            program()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
    return code, out.getvalue(), err.getvalue()


def output_of(*arguments, **options) -> str:
    """What a call that does its work prints."""
    code, out, err = run(*arguments, **options)
    assert code == 0, err
    return out


def mistake(*arguments, **options) -> str:
    """The one sentence with which a call refuses, and exits with 2."""
    code, _, err = run(*arguments, **options)
    assert code == 2, err
    lines = err.strip().splitlines()
    assert len(lines) == 1, err
    assert lines[0].startswith("albert-tf: ")
    return lines[0]


@contextlib.contextmanager
def terminal(monkeypatch) -> Iterator[list[str]]:
    """Makes standard error a terminal of 80 columns; the list has what it showed when the context has ended."""
    ours, theirs = pty.openpty()
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    parts, shown = [], []

    def read() -> None:
        with contextlib.suppress(OSError):  # when the other end is closed
            while part := os.read(ours, 4096):
                parts.append(part)

    reader = threading.Thread(target=read)
    reader.start()
    with os.fdopen(theirs, "w") as file, contextlib.redirect_stderr(file):
        yield shown
    reader.join()
    os.close(ours)
    shown.append(b"".join(parts).decode())
