"""Workers give the same results in the same order in this process and in others, and a death is told."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from albert_tf.data.preparation.runners import Workers


def scaled(context, item):
    return context * item


def failing(context, item):
    raise ValueError(f"item {item}")


def dying(context, item):
    os._exit(1)


@pytest.mark.parametrize("processes", [1, 2])
def test_results_items_and_errors_in_order(processes):
    with Workers(10, processes) as workers:
        assert list(workers.map(scaled, range(20))) == [10 * item for item in range(20)]
        assert list(workers.run(scaled, range(20))) == [*range(20)]
        with pytest.raises(ValueError, match="item 0"):
            list(workers.map(failing, range(5)))


def test_a_worker_that_dies_is_told():
    with Workers(None, 2) as workers, pytest.raises(RuntimeError, match="One of 2 worker processes died"):
        list(workers.map(dying, range(5)))


def flooding(context, item):
    """Fills the pipe of the results, so that the worker waits for its parent to read them."""
    return bytes(10**7)


PARENT = """
import time
from tests.data.preparation import test_runners
from albert_tf.data.preparation.runners import Workers

if __name__ == "__main__":
    with Workers(None, 2) as workers:
        for _ in workers.run(test_runners.flooding, range(100)):
            print("working", flush=True)
            time.sleep(60)
"""


def alive(group):
    """Processes of a group that have not ended."""
    stats = [path.read_text().rpartition(")")[2].split() for path in Path("/proc").glob("[0-9]*/stat") if path.exists()]
    return sum(int(stat[2]) == group and stat[0] not in "ZX" for stat in stats)


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc")
@pytest.mark.parametrize("seconds", [0.5, None], ids=["starting", "working"])
def test_workers_end_when_their_parent_is_killed(seconds):
    command = [sys.executable, "-c", PARENT]
    root = Path(__file__).parents[3]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True, start_new_session=True) as parent:
        if seconds is None:
            assert parent.stdout.readline() == "working\n"
            time.sleep(0.5)
        else:
            time.sleep(seconds)
        parent.kill()
        parent.wait()
        deadline = time.monotonic() + 10
        while alive(parent.pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        left = alive(parent.pid)
        if left:
            os.killpg(parent.pid, signal.SIGKILL)
    assert left == 0
