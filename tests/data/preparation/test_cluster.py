"""`prepare` on a cluster: a scheduler and two workers of Dask as processes of their own write the bytes of a local run.

Texts and shards are on a disk that all see, or in a bucket of moto's S3 server, and then the processes share no folder.
`make test-cluster` runs this file.
"""

import json
import os
import pathlib
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from typing import NamedTuple

import distributed
import pytest
import s3fs

from albert_tf.files.urls import location
from tests.disk import contents
from tests.s3_server import running
from tests.small_pipeline import REPOSITORY
from tests.trainer.runs import start

pytestmark = [pytest.mark.exhaustive, pytest.mark.cluster]  # processes that wait for each other
PREPARE = [sys.executable, "-c", "from albert_tf.cli.app import main; main()", "prepare"]
NOVELS = REPOSITORY / "training/sample_data/novels"
OPTIONS = ("--split-sentences", "--document-gap", 2, "--max-seq-length", 128)
OPTIONS += ("--num-shards", 4, "--dupe-factor", 10, "--quiet")
# A task for each file and for each shard; by default Beam puts 128 of them into one.
RUNNER = "--runner=apache_beam.runners.dask.dask_runner.DaskRunner --dask_partition_size=1 --dask_client_address="


class Store(NamedTuple):
    """Where a cluster finds the texts, and writes the examples."""

    texts: str
    examples: str

    def contents(self) -> dict[str, bytes]:
        """The files of the examples by name."""
        return contents(location(self.examples))


class Cluster(NamedTuple):
    """A scheduler's address, and the process of each worker by its address."""

    address: str
    workers: dict[str, subprocess.Popen]


def run_in(folder: pathlib.Path, name: str, *arguments: object) -> subprocess.Popen:
    """Starts one of Dask's programs in a folder of its own, where its temporary files are too."""
    folder.mkdir()
    command = [sys.executable, "-m", f"distributed.cli.dask_{name}", "--no-dashboard", *map(str, arguments)]
    environment = {**os.environ, "TMPDIR": str(folder)}
    with (folder / "log").open("w") as log:
        return subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)


@pytest.fixture
def disk(tmp_path) -> Store:
    return Store(str(NOVELS), str(tmp_path / "examples"))


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running() as url:
        yield url


@pytest.fixture
def bucket(server) -> Store:
    filesystem, name = s3fs.S3FileSystem(), f"corpus-{uuid.uuid4()}"
    filesystem.mkdir(name)
    filesystem.put(str(NOVELS), f"s3://{name}/texts", recursive=True)
    return Store(f"s3://{name}/texts", f"s3://{name}/examples")


@pytest.fixture
def new_cluster(tmp_path) -> Iterator[Callable[[], Cluster]]:
    """Starts a cluster, with the environment of the time; ends it after the test."""
    file, processes = tmp_path / "scheduler.json", {}

    def start_cluster() -> Cluster:
        processes["scheduler"] = run_in(tmp_path / "scheduler", "scheduler", "--port", 0, "--scheduler-file", file)
        for name in ("one", "two"):
            options = ("--scheduler-file", file, "--nthreads", 1, "--no-nanny", "--name", name)
            processes[name] = run_in(tmp_path / name, "worker", *options)
        address = json.loads(wait_for(lambda: file.is_file() and file.read_text()))["address"]
        with distributed.Client(address) as client:
            client.wait_for_workers(2, timeout=60)
            known = client.scheduler_info()["workers"]
        return Cluster(address, {worker: processes[about["name"]] for worker, about in known.items()})

    yield start_cluster
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


def prepare_on(cluster: Cluster, store: Store) -> subprocess.Popen:
    beam = ["--runner", "beam", "--beam-options", RUNNER + cluster.address]
    return start(*PREPARE, store.texts, "--output", store.examples, *OPTIONS, *beam)


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> dict[str, bytes]:
    """What this machine alone makes of the texts."""
    output = tmp_path_factory.mktemp("local") / "examples"
    said, _ = (process := start(*PREPARE, NOVELS, "--output", output, *OPTIONS)).communicate(timeout=120)
    assert process.returncode == 0, said
    return contents(output)


@pytest.mark.parametrize("kind", ["disk", "bucket"])
def test_two_workers_write_the_bytes_of_a_local_run(kind, request, expected, new_cluster):
    store = request.getfixturevalue(kind)
    cluster = new_cluster()
    process = prepare_on(cluster, store)
    with distributed.Client(cluster.address) as client:
        busy = set()
        while process.poll() is None:
            busy |= {worker for worker, tasks in client.processing().items() if tasks}
            time.sleep(0.02)
    said, _ = process.communicate()
    assert process.returncode == 0, said
    assert busy == cluster.workers.keys()
    assert store.contents() == expected


@pytest.mark.parametrize("begun", ["recipe.json", "counts.json"])
def test_a_worker_that_is_killed_is_replaced_by_the_other(begun, bucket, expected, new_cluster):
    cluster = new_cluster()
    process = prepare_on(cluster, bucket)
    wait_for(lambda: process.poll() is not None or location(f"{bucket.examples}/.prepare/{begun}").exists())
    with distributed.Client(cluster.address) as client:
        victim = wait_for(lambda: next((worker for worker, tasks in client.processing().items() if tasks), None))
        cluster.workers[victim].kill()
        said, _ = process.communicate(timeout=150)
        assert process.returncode == 0, said
        assert client.scheduler_info()["workers"].keys() == cluster.workers.keys() - {victim}
    assert bucket.contents() == expected
