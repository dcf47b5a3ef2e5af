"""`prepare` on a cluster: a scheduler and two workers of Dask as processes of their own write the bytes of a local run.

`make test-cluster` runs this file.
"""

import json
import pathlib
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

import distributed
import pytest

from tests.small_pipeline import REPOSITORY
from tests.trainer.runs import start

pytestmark = pytest.mark.exhaustive  # processes that wait for each other
PREPARE = [sys.executable, "-c", "from albert_tf.cli.app import main; main()", "prepare"]
NOVELS = sorted((REPOSITORY / "training/sample_data/novels").glob("*.txt"))
OPTIONS = ("--split-sentences", "--document-gap", 2, "--max-seq-length", 128, "--num-shards", 4, "--quiet")
# A task for each file and for each shard; by default Beam puts 128 of them into one.
RUNNER = "--runner=apache_beam.runners.dask.dask_runner.DaskRunner --dask_partition_size=1 --dask_client_address="


class Cluster(NamedTuple):
    """A scheduler's address, and the process of each worker by its address."""

    address: str
    workers: dict[str, subprocess.Popen]


def run_in(folder: pathlib.Path, name: str, *arguments: object) -> subprocess.Popen:
    """Starts one of Dask's programs in a folder of its own."""
    folder.mkdir()
    command = [sys.executable, "-m", f"distributed.cli.dask_{name}", "--no-dashboard", *map(str, arguments)]
    with (folder / "log").open("w") as log:
        return subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)


@pytest.fixture
def cluster(tmp_path) -> Iterator[Cluster]:
    file, processes = tmp_path / "scheduler.json", {}
    processes["scheduler"] = run_in(tmp_path / "scheduler", "scheduler", "--port", 0, "--scheduler-file", file)
    for name in ("one", "two"):
        options = ("--scheduler-file", file, "--nthreads", 1, "--no-nanny", "--name", name)
        processes[name] = run_in(tmp_path / name, "worker", *options)
    try:
        address = json.loads(wait_for(lambda: file.is_file() and file.read_text()))["address"]
        with distributed.Client(address) as client:
            client.wait_for_workers(2, timeout=60)
            known = client.scheduler_info()["workers"]
        yield Cluster(address, {worker: processes[about["name"]] for worker, about in known.items()})
    finally:
        for process in processes.values():
            process.kill()
            process.wait()


def wait_for(condition, seconds: float = 60):
    """Returns the first value of a condition that is true."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return value


def prepare_on(cluster: Cluster, output: pathlib.Path, passes: int) -> subprocess.Popen:
    beam = ["--runner", "beam", "--beam-options", RUNNER + cluster.address]
    return start(*PREPARE, *NOVELS, "--output", output, *OPTIONS, "--dupe-factor", passes, *beam)


def contents(folder: pathlib.Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def prepared_here(output: pathlib.Path, passes: int) -> dict[str, bytes]:
    process = start(*PREPARE, *NOVELS, "--output", output, *OPTIONS, "--dupe-factor", passes)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    return contents(output)


def test_two_workers_write_the_bytes_of_a_local_run(cluster, tmp_path):
    process = prepare_on(cluster, tmp_path / "examples", 2)
    with distributed.Client(cluster.address) as client:
        busy = set()
        while process.poll() is None:
            busy |= {worker for worker, tasks in client.processing().items() if tasks}
            time.sleep(0.02)
    said, _ = process.communicate()
    assert process.returncode == 0, said
    assert busy == cluster.workers.keys()
    assert contents(tmp_path / "examples") == prepared_here(tmp_path / "local", 2)


@pytest.mark.parametrize("step", ["tokenized", "written"])
def test_a_worker_that_is_killed_is_replaced_by_the_other(cluster, tmp_path, step):
    output, passes = tmp_path / "examples", 20
    process = prepare_on(cluster, output, passes)
    begun = output / ".prepare" / ("tokenized" if step == "tokenized" else "counts.json")
    wait_for(begun.exists)
    with distributed.Client(cluster.address) as client:
        victim = wait_for(lambda: next((worker for worker, tasks in client.processing().items() if tasks), None))
        cluster.workers[victim].kill()
        said, _ = process.communicate(timeout=150)
        assert process.returncode == 0, said
        assert client.scheduler_info()["workers"].keys() == cluster.workers.keys() - {victim}
    assert contents(output) == prepared_here(tmp_path / "local", passes)
