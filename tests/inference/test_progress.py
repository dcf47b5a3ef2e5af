"""Commands show on a terminal what they have done, and nothing elsewhere."""

import contextlib
import io
import re
import sys
import time

import pytest

from albert_tf.cli.app import main
from albert_tf.inference.progress import counted, progress_line
from tests.cli.terminal import terminal
from tests.toy_task import write_mood_table


def test_rows_rate_and_remaining_time(monkeypatch):
    with terminal(monkeypatch) as shown, progress_line("evaluate"):
        assert [len(batch) for batch in counted([[1] * 32, [1] * 18], 1_000)] == [32, 18]
    assert all(part in shown[0] for part in ("evaluate", "50 of 1,000 rows, ", "/s, ", " s left"))
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


def test_prepare_measures_from_the_beginning_of_a_stage(monkeypatch):
    with terminal(monkeypatch) as shown, progress_line("prepare") as show:
        show(7, 7, "bytes", "tokenize")
        show(0, 1_000, "tokens", "write")
        time.sleep(1.1)
        for done in (400, 800, 1_000):  # shards of several processes that end at once
            show(done, 1_000, "tokens", "write")
    assert "write" in shown[0]
    (*_, rate) = re.findall(r"of 1,000 tokens, ([\d,.]+)/s", shown[0])
    assert float(rate.replace(",", "")) <= 1_000 / 1.1
