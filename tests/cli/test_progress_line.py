"""Commands show on a terminal what they have done, and nothing elsewhere."""

import contextlib
import io
import os
import pty
import sys
import threading
from collections.abc import Iterator

import pytest

from albert_tf.cli.app import main
from albert_tf.progress import counted, progress_line
from tests.toy_task import write_mood_table


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


def test_rows_rate_and_remaining_time(monkeypatch):
    with terminal(monkeypatch) as shown, progress_line("evaluate"):
        assert [len(batch) for batch in counted([[1] * 32, [1] * 18], 1_000)] == [32, 18]
    assert "evaluate" in shown[0]
    assert "50 of 1,000 rows, " in shown[0]
    assert "/s, " in shown[0]
    assert " s left" in shown[0]
    assert shown[0].endswith("\x1b[2K")  # it is erased at the end


def test_nothing_elsewhere(monkeypatch):
    with contextlib.redirect_stderr(io.StringIO()) as printed, progress_line("evaluate"):
        assert list(counted(["ab", "c"])) == ["ab", "c"]
    assert printed.getvalue() == ""
    with terminal(monkeypatch) as shown, progress_line("predict", shown=False):
        assert list(counted(["ab"])) == ["ab"]
    assert shown == [""]


def test_commands_count_their_rows(folders, tmp_path, monkeypatch, capsys):
    table, output = write_mood_table(tmp_path / "dev.tsv", 40, seed=1), tmp_path / "out.tsv"
    command = ["albert-tf", "predict", folders["classifier"], "--data", table, "--output", output]
    monkeypatch.setattr(sys, "argv", list(map(str, command)))
    with terminal(monkeypatch) as shown, pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code, shown
    assert "40 rows, " in shown[0]
    assert "40 predictions in" in capsys.readouterr().out
