"""Proves that models are found by their names on a server like huggingface.co, and that a failure has a cure."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from albert_tf.files.hub import model_folder
from albert_tf.files.installation import install_command
from tests import disk
from tests.hub_server import commit, hub_server
from tests.small_pipeline import REPOSITORY
from tests.toy_task import CONFIG

BIG = bytes(range(256)) * 50_000  # more than huggingface_hub holds back before it writes
FILES = {
    "config.json": b"{}",
    "model.safetensors": b"weights",
    "pytorch_model.bin": b"weights of PyTorch",
    "tf_model.h5": b"weights of TensorFlow",
    "spiece.model": b"pieces",
    "README.md": b"# A model",
    "1_Pooling/config.json": b'{"pooling_mode": "mean"}',
    "onnx/model.onnx": b"a graph",
}
NEEDED = ["1_Pooling/config.json", "config.json", "model.safetensors", "spiece.model"]
CALL = """
import sys
from albert_tf.files.hub import model_folder
try:
    print(model_folder(*sys.argv[2:4], weights=sys.argv[1] == "weights"))
except ValueError as error:
    print(error)
"""


@pytest.fixture
def server():
    with hub_server() as server:
        server.revisions["some/model"] = {"main": dict(FILES)}
        yield server


@pytest.fixture
def start(server, tmp_path):
    """Runs Python in an empty folder, with the server in place of huggingface.co; returns what it prints."""

    def run(*arguments, **environment) -> str:
        own = {"PYTHONPATH": str(REPOSITORY), "HF_ENDPOINT": server.url, "HF_HOME": str(tmp_path / "cache")}
        (tmp_path / "here").mkdir(exist_ok=True)
        environment = {**os.environ, **own, **environment}
        environment.pop("HF_TOKEN", None)
        options = {"env": environment, "cwd": tmp_path / "here", "capture_output": True, "text": True, "timeout": 120}
        done = subprocess.run([sys.executable, *map(str, arguments)], **options)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


@pytest.fixture
def fetch(start):
    """Calls `model_folder` in a new process."""
    return lambda *arguments, kind="weights", **environment: start("-c", CALL, kind, *arguments, **environment)


def contents(folder: str) -> dict[str, bytes]:
    return disk.contents(pathlib.Path(folder))


def asked(server) -> list[str]:
    names = sorted(name for name, _ in server.downloads)
    server.downloads.clear()
    return names


def test_only_what_is_needed_is_downloaded_and_only_once(server, fetch):
    fetch("some/model", kind="tokenizer")
    assert asked(server) == [name for name in NEEDED if name != "model.safetensors"]
    assert contents(fetch("some/model")) == {name: FILES[name] for name in NEEDED}
    assert asked(server) == ["model.safetensors"]
    assert fetch("some/model").endswith(commit(FILES))
    assert asked(server) == []


@pytest.mark.parametrize(
    ("wanted", "others"),
    [
        # What is asked for, and what else there is.
        ("model.safetensors.index.json model-00001-of-00002.safetensors model-00002-of-00002.safetensors", ""),
        ("pytorch_model.bin", ""),
        ("model.weights.h5 metadata.json assets/tokenizer/vocabulary.spm", ""),
        ("model.safetensors.index.json model-00001-of-00001.safetensors", "pytorch_model.bin"),
        ("pytorch_model.bin.index.json pytorch_model-00001-of-00001.bin", "model-00001-of-00001.safetensors"),
    ],
)
def test_other_formats_of_weights(server, fetch, wanted, others):
    files = {name: name.encode() for name in (wanted + " " + others).split()}
    server.revisions["some/model"]["main"] = {"config.json": b"{}", **files}
    fetch("some/model")
    assert asked(server) == sorted(["config.json", *wanted.split()])


@pytest.mark.exhaustive
def test_revisions(server, fetch):
    old = {**FILES, "config.json": b'{"old": 1}'}
    server.revisions["some/model"]["v1"] = old
    for arguments in ("some/model v1", "some/model@v1", f"some/model {commit(old)}", f"some/model@{commit(old)}"):
        assert contents(fetch(*arguments.split()))["config.json"] == old["config.json"]
    assert contents(fetch("some/model"))["config.json"] == b"{}"
    assert fetch("some/model", "v2").startswith(f"some/model at {server.url} has no branch, tag or commit v2; check")


def test_a_download_that_is_cut_goes_on(server, fetch):
    server.revisions["some/model"]["main"]["model.safetensors"] = BIG
    server.cuts["model.safetensors"] = [11_000_000]
    assert contents(fetch("some/model"))["model.safetensors"] == BIG
    ranges = [part for name, part in server.downloads if name == "model.safetensors"]
    assert len(ranges) == 2
    assert ranges[1] is None or ranges[1].startswith("bytes=")


@pytest.mark.exhaustive
def test_a_download_that_fails_is_repeated_by_the_next_call(server, fetch):
    server.cuts["model.safetensors"] = [3] + [0] * 50
    message = fetch("some/model")
    assert message.startswith("some/model is neither a folder nor in the download cache, and downloading it from")
    assert message.endswith("or download its files on another machine and pass their folder.")
    assert "\n" not in message
    assert "neither a folder" in fetch("some/model", HF_HUB_OFFLINE="1"), "half a download is none"
    server.cuts.clear()
    assert contents(fetch("some/model")) == {name: FILES[name] for name in NEEDED}


@pytest.mark.exhaustive
def test_without_a_network_an_earlier_download_is_used(server, fetch):
    nowhere = {"HF_ENDPOINT": "http://127.0.0.1:9"}  # nothing listens there
    for offline in (nowhere, {"HF_HUB_OFFLINE": "1"}):
        assert "is neither a folder nor in the download cache" in fetch("some/model", **offline)
    folder = fetch("some/model", kind="tokenizer")
    assert fetch("some/model", kind="tokenizer", **nowhere) == folder
    assert "is neither a folder nor in the download cache" in fetch("some/model", **nowhere), "no weights"
    fetch("some/model")
    server.downloads.clear()
    for offline in (nowhere, {"HF_HUB_OFFLINE": "1"}):
        assert fetch("some/model", **offline) == folder
        assert "neither a folder" in fetch("some/model", "v1", **offline)
    assert asked(server) == []


def test_models_that_cannot_be_had(server, fetch, start):
    missing = f"There is neither a folder some/modle nor a public model with this name at {server.url}; check the spel"
    assert fetch("some/modle").startswith(missing)
    server.gated.add("some/model")
    gated = f"some/model is a gated model: accept its conditions on its page at {server.url}, then log in with `hf auth"
    assert fetch("some/model").startswith(gated)
    server.revisions["some/keras"] = {"main": {"config.json": b"{}", "flax_model.msgpack": b""}}
    assert fetch("some/keras").startswith(f"some/keras at {server.url} has no weights in a known format (model.safeten")
    blocked = "import sys; sys.modules['huggingface_hub'] = None\n" + CALL
    hint = f"some/model does not exist; if it is a model on huggingface.co, {install_command('hub')}, or download its"
    assert start("-c", blocked, "weights", "some/model").startswith(hint)


def test_a_path_is_no_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "some" / "model").mkdir(parents=True)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)  # whoever asks for it, fails
    paths = ("some/model", "some", "model", "./model.ckpt", "a/b/c", "/a/b", "../b", "a\\b", "~/b", "")
    for path in paths:
        assert model_folder(path).as_posix() == os.path.normpath(path).replace("\\\\", "\\")
    assert model_folder("some/model", "v1").as_posix() == "some/model", "what exists wins"
    for name in ("some/other@main", "other/model"):
        with pytest.raises(ValueError, match="does not exist; if it is a model on huggingface"):
            model_folder(name)


USE = """
import albert_tf, numpy as np
tokenizer = albert_tf.AlbertTokenizer.from_pretrained("some/model", revision="main")
models = [albert_tf.AlbertEncoder.from_pretrained("some/model", revision="main")]
models.append(albert_tf.pipeline("some/model").model.model.encoder)
for model in models:
    print(float(np.abs(np.asarray(model(tokenizer(["A text."]))["sequence_output"])).sum()))
import sys
from albert_tf.cli.app import main
sys.argv = ["albert-tf", "predict", "some/model", "A text."]
main()
"""


@pytest.mark.exhaustive
def test_models_tokenizer_and_commands_take_names(server, start, folders):
    from albert_tf import AlbertEncoder, AlbertTokenizer, pipeline

    folder = folders["classifier"]
    server.revisions["some/model"] = {"main": contents(folder)}
    *sums, printed = start("-c", USE).split("\n", 2)
    inputs = AlbertTokenizer.from_pretrained(folder)(["A text."])
    expected = np.abs(np.asarray(AlbertEncoder.from_pretrained(folder)(inputs)["sequence_output"])).sum()
    np.testing.assert_allclose([float(one) for one in sums], expected, rtol=1e-5)
    prediction = pipeline(folder)("A text.")
    assert json.loads(printed)["prediction"]["score"] == pytest.approx(prediction.score, abs=1e-6)
    assert "model.json" in asked(server), "the length of fine-tuning is known"
    assert json.loads(contents(folder)["config.json"])["hidden_size"] == CONFIG.hidden_size
