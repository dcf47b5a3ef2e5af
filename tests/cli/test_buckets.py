"""From text to a served model, all from and to a bucket, with a run that is killed: the bits of local paths."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import urllib.request

import pytest

from albert_tf.files.urls import location
from tests.s3_server import environment
from tests.small_pipeline import LENGTH, NOVEL, VOCAB_SIZE, SmallPipeline, small_recipe

from .terminal import output_of
from .test_main_path import write_recipe

ROOT = pathlib.Path(__file__).parents[2]
pytestmark = pytest.mark.exhaustive
TEXTS = ("It rained all day.", "The hall stayed dry.")


@pytest.fixture(scope="module")
def server():
    """A server in a process of its own, because Python's threads would share a core with training."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.s3_server"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        url = process.stdout.readline().strip()
        with environment(url):
            yield url
        process.kill()


@pytest.fixture
def bucket(server, request):
    import s3fs

    name = request.node.name.replace("_", "-").partition("[")[0][:60]
    filesystem = s3fs.S3FileSystem()
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


def commands(root: str, recipe: pathlib.Path) -> dict[str, tuple]:
    """The commands up to an export; all paths are below `root`."""
    prepare = ("--split-sentences", "--max-seq-length", LENGTH, "--dupe-factor", 2, "--num-shards", 3)
    return {
        "train": ("train-tokenizer", f"{root}/texts", "--output", f"{root}/vocabulary", "--vocab-size", VOCAB_SIZE),
        "prepare": ("prepare", f"{root}/texts", "--output", f"{root}/examples", *prepare)
        + ("--tokenizer", f"{root}/vocabulary"),
        "pretrain": ("pretrain", recipe, "--output", f"{root}/run", "--examples", f"{root}/examples"),
        "finetune": ("finetune", f"{root}/run/model", "--output", f"{root}/task", "--train", f"{root}/table.tsv")
        + ("--dev", f"{root}/table.tsv", "--epochs", 2, "--learning-rate", "1e-3", "--max-length", LENGTH),
        "export": ("export", f"{root}/task", "--name", "task", "--output", f"{root}/exports"),
    }


def test_chain(bucket, tmp_path):
    import s3fs

    folder, table = texts(tmp_path)
    filesystem = s3fs.S3FileSystem()
    filesystem.put(str(folder), f"{bucket}/texts", recursive=True)
    filesystem.put(str(table), f"{bucket}/table.tsv")
    values = small_recipe(SmallPipeline(*["unused"] * 4), num_train_steps=400)
    del values["data"]
    recipe = write_recipe(tmp_path / "recipe.toml", values)
    here, there = commands(str(tmp_path), recipe), commands(bucket, recipe)
    for command in here.values():
        output_of(*command)
    for name in ("train", "prepare"):
        finish(start(*there[name]))
    killed = start(*there["pretrain"])
    checkpoint = location(f"{bucket}/run/checkpoints")
    while not any(path.name == "state.json" for path in checkpoint.glob("*/*")):
        assert killed.poll() is None, killed.communicate()
        time.sleep(0.2)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert not location(f"{bucket}/run/results.json").exists()
    assert "400 updates" in finish(start(*there["pretrain"], TMPDIR=str(tmp_path)))
    for name in ("finetune", "export"):
        finish(start(*there[name]))
    same = ["vocabulary/spiece.model", "examples/manifest.json", "run/model/model.safetensors"]
    same += [f"examples/pretraining-0000{shard}-of-00003.tfrecord" for shard in range(3)]
    same += ["run/results.json", "run/model/config.json", "task/model.safetensors", "task/config.json"]
    for name in same:
        assert location(f"{bucket}/{name}").read_bytes() == (tmp_path / name).read_bytes(), name
    assert not list(tmp_path.glob("albert_tf-*")), "copies were left"
    assert json.loads(output_of("predict", f"{bucket}/exports/task", *TEXTS, "--json")) == served(bucket, tmp_path)


def served(bucket: str, folder: pathlib.Path) -> list:
    """What `predict` says of the local export, which a server of the one in the bucket has to say too."""
    expected = json.loads(output_of("predict", folder / "exports/task", *TEXTS, "--json"))
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
