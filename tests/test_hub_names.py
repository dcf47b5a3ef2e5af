"""Models by name, from a local server that speaks the Hub's protocol."""

import importlib
import shutil

import numpy as np
import pytest

import albert_tf
from albert_tf.hub_names import is_hub_name, local_path
from tests.cli.terminal import output_of
from tests.hub_server import running_hub
from tests.toy_task import write_classifier

NAME = "owner/name"


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A classifier with files that are not needed beside it."""
    folder = write_classifier(tmp_path_factory.mktemp("published") / "model")
    (folder / "onnx").mkdir()
    (folder / "onnx/model.onnx").write_bytes(b"0" * 1000)
    (folder / "pytorch_model.bin").write_bytes(b"0" * 1000)
    (folder / "README.md").write_text("A model.")
    return folder


@pytest.fixture
def hub(published, tmp_path, monkeypatch):
    """The server, with an empty cache."""
    monkeypatch.chdir(tmp_path)
    with running_hub(published) as server:
        use_hub(monkeypatch, server.address, tmp_path / "cache")
        yield server


def use_hub(monkeypatch, address, cache):
    """Points huggingface_hub, which reads its environment when it is imported, to a server."""
    constants = importlib.import_module("huggingface_hub.constants")
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)


def test_a_model_is_downloaded_once_and_found_without_a_network(hub, published, monkeypatch):
    model = albert_tf.AlbertForSequenceClassification.from_pretrained(NAME)
    expected = albert_tf.AlbertForSequenceClassification.from_pretrained(published)
    ids = {"input_ids": np.array([[2, 9, 3]])}
    np.testing.assert_array_equal(model(ids)["logits"], expected(ids)["logits"])
    assert hub.asked.count("model.safetensors") == 1
    assert not {"onnx/model.onnx", "pytorch_model.bin", "README.md"} & set(hub.asked)
    albert_tf.AlbertForSequenceClassification.from_pretrained(NAME)
    assert hub.asked.count("model.safetensors") == 1
    use_hub(monkeypatch, "http://127.0.0.1:9", local_cache(monkeypatch))
    again = albert_tf.AlbertForSequenceClassification.from_pretrained(NAME)
    np.testing.assert_array_equal(again(ids)["logits"], expected(ids)["logits"])


def local_cache(monkeypatch):
    return importlib.import_module("huggingface_hub.constants").HF_HUB_CACHE


def test_a_tokenizer_needs_no_weights(hub, published):
    tokenizer = albert_tf.AlbertTokenizer.from_pretrained(NAME)
    assert tokenizer.encode("a fine day") == albert_tf.AlbertTokenizer.from_pretrained(published).encode("a fine day")
    assert "model.safetensors" not in hub.asked


def test_a_pipeline_takes_a_name(hub, published):
    assert albert_tf.pipeline(NAME)("a fine day") == albert_tf.pipeline(published)("a fine day")


def test_commands_take_a_name(hub, published, tmp_path):
    assert "pleasant" in output_of("predict", NAME, "a fine day")
    output_of("convert", NAME, tmp_path / "converted", "--to", "huggingface")
    converted = (tmp_path / "converted/model.safetensors").read_bytes()
    assert len(converted) == len((published / "model.safetensors").read_bytes())
    assert "gloomy" in output_of("export", NAME, "--name", "named", "--output", tmp_path) + output_of(
        "predict", tmp_path / "named", "nothing"
    )


def test_a_download_that_is_cut_off_is_completed(hub, published):
    hub.cut_off.add("model.safetensors")
    folder = local_path(NAME)
    assert (folder / "model.safetensors").read_bytes() == (published / "model.safetensors").read_bytes()
    assert hub.asked.count("model.safetensors") == 2


def test_a_revision_is_a_commit(hub):
    from tests.hub_server import COMMIT

    assert local_path(NAME, revision=COMMIT).name == COMMIT
    with pytest.raises(ValueError, match=r"^owner/name cannot be loaded: it has no revision 'no'\.$"):
        local_path(NAME, revision="no")


def test_what_cannot_be_loaded_is_one_sentence(hub, published, monkeypatch, tmp_path):
    with pytest.raises(
        ValueError, match=r"other/name cannot be loaded: it is neither a folder here nor a public model"
    ):
        local_path("other/name")
    hub.status, hub.error = 403, "GatedRepo"
    with pytest.raises(ValueError, match=r"its owner asks for an agreement"):
        local_path(NAME)
    hub.status = 200
    shutil.copytree(published, tmp_path / "bare", ignore=shutil.ignore_patterns("*.safetensors", "*.bin"))
    hub.folder = tmp_path / "bare"
    with pytest.raises(ValueError, match=r"has no model\.safetensors, pytorch_model\.bin or model\.weights\.h5"):
        local_path(NAME)
    use_hub(monkeypatch, "http://127.0.0.1:9", tmp_path / "empty")
    with pytest.raises(ValueError, match=r"the Hub cannot be reached .* was not downloaded before; give the path"):
        local_path(NAME)


def test_local_paths_win(hub, tmp_path):
    (tmp_path / "owner").mkdir()
    assert local_path(NAME) == NAME
    assert hub.asked == []
    assert not is_hub_name("model")
    assert not is_hub_name("/owner/name")
    with pytest.raises(ValueError, match=r"`revision` must be None with a local path"):
        local_path("model", revision="main")


def test_without_the_extra_the_cure_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(importlib.import_module("sys").modules, "huggingface_hub", None)
    with pytest.raises(ValueError, match=r"pip install 'albert-tf\[huggingface\]'"):
        albert_tf.AlbertTokenizer.from_pretrained(NAME)
