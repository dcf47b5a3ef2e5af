"""Proves that `albert-tf export` writes the version that it names."""

import json

import pytest

from albert_tf import AlbertTokenizer
from albert_tf.inference.network import INPUTS
from tests.toy_task import write_classifier

from .terminal import mistake, output_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_classifier(tmp_path_factory.mktemp("export") / "model")


@pytest.mark.exhaustive
def test_versions_and_forms_of_saved_models(folder, tmp_path):
    where = ("--name", "mood", "--output", tmp_path)
    printed = output_of("export", folder, *where, "--precision", "bfloat16", "--frozen", "--xla")
    assert f"SavedModel in {tmp_path / 'mood' / '1'}\n" in printed
    assert "labels, serving_default, tokenize, tokens" in printed
    assert (tmp_path / "mood" / "1" / "saved_model.pb").is_file()
    assert "version=1" in mistake("export", folder, *where, "--version", 1)
    card = json.loads((tmp_path / "mood" / "1" / "model.json").read_text())
    assert (card["precision"], card["frozen"], card["xla"]) == ("bfloat16", True, True)


@pytest.mark.exhaustive
def test_the_threshold_of_labels_is_that_of_the_export(folders, tmp_path):
    where = (folders["multi_label"], "--output", tmp_path, "--set", "threshold.a=0.25", "--name")
    for form in ("onnx", "litert"):
        output_of("export", *where, form, "--format", form)
        settings = json.loads((tmp_path / form / "1" / "model.json").read_text())
        assert settings["threshold"] == {"a": 0.25, "b": 0.5}
    assert "`threshold` is only for `--format saved_model, onnx, litert`" in mistake(
        "export", *where, "a", "--format", "hub"
    )
    assert "`threshold` must be left out" in mistake("export", folders["classifier"], *where[1:], "a")


def test_onnx_files(folder, tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("One text.\nAnother one.\n")
    where = ("--name", "mood", "--output", tmp_path, "--format", "onnx", "--calibration", texts)
    printed = output_of("export", folder, *where)
    assert f"ONNX files in {tmp_path / 'mood' / '1'}\n" in printed
    assert "int8" in printed
    assert (tmp_path / "mood" / "1" / "onnx" / "model_quantized.onnx").is_file()


@pytest.mark.exhaustive
def test_modules_for_tf_hub(folder, tmp_path):
    where = ("--name", "mood", "--output", tmp_path, "--format", "hub")
    printed = output_of("export", folder, *where, "--max-length", 16)
    assert f"SavedModels in {tmp_path / 'mood'}\n" in printed
    assert "tokenization_info, tokens" in printed
    assert {path.parent.name for path in tmp_path.rglob("saved_model.pb")} == {"encoder", "preprocess"}
    assert "`output` must not exist yet" in mistake("export", folder, *where)


@pytest.mark.exhaustive
def test_litert_files(folder, tmp_path):
    where = ("--name", "mood", "--output", tmp_path, "--format", "litert")
    printed = output_of("export", folder, *where, "--int8", "--max-length", 16)
    version = tmp_path / "mood" / "1"
    assert f"MB for 16 tokens in {version}\n" in printed
    assert AlbertTokenizer.from_pretrained(version).vocab_size == 30000
    card = json.loads((version / "model.json").read_text())
    assert (card["task"], card["max_length"], len(card["labels"])) == ("sequence_classification", 16, 3)
    from ai_edge_litert.interpreter import Interpreter

    run = Interpreter(str(version / "model.tflite")).get_signature_runner()
    assert {name: tuple(one["shape"]) for name, one in run.get_input_details().items()} == dict.fromkeys(
        INPUTS, (1, 16)
    )
    assert "from 3 to" in mistake("export", folder, *where, "--max-length", 5000)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("nowhere --name a", "check the spelling"),
        ("MODEL --name a/b", "must be a folder name"),
        ("MODEL --name a/b --format hub", "must be a folder name"),
        ("MODEL --name a --float16", "`--float16` is only for `--format onnx`"),
        ("MODEL --name a --format hub --precision bfloat16", "`--precision` is only for `--format saved_model`"),
        ("MODEL --name a --format litert --flash-attention", "`--flash-attention` is only for `--format saved_model`"),
        ("MODEL --name a --format onnx --int8", "is only for `--format litert`"),
        ("MODEL --name a --format hub --set windows=mean", "`windows` is only for `--format saved_model, onnx`"),
        ("MODEL --name a --format hub --version 2", "`--version` is only for `--format saved_model, onnx, litert`"),
        ("MODEL --name a --version 0", "must be at least 1"),
    ],
)
def test_mistakes(options, message, folder, tmp_path):
    assert message in mistake("export", "--output", tmp_path, *options.replace("MODEL", str(folder)).split())
    assert not any(tmp_path.iterdir())
