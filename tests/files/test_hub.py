"""Proves that models are found by their names on a server like huggingface.co, and that a failure has a cure."""

import json
import os
import pathlib
import sys

import numpy as np
import pytest
from huggingface_hub import constants

from albert_tf import AlbertEncoder, AlbertTokenizer, pipeline
from albert_tf.files.hub import model_folder
from albert_tf.files.installation import install_command
from tests import disk
from tests.cli.terminal import output_of
from tests.hub_server import commit, hub_server

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


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A server in place of huggingface.co, and an empty cache."""
    monkeypatch.delenv("HF_TOKEN", raising=False)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    with hub_server() as server:
        server.revisions["some/model"] = {"main": dict(FILES)}
        use(monkeypatch, server.url)
        yield server


def use(monkeypatch, url):
    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}")


def fetch(*arguments, weights=True) -> str:
    """The folder, or the error."""
    try:
        return str(model_folder(*arguments, weights=weights))
    except ValueError as error:
        return str(error)


def contents(folder: str) -> dict[str, bytes]:
    return disk.contents(pathlib.Path(folder))


def asked(server) -> list[str]:
    names = sorted(name for name, _ in server.downloads)
    server.downloads.clear()
    return names


def test_only_what_is_needed_is_downloaded_and_only_once(server):
    fetch("some/model", weights=False)
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
def test_other_formats_of_weights(server, wanted, others):
    files = {name: name.encode() for name in (wanted + " " + others).split()}
    server.revisions["some/model"]["main"] = {"config.json": b"{}", **files}
    fetch("some/model")
    assert asked(server) == sorted(["config.json", *wanted.split()])


@pytest.mark.exhaustive
def test_revisions(server):
    old = {**FILES, "config.json": b'{"old": 1}'}
    server.revisions["some/model"]["v1"] = old
    for arguments in ("some/model v1", "some/model@v1", f"some/model {commit(old)}", f"some/model@{commit(old)}"):
        assert contents(fetch(*arguments.split()))["config.json"] == old["config.json"]
    assert contents(fetch("some/model"))["config.json"] == b"{}"
    assert fetch("some/model", "v2").startswith(f"some/model at {server.url} has no branch, tag or commit v2; check")


def test_a_download_that_is_cut_goes_on(server):
    server.revisions["some/model"]["main"]["model.safetensors"] = BIG
    server.cuts["model.safetensors"] = [11_000_000]
    assert contents(fetch("some/model"))["model.safetensors"] == BIG
    ranges = [part for name, part in server.downloads if name == "model.safetensors"]
    assert len(ranges) == 2
    assert ranges[1] is None or ranges[1].startswith("bytes=")


@pytest.mark.exhaustive
def test_a_download_that_fails_is_repeated_by_the_next_call(server, monkeypatch):
    server.cuts["model.safetensors"] = [3] + [0] * 50
    message = fetch("some/model")
    assert message.startswith("some/model is neither a folder nor in the download cache, and downloading it from")
    assert message.endswith("or download its files on another machine and pass their folder.")
    assert "\n" not in message
    with monkeypatch.context() as offline:
        offline.setattr(constants, "HF_HUB_OFFLINE", True)
        assert "neither a folder" in fetch("some/model"), "half a download is none"
    server.cuts.clear()
    assert contents(fetch("some/model")) == {name: FILES[name] for name in NEEDED}


@pytest.mark.exhaustive
def test_without_a_network_an_earlier_download_is_used(server, monkeypatch):
    def nowhere(patch):
        use(patch, "http://127.0.0.1:9")  # nothing listens there

    def offline(patch):
        patch.setattr(constants, "HF_HUB_OFFLINE", True)

    def without(how, *arguments, **options):
        with monkeypatch.context() as patch:
            how(patch)
            return fetch("some/model", *arguments, **options)

    for how in (nowhere, offline):
        assert "is neither a folder nor in the download cache" in without(how)
    folder = fetch("some/model", weights=False)
    assert without(nowhere, weights=False) == folder
    assert "is neither a folder nor in the download cache" in without(nowhere), "no weights"
    fetch("some/model")
    server.downloads.clear()
    for how in (nowhere, offline):
        assert without(how) == folder
        assert "neither a folder" in without(how, "v1")
    assert asked(server) == []


def test_models_that_cannot_be_had(server, monkeypatch):
    missing = f"There is neither a folder some/modle nor a public model with this name at {server.url}; check the spel"
    assert fetch("some/modle").startswith(missing)
    server.gated.add("some/model")
    gated = f"some/model is a gated model: accept its conditions on its page at {server.url}, then log in with `hf auth"
    assert fetch("some/model").startswith(gated)
    server.revisions["some/keras"] = {"main": {"config.json": b"{}", "flax_model.msgpack": b""}}
    assert fetch("some/keras").startswith(f"some/keras at {server.url} has no weights in a known format (model.safeten")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    hint = f"some/model does not exist; if it is a model on huggingface.co, {install_command('hub')}, or download its"
    assert fetch("some/model").startswith(hint)


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


@pytest.mark.exhaustive
def test_models_tokenizer_and_commands_take_names(server, folders):
    folder, name = folders["classifier"], "some/model"
    server.revisions[name] = {"main": contents(folder)}
    inputs = AlbertTokenizer.from_pretrained(name, revision="main")(["A text."])
    expected = AlbertEncoder.from_pretrained(folder)(inputs)["sequence_output"]
    for encoder in (AlbertEncoder.from_pretrained(name, revision="main"), pipeline(name).model.model.encoder):
        np.testing.assert_allclose(encoder(inputs)["sequence_output"], expected, rtol=1e-5)
    printed = json.loads(output_of("predict", name, "A text."))
    assert printed["prediction"]["score"] == pytest.approx(pipeline(folder)("A text.").score, abs=1e-6)
    assert "model.json" in asked(server), "the length of fine-tuning is known"
