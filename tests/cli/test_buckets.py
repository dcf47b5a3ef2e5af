"""From text to a served model, all from and to a bucket, with a run that is killed: the bits of local paths."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import urllib.request

import fsspec
import pytest

from albert_tf.files import urls
from albert_tf.files.urls import location
from tests.conftest import ROOT
from tests.s3_server import AWAY_SECONDS, running, set_fault
from tests.small_pipeline import LENGTH, NOVEL, VOCAB_SIZE, SmallPipeline, small_recipe
from tests.trainer.runs import write_recipe

from .terminal import mistake, output_of

pytestmark = pytest.mark.exhaustive
TEXTS = ("It rained all day.", "The hall stayed dry.")


@pytest.fixture(scope="module")
def server():
    with running() as url:
        yield url


@pytest.fixture
def bucket(server, request):
    name = request.node.name.replace("_", "-").partition("[")[0][:60]
    filesystem = fsspec.filesystem("s3")
    if not filesystem.exists(name):
        filesystem.mkdir(name)
    return f"s3://{name}"


def start(*arguments, **options) -> subprocess.Popen:
    """A command in a process whose folder for temporary files is empty, as on another machine."""
    command = [sys.executable, "-m", "albert_tf", *map(str, arguments)]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **options}
    )


def finish(process: subprocess.Popen) -> str:
    printed, errors = process.communicate()
    assert process.returncode == 0, errors
    return printed


def texts(folder: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    chapters = NOVEL.read_text(encoding="utf-8").split("\n\n")
    (folder / "texts").mkdir()
    (folder / "texts/train.txt").write_text("\n\n".join(chapters[:6]) + "\n", encoding="utf-8")
    lines = [line for line in chapters[6].splitlines() if line.strip()]
    rows = [f"{line.strip()}\t{'long' if len(line) > 60 else 'short'}\n" for line in lines[:60]]
    (folder / "table.tsv").write_text("text\tlabel\n" + "".join(rows), encoding="utf-8")
    return folder / "texts", folder / "table.tsv"


def recipe_in(folder: pathlib.Path, **training) -> pathlib.Path:
    values = small_recipe(SmallPipeline(*["unused"] * 4), **training)
    del values["data"]
    return write_recipe(folder / "recipe.toml", values)


def commands(root: str, recipe: pathlib.Path) -> dict[str, list[str]]:
    """The commands up to an export; all paths are below `root`."""
    words = {
        "train": f"train-tokenizer {root}/texts --output {root}/vocabulary --vocab-size {VOCAB_SIZE}",
        "prepare": f"prepare {root}/texts --output {root}/examples --tokenizer {root}/vocabulary --split-sentences "
        f"--max-seq-length {LENGTH} --dupe-factor 2 --num-shards 3",
        "pretrain": f"pretrain {recipe} --output {root}/run --examples {root}/examples",
        "finetune": f"finetune {root}/run/model --output {root}/task --train {root}/table.tsv --dev {root}/table.tsv "
        f"--epochs 2 --learning-rate 1e-3 --max-length {LENGTH}",
        "distill": f"finetune --teacher {root}/task --set num_hidden_layers=1 --output {root}/student "
        f"--train {root}/table.tsv --dev {root}/table.tsv --epochs 1 --learning-rate 1e-3 --max-length {LENGTH}",
        "export": f"export {root}/task --name task --output {root}/exports",
    }
    return {name: line.split() for name, line in words.items()}


def test_chain(bucket, tmp_path):
    folder, table = texts(tmp_path)
    filesystem = fsspec.filesystem("s3")
    filesystem.put(str(folder), f"{bucket}/texts", recursive=True)
    filesystem.put(str(table), f"{bucket}/table.tsv")
    recipe = recipe_in(tmp_path, num_train_steps=200)
    here, there = commands(str(tmp_path), recipe), commands(bucket, recipe)
    for command in here.values():
        output_of(*command)
    for name in ("train", "prepare"):
        output_of(*there[name])
    killed = start(*there["pretrain"])
    checkpoint = location(f"{bucket}/run/checkpoints")
    while not any(path.name == "state.json" for path in checkpoint.glob("*/*")):
        assert killed.poll() is None, killed.communicate()
        time.sleep(0.2)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert not location(f"{bucket}/run/results.json").exists()
    assert "200 updates" in finish(start(*there["pretrain"], TMPDIR=str(tmp_path)))
    for name in ("finetune", "distill", "export"):
        output_of(*there[name])
    shards = [f"examples/pretraining-0000{shard}-of-00003.tfrecord" for shard in range(3)]
    tasks = ["run/model/config.json", "task/model.safetensors", "task/config.json", "student/model.safetensors"]
    assert_same(bucket, tmp_path, *shards, *tasks)
    assert not list(tmp_path.glob("albert_tf-*")), "copies were left"
    assert predictions(f"{bucket}/exports/task") == served(bucket, tmp_path)


def assert_same(root: str, folder: pathlib.Path, *more: str) -> None:
    """Equal bytes in the bucket and in the local folder."""
    always = ("vocabulary/spiece.model", "examples/manifest.json", "run/model/model.safetensors", "run/results.json")
    for name in (*always, *more):
        assert location(f"{root}/{name}").read_bytes() == (folder / name).read_bytes(), name


def predictions(folder) -> list:
    return [json.loads(line) for line in output_of("predict", folder, *TEXTS).splitlines()]


def served(bucket: str, folder: pathlib.Path) -> list:
    """What `predict` says of the local export, which a server of the one in the bucket has to say too."""
    expected = predictions(folder / "exports/task")
    server = start("serve", f"{bucket}/exports", "--port", 0)
    try:
        url = server.stdout.readline().split()[0]
        request = urllib.request.Request(
            f"{url}v1/models/task:predict", json.dumps({"inputs": {"text": TEXTS}}).encode(), method="POST"
        )
        answer = json.load(urllib.request.urlopen(request))["outputs"]["probabilities"]
    finally:
        server.terminate()
        server.communicate()
    for row, one in zip(answer, expected, strict=True):
        assert row == pytest.approx(list(one["prediction"]["probabilities"].values()), abs=1e-6)
    return expected


WAITS = pytest.mark.cluster  # and takes two minutes


@WAITS
@pytest.mark.parametrize("fault", ["busy", "cut", "away"])
def test_retried(fault, bucket, server, tmp_path):
    """The server fails while each command works; the results are as ever."""
    root = f"{bucket}/{fault}"
    folder, table = texts(tmp_path)
    fsspec.filesystem("s3").put(str(folder), f"{root}/texts", recursive=True)
    fsspec.filesystem("s3").put(str(table), f"{root}/table.tsv")
    recipe = recipe_in(tmp_path)
    here, there = commands(str(tmp_path), recipe), commands(root, recipe)
    for name, command in there.items():
        output_of(*here[name])
        set_fault(server, fault)
        began = time.monotonic()
        output_of(*command)
        if fault == "away":  # nothing counts the connections that a closed port refuses
            assert time.monotonic() - began > AWAY_SECONDS - 1, f"{name} did not need the server while it was away"
        else:
            assert set_fault(server, "") or fault == "cut", f"the fault did not happen in {name}"
        time.sleep(max(0, began + AWAY_SECONDS + 1 - time.monotonic()) if fault == "away" else 0)
    assert_same(root, tmp_path)


# What each command says of a bucket that does not exist, of one in which nothing is, and of keys that are not known.
REFUSALS = {
    "prepare {url}/texts --output {local}/new": ("there is no {root}", "neither a file nor a folder with .txt"),
    "prepare {text} --output {url}/new": ("there is no {root}", ""),
    "train-tokenizer {url}/texts --output {local}/new": ("there is no {root}", "neither a file nor a folder with .txt"),
    "pretrain {recipe} --examples {url}/examples --output {local}/new": ("there is no {root}", "has no manifest.json"),
    "predict {url}/model text": ("there is no {root}", "does not exist; check the URL"),
    "evaluate {url}/model --data {text}": ("there is no {root}", "does not exist; check the URL"),
    "export {url}/model --name a": ("there is no {root}", "does not exist; check the URL"),
    "serve {url}/exports": ("there is no {root}", "does not exist; check the URL"),
    "finetune {url}/model --train {text} --dev {text} --output {local}/new": ("there is no {root}", "does not exist"),
    "finetune {local} --train {url}/a.tsv --dev {text} --output {local}/new": ("there is no {root}", "does not exist"),
}


@pytest.mark.parametrize("command", REFUSALS)
def test_refused(command, bucket, server, tmp_path, monkeypatch):
    """One sentence, and nothing is written."""
    texts(tmp_path)
    recipe = recipe_in(tmp_path)
    local = {"local": tmp_path, "text": tmp_path / "texts/train.txt", "recipe": recipe}
    absent, empty = REFUSALS[command]
    for url, expected in (("s3://no-such-bucket", absent.format(root="s3://no-such-bucket")), (bucket, empty)):
        if expected:
            assert expected in mistake(*command.format(url=url, **local).split())
    for fault, expected in (("refused", "access was refused"), ("no credentials", "needs credentials")):
        fsspec.filesystem("s3").clear_instance_cache()
        urls._known_roots.clear()
        with monkeypatch.context() as patch:
            if fault == "refused":
                set_fault(server, fault)
            else:
                for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
                    patch.delenv(name)
                patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
            sentence = mistake(*command.format(url=bucket, **local).split())
        set_fault(server, "")
        assert expected in sentence
    fsspec.filesystem("s3").clear_instance_cache()
    assert not (tmp_path / "new").exists()
