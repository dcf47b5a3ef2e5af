"""The launchers give every worker its TF_CONFIG, pass signals on and fail where a worker does; no TensorFlow needed."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from typing import NamedTuple

import pytest
import typer.main
import yaml

from albert_tf.cli.app import app
from tests.small_pipeline import REPOSITORY
from tests.trainer.runs import LAUNCHER, start

FOLDER = REPOSITORY / "training/launch"
SHOW = "import os; print(os.environ['TF_CONFIG'])"
# Says that it is there, and when it is told to stop.
OBEY = """
import signal, sys, time
def stop(number, _):
    print("saved", flush=True)
    sys.exit(128 + number)

signal.signal(signal.SIGTERM, stop)
signal.signal(signal.SIGINT, stop)
print("here", flush=True)
time.sleep(60)
"""


class Cluster(NamedTuple):
    """What a worker's TF_CONFIG says."""

    addresses: tuple[str, ...]
    index: int

    @classmethod
    def of(cls, config: str) -> "Cluster":
        values = json.loads(config)
        assert values["task"]["type"] == "worker"
        return cls(tuple(values["cluster"]["worker"]), values["task"]["index"])


def clusters(said: str) -> list[Cluster]:
    """What the workers printed of their TF_CONFIG, by their index."""
    lines = dict(re.findall(r"^(\d): (.*)$", said, re.MULTILINE))
    return [Cluster.of(lines[index]) for index in sorted(lines)]


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


@pytest.mark.parametrize(("where", "told"), [("2", signal.SIGTERM), ("host-a,host-b", signal.SIGINT)])
def test_a_signal_goes_to_all_workers_which_do_not_start_again(where, told, with_ssh):
    process = start(sys.executable, LAUNCHER, "--restarts", 5, where, sys.executable, "-u", "-c", OBEY, **with_ssh)
    assert {process.stdout.readline() for _ in range(2)} == {"0: here\n", "1: here\n"}
    process.send_signal(told)
    said, _ = process.communicate(timeout=30)
    assert sorted(said.splitlines()) == ["0: saved", "1: saved"]
    assert process.returncode == 128 + told


def test_a_signal_while_workers_are_started_leaves_none(tmp_path):
    mark = "import pathlib, time; pathlib.Path('here').touch(); time.sleep(60)"
    command = [sys.executable, LAUNCHER, "12", sys.executable, "-S", "-c", mark]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while not (tmp_path / "here").exists():  # the first one
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=30)  # at the end of the file, so every worker has ended
    assert "Traceback" not in said
    assert process.returncode == 128 + signal.SIGTERM


def test_a_worker_that_fails_makes_the_launcher_fail():
    fail = "import json, os, sys; sys.exit(3 * json.loads(os.environ['TF_CONFIG'])['task']['index'])"
    begun = time.monotonic()
    process = start(sys.executable, LAUNCHER, 2, sys.executable, "-c", fail)
    process.communicate(timeout=30)
    assert process.returncode == 3
    assert time.monotonic() - begun < 30


# Worker 1 is killed; worker 0 waits until it is and ends as `albert-tf` does when it loses another.
LOSING = """
import json, os, pathlib, signal, sys, time
file = pathlib.Path("killed")
if json.loads(os.environ["TF_CONFIG"])["task"]["index"] == 1:
    file.write_text(str(os.getpid()))
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGKILL)
while not file.exists() or not file.read_text():
    time.sleep(0.001)
while ") Z " not in pathlib.Path(f"/proc/{file.read_text()}/stat").read_text():
    time.sleep(0.001)
sys.exit(75)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc")
def test_of_two_that_failed_at_once_the_killed_one_counts(tmp_path):
    command = [sys.executable, LAUNCHER, "2", sys.executable, "-S", "-c", LOSING]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 128 + signal.SIGKILL, done.stderr


# Worker 1 fails in its first `times` starts, once both have started; worker 0 waits for SIGTERM. Then both are done.
FAILING = """
import json, os, pathlib, signal, sys, time
index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
starts = len(list(pathlib.Path().glob(f"{index}-*")))
pathlib.Path(f"{index}-{starts}").touch()
status, times = map(int, sys.argv[1:])
if starts == times:
    sys.exit()
if index == 0:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    pathlib.Path(f"ready-{starts}").touch()
    time.sleep(60)
