"""The launchers give every worker its TF_CONFIG, pass signals on and fail where a worker does; no TensorFlow needed."""

import os
import re
import subprocess
import sys
import textwrap
import time

import pytest

from albert_tf.trainer.cluster import Cluster
from tests.small_road import REPOSITORY
from tests.trainer.runs import LAUNCHER, start

FOLDER = REPOSITORY / "training/launch"
SHOW = "import os; print(os.environ['TF_CONFIG'])"
# Says that it is there, and when it is told to stop.
OBEY = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print("saved", flush=True), sys.exit(0)))
print("here", flush=True)
time.sleep(60)
"""


def clusters(said: str) -> list[Cluster]:
    """What the workers printed of their TF_CONFIG, by their index."""
    lines = dict(re.findall(r"^(\d): (.*)$", said, re.MULTILINE))
    return [Cluster.from_environment({"TF_CONFIG": lines[index]}) for index in sorted(lines)]


@pytest.fixture
def with_ssh(tmp_path):
    """An `ssh` that runs the command here, as an sshd on this machine would."""
    program = tmp_path / "ssh"
    program.write_text('#!/bin/bash\nshift 2\nexport FAKE_HOST=$1\nexec bash -c "$2"\n')
    program.chmod(0o755)
    return {"PATH": f"{tmp_path}:{os.environ['PATH']}"}


def test_workers_of_this_machine_know_each_other():
    said, _ = start(sys.executable, LAUNCHER, 3, sys.executable, "-c", SHOW).communicate(timeout=30)
    found = clusters(said)
    assert [cluster.index for cluster in found] == [0, 1, 2]
    assert len({cluster.addresses for cluster in found}) == 1
    assert len(set(found[0].addresses)) == 3


def test_workers_of_other_machines_know_each_other(with_ssh):
    show = SHOW + "; print(os.environ['FAKE_HOST'], os.getcwd())"
    hosts = "me@host-a,host-b:5000"
    said, _ = start(sys.executable, LAUNCHER, hosts, sys.executable, "-c", show, **with_ssh).communicate(timeout=30)
    assert f"0: me@host-a {os.getcwd()}" in said
    assert f"1: host-b {os.getcwd()}" in said
    assert clusters(said.replace(f"0: me@host-a {os.getcwd()}", "").replace(f"1: host-b {os.getcwd()}", "")) == [
        Cluster(("host-a:12345", "host-b:5000"), 0),
        Cluster(("host-a:12345", "host-b:5000"), 1),
    ]


@pytest.mark.parametrize("where", ["2", "host-a,host-b"])
def test_a_signal_goes_to_all_workers(where, with_ssh):
    process = start(sys.executable, LAUNCHER, where, sys.executable, "-u", "-c", OBEY, **with_ssh)
    assert {process.stdout.readline() for _ in range(2)} == {"0: here\n", "1: here\n"}
    process.terminate()
    said, _ = process.communicate(timeout=30)
    assert sorted(said.splitlines()) == ["0: saved", "1: saved"]
    assert process.returncode == 0


def test_a_worker_that_fails_makes_the_launcher_fail():
    fail = "import json, os, sys; sys.exit(3 * json.loads(os.environ['TF_CONFIG'])['task']['index'])"
    begun = time.monotonic()
    process = start(sys.executable, LAUNCHER, 2, sys.executable, "-c", fail)
    process.communicate(timeout=30)
    assert process.returncode == 3
    assert time.monotonic() - begun < 30


def pod(tmp_path, program: str) -> subprocess.Popen:
    """The script of a pod with something else in place of albert-tf, and a folder of its own as /disk."""
    text = (FOLDER / "kubernetes.yaml").read_text()
    script = textwrap.dedent(text.split("- |\n")[1].split("      volumes:")[0]).replace("/disk", str(tmp_path))
    (tmp_path / "albert-tf").write_text(f"#!{sys.executable}\n{program}")
    (tmp_path / "albert-tf").chmod(0o755)
    (tmp_path / "run").mkdir()
    variables = {"WORKERS": "3", "JOB_COMPLETION_INDEX": "2", "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    return start("bash", "-c", script, **variables)


def test_pods_know_each_other_and_are_done_when_the_run_is(tmp_path):
    finish = f"open('{tmp_path}/run/results.json', 'w').close()"
    process = pod(tmp_path, f"import sys; {SHOW}; print(*sys.argv[1:]); {finish}")
    config, command = process.communicate(timeout=30)[0].splitlines()
    assert process.returncode == 0
    addresses = tuple(f"albert-{index}.albert:12345" for index in range(3))
    assert Cluster.from_environment({"TF_CONFIG": config}) == Cluster(addresses, 2)
    assert command == f"pretrain {tmp_path}/recipe.toml --output {tmp_path}/run"


def test_a_pod_that_is_taken_away_saves_and_is_not_done(tmp_path):
    process = pod(tmp_path, OBEY)
    assert process.stdout.readline() == "here\n"
    process.terminate()
    assert process.communicate(timeout=30)[0] == "saved\n"
    assert process.returncode == 1


def test_the_script_for_tpus_is_one_and_says_what_it_needs():
    subprocess.run(["bash", "-n", FOLDER / "tpu_vm.sh"], check=True)
    done = subprocess.run(["bash", FOLDER / "tpu_vm.sh"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "RECIPE EXAMPLES VOCABULARY RUN" in done.stderr
