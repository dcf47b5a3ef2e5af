"""What a process of `albert-tf` writes to stderr: no start-up lines of TensorFlow, but every error, and Ctrl-C."""

import contextlib
import itertools
import os
import pty
import signal
import subprocess
import sys
import time

import pytest

import albert_tf
from albert_tf.cli.session import user_errors
from albert_tf.cli.tables import print_table
from tests.conftest import ROOT
from tests.small_pipeline import NOVEL
from tests.toy_task import write_classifier

LOG = "I0000 00:00:1795363845.928941   21280 port.cc:153] oneDNN custom operations are on."
# A package in place of TensorFlow: its import takes no time, and can be made to fail.
FAKE = f"""
import os, sys, time
os.write(2, b"WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\\n")
os.write(2, b"{LOG}\\n")
match os.environ["FAKE"]:
    case "raise": raise ImportError("libcudart.so is damaged")
    case "slow": time.sleep(2)
class config:
    def list_physical_devices():
        os.write(2, b"E0000 00:00:1795363859.930949   21280 cuda_platform.cc:52] failed call to cuInit\\n")
"""
SESSION = """
from albert_tf.cli.session import user_errors
with user_errors():
    import tensorflow
    print("imported")
"""


def start(*arguments, path=ROOT, **environment) -> subprocess.Popen:
    environment = {**os.environ, "PYTHONPATH": str(path), **environment}
    if not environment.get("TF_CPP_MIN_LOG_LEVEL"):
        environment.pop("TF_CPP_MIN_LOG_LEVEL", None)
    command = [sys.executable, *map(str, arguments)]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    # A shell starts background jobs with SIGINT ignored, which children inherit.
    return subprocess.Popen(command, env=environment, preexec_fn=_default_sigint, **options)


def _default_sigint() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture(scope="module")
def fake_path(tmp_path_factory):
    """A `PYTHONPATH` where `import tensorflow` finds the fake."""
    folder = tmp_path_factory.mktemp("fake")
    (folder / "tensorflow").mkdir()
    (folder / "tensorflow" / "__init__.py").write_text(FAKE)
    return f"{folder}:{ROOT}"


@pytest.fixture(scope="module")
def with_fake(fake_path):
    """Starts Python where `import tensorflow` finds the fake; returns exit code and both outputs."""

    def run(fake: str, level: str = ""):
        process = start("-c", SESSION, path=fake_path, FAKE=fake, TF_CPP_MIN_LOG_LEVEL=level)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    return run


def test_log_lines_are_hidden_unless_they_are_wanted_and_a_failed_import_is_told(with_fake):
    assert with_fake("works") == (0, "imported\n", "")
    _, _, err = with_fake("works", level="0")
    assert LOG in err
    assert "cuInit" not in err  # devices are looked for only where that is silenced
    code, _, err = with_fake("raise")
    assert code != 0
    assert "libcudart.so is damaged" in err


def test_the_progress_line_moves_during_the_import(fake_path):
    program = SESSION.replace("import tensorflow", "with progress_line('start'): import tensorflow")
    program = f"from albert_tf.inference.progress import progress_line\n{program}"
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": fake_path, "FAKE": "slow", "TERM": "xterm", "COLUMNS": "80"}
    environment.pop("TF_CPP_MIN_LOG_LEVEL", None)
    with subprocess.Popen([sys.executable, "-c", program], env=environment, stderr=theirs):
        os.close(theirs)
        frames, times = b"", []
        with contextlib.suppress(OSError):  # when the other end is closed
            while part := os.read(ours, 4096):
                frames += part
                times += [time.monotonic()] if b"start" in part else []
    os.close(ours)
    assert b"oneDNN" not in frames
    assert max(after - before for before, after in itertools.pairwise(times)) < 1.5


def test_a_command_ends_without_collecting_garbage():
    program = """
import sys
class Cycle:
    def __del__(self): print("collected")
cycle = Cycle()
cycle.itself = cycle
sys.argv = ["albert-tf", "--version"]
from albert_tf.cli.app import main
main()
"""
    out, err = start("-c", program).communicate(timeout=60)
    assert (out, err) == (f"albert-tf {albert_tf.__version__}\n", "")


@pytest.mark.exhaustive
def test_real_tensorflow_and_exported_graphs_are_quiet(tmp_path):
    command = ("-m", "albert_tf", "export", write_classifier(tmp_path / "model"), "--name", "mood")
    command += ("--output", tmp_path)
    out, err = start(*command, TF_CPP_MIN_LOG_LEVEL="", CUDA_VISIBLE_DEVICES="").communicate(timeout=300)
    assert "SavedModel in" in out
    assert err == ""  # oneDNN writes of integers in graphs


def interrupt(process: subprocess.Popen, condition) -> tuple[int, str]:
    """Sends what a terminal sends for Ctrl-C, to all processes of the command; exit code and stderr."""
    while not condition():
        assert process.poll() is None, process.stderr.read()
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    return process.returncode, err


@pytest.mark.exhaustive
def test_ctrl_c_in_train_tokenizer(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text(NOVEL.read_text(encoding="utf-8") * 40, encoding="utf-8")
    process = start("-m", "albert_tf", "train-tokenizer", text, "--output", tmp_path / "new", "--vocab-size", 2000)
    seconds = {}

    def is_training() -> bool:  # SentencePiece's own threads run
        seconds["begun"] = len(os.listdir(f"/proc/{process.pid}/task"))
        return seconds["begun"] > 8

    assert interrupt(process, is_training) == (130, "albert-tf: interrupted; nothing was written.\n")
    assert not (tmp_path / "new").exists()


def test_ctrl_c_in_prepare(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text(NOVEL.read_text(encoding="utf-8"), encoding="utf-8")
    options = ("--split-sentences", "--num-processes", 2, "--max-seq-length", 64, "--dupe-factor", 200)
    process = start("-m", "albert_tf", "prepare", text, "--output", tmp_path / "new", *options)
    code, err = interrupt(process, (tmp_path / "new").exists)
    kept = "finished shards are kept, and the same command resumes"
    assert (code, err) == (130, f"albert-tf: interrupted; {kept}.\n")


def test_an_error_is_one_line_without_control_characters(capsys):
    for error, line in (
        (ValueError("a\x1b[2J\n  b"), "albert-tf: a\\x1b[2J b\n"),
        (
            PermissionError(13, "Permission denied", "x.tsv"),
            "albert-tf: x.tsv: permission denied; check its permissions.\n",
        ),
        (OSError(28, "No space left on device", "x"), "albert-tf: x: no space left on device.\n"),
        (OSError(28, "No space left on device", "x", None, "y"), "albert-tf: x to y: no space left on device.\n"),
    ):
        with pytest.raises(SystemExit, match="2"), user_errors():
            raise error
        assert capsys.readouterr().err == line


@pytest.mark.parametrize("columns", [40, 80])
def test_a_narrow_table_cuts_nothing(columns, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(columns))
    print_table("", ("name", "value"), [("n" * 100, "1,234,567"), ("[red]\x1b[31m", "2")])
    printed = capsys.readouterr().out
    assert printed.count("n") - 1 == 100  # and that of `name`
    assert "…" not in printed
    assert "[red]\\x1b[31m" in printed
    assert max(map(len, printed.splitlines())) <= columns