while not pathlib.Path(f"ready-{starts}").exists():
    time.sleep(0.01)
if status < 0:
    os.kill(os.getpid(), -status)
sys.exit(status)
"""


@pytest.mark.parametrize(
    ("restarts", "status", "times", "starts", "expected"),
    [
        (2, -signal.SIGKILL, 1, 2, 0),
        (1, 75, 9, 2, 75),
        (9, 2, 9, 1, 2),  # a mistake, which would repeat itself
        (0, -signal.SIGKILL, 1, 1, 137),
    ],
)
def test_when_one_fails_all_start_again(tmp_path, restarts, status, times, starts, expected):
    options = [] if restarts == 0 else ["--restarts", str(restarts)]
    command = [sys.executable, LAUNCHER, *options, "2", sys.executable, "-S", "-c", FAILING, str(status), str(times)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == expected, done.stderr
    assert [len(list(tmp_path.glob(f"{index}-*"))) for index in (0, 1)] == [starts, starts]
    assert done.stdout.count("0: stopped") == min(starts, times)
    how = "was killed by SIGKILL" if status < 0 else f"ended with status {status}"
    said = [f"worker 1 {how}; all start again in 0 s, restart 1 of {restarts}"]
    assert done.stderr.splitlines() == said * (starts - 1)


def test_a_signal_ends_the_pause_before_a_restart():
    process = start(
        sys.executable, LAUNCHER, "--restarts", 9, "1", sys.executable, "-S", "-c", "import sys; sys.exit(1)"
    )
    while " in 3 s, restart 3 of 9" not in process.stdout.readline():
        assert process.poll() is None
    process.terminate()
    assert process.communicate(timeout=2)[0] == ""
    assert process.returncode == 143


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["2"], "followed by a command"),
        (["2", "--restarts", "3", "true"], "options come first"),
        (["--restarts", "-1", "2", "true"], "must not be negative. Received: -1"),
    ],
)
def test_the_launcher_says_what_it_needs(arguments, message):
    done = subprocess.run([sys.executable, LAUNCHER, *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def documents() -> dict[str, dict]:
    """The documents of the file for Kubernetes by kind."""
    text = (FOLDER / "kubernetes.yaml").read_text(encoding="utf-8")
    return {document["kind"]: document for document in yaml.safe_load_all(text)}


def pod(tmp_path, program: str) -> subprocess.Popen:
    """The command of a pod with something else in place of albert-tf."""
    (container,) = documents()["Job"]["spec"]["template"]["spec"]["containers"]
    (tmp_path / "albert-tf").write_text(f"#!{sys.executable}\n{program}")
    (tmp_path / "albert-tf").chmod(0o755)
    variables = {entry["name"]: entry["value"] for entry in container["env"]}
    variables |= {"WORKERS": "3", "JOB_COMPLETION_INDEX": "2", "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    return start(*container["command"], *container["args"], **variables)


def test_pods_know_each_other_and_are_done_when_the_run_is(tmp_path):
    process = pod(tmp_path, f"import os, sys; {SHOW}; print(*sys.argv[1:])")
    config, command = process.communicate(timeout=30)[0].splitlines()
    assert process.returncode == 0
    addresses = tuple(f"albert-{index}.albert:12345" for index in range(3))
    assert Cluster.of(config) == Cluster(addresses, 2)
    arguments = ["--examples", "s3://my-bucket/examples", "--output", "s3://my-bucket/runs/mine"]
    assert command.split() == ["pretrain", "/recipe/recipe.toml", *arguments]
    typer.main.get_command(app).commands["pretrain"].make_context("pretrain", command.split()[1:])


def test_a_pod_that_is_taken_away_saves_and_is_not_done(tmp_path):
    process = pod(tmp_path, OBEY)
    assert process.stdout.readline() == "here\n"
    process.terminate()
    assert process.communicate(timeout=30)[0] == "saved\n"
    assert process.returncode == 143  # the status of the run


def test_the_job_and_its_service_fit_each_other():
    service, job = documents()["Service"], documents()["Job"]
    template, policy = job["spec"]["template"]["spec"], job["spec"]["podFailurePolicy"]["rules"][0]
    (container,) = template["containers"]
    assert service["spec"]["selector"] == {"job-name": job["metadata"]["name"]}
    assert template["subdomain"] == service["metadata"]["name"]
    assert job["spec"]["completions"] == job["spec"]["parallelism"] == int(container["env"][0]["value"])
    assert container["ports"] == [{"containerPort": 12345}]
    assert {mount["name"] for mount in container["volumeMounts"]} == {one["name"] for one in template["volumes"]}
    # Kubernetes takes rules about statuses only where it makes new pods.
    assert template["restartPolicy"] == "Never"
    assert policy["action"] == "FailJob"
    assert policy["onExitCodes"] == {"containerName": container["name"], "operator": "In", "values": [2]}


# Stands in for gcloud: the "machine" is a folder, where a command for it runs with a home and a Python of its own;
# the arguments of `create` are in its file `created`.
GCLOUD = """#!/bin/bash
set -e
shift 3
export HOME=$MACHINE PATH=$MACHINE/bin:$PATH
case $1 in
describe) test -f "$MACHINE/created" ;;
create) echo "${@:3}" >"$MACHINE/created" ;;
ssh) cd "$MACHINE" && exec bash -c "$4" ;;
scp) cp -r "${3/#"$NAME:"/$MACHINE/}" "${4/#"$NAME:"/$MACHINE/}" ;;
esac
"""
PYTHON3 = """#!/bin/bash
test "$*" != "-m pip install --quiet uv" || exit 0
mkdir -p venv/bin && cd venv/bin && ln -sf /bin/true pip
printf '#!/bin/bash\\necho "$TPU_NAME" "$@"; cat "$2" data/*; cat run/step 2>/dev/null; echo 20 >run/step' >albert-tf
chmod +x albert-tf
"""


@pytest.fixture
def tpu_script(tmp_path):
    """Calls the script for a machine that is a folder, from a folder with a recipe and data."""
    here, machine = tmp_path / "here", tmp_path / "machine"
    for folder in (here / "data", machine / "bin"):
        folder.mkdir(parents=True)
    (here / "my recipe.toml").write_text("the recipe\n")
    (here / "data/examples").write_text("the examples\n")
    for program, text in ((tmp_path / "gcloud", GCLOUD), (machine / "bin/python3", PYTHON3)):
        program.write_text(text)
        program.chmod(0o755)
    of_machine = {"NAME": "tpu", "ZONE": "here", "TYPE": "v4-8", "MACHINE": str(machine)}
    environment = {**os.environ, **of_machine, "PATH": f"{tmp_path}:{os.environ['PATH']}"}

    def call(*arguments, **variables):
        command, values = ["bash", FOLDER / "tpu_vm.sh", *arguments], {**environment, **variables}
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=here, env=values)

    return call


def test_the_script_for_tpus_brings_all_that_the_recipe_names_and_goes_on(tpu_script, tmp_path):
    for step_before in ("", "20\n"):
        done = tpu_script("my recipe.toml", "runs/mine", "data")
        assert done.returncode == 0, done.stderr
        said = "local pretrain my recipe.toml --output run\nthe recipe\nthe examples\n"
        assert done.stdout == said + step_before
        assert (tmp_path / "here/runs/mine/step").read_text() == "20\n"
    assert (tmp_path / "machine/albert/project/albert_tf/__init__.py").is_file()


@pytest.mark.parametrize(
    ("variables", "image"),
    [
        ({"TYPE": "v4-8"}, "tpu-ubuntu2204-base"),
        ({"TYPE": "v5litepod-8"}, "v2-alpha-tpuv5-lite"),
        ({"TYPE": "v6e-8", "IMAGE": "mine"}, "mine"),
    ],
)
def test_the_image_of_a_tpu_vm_is_that_of_its_type(tpu_script, tmp_path, variables, image):
    done = tpu_script("my recipe.toml", "runs/mine", "data", **variables)
    assert done.returncode == 0, done.stderr
    created = (tmp_path / "machine/created").read_text()
    assert created == f"--accelerator-type {variables['TYPE']} --version {image} --zone here\n"


def test_the_script_for_tpus_says_what_it_needs(tpu_script):
    done = tpu_script("my recipe.toml", "runs/mine")
    assert done.returncode == 2
    assert "RECIPE RUN FILE_OR_FOLDER" in done.stderr
    done = tpu_script("my recipe.toml", "runs/mine", "../data")
    assert done.returncode == 2
    assert "must lie below this folder. Received: ../data" in done.stderr
