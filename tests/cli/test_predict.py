"""Proves that `albert-tf predict` shows what a model says of texts, whatever it was trained for."""

import contextlib
import io
import itertools
import json

import pytest

import albert_tf
from albert_tf.cli.tables import print_json
from tests.toy_task import write_classifier

from .terminal import mistake, output_of


def answers(*arguments):
    """The predictions that the command prints for texts, a line of JSON each."""
    return [json.loads(line)["prediction"] for line in output_of("predict", *arguments).splitlines()]


def as_json(prediction):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        print_json(prediction)
    return json.loads(printed.getvalue())


@pytest.mark.parametrize(
    ("kind", "texts", "pairs"),
    [
        ("classifier", ["a [first] text", "another"], []),
        ("multi_label", ["a text"], []),
        ("pretrained", ["the old [MASK].", "the [MASK] old [MASK]."], []),
        ("pretrained", ["one", "two"], ["two", "three"]),
        ("questions", ["Who is he?"], ["He is the old man."]),
        ("tags", ["He went to Rome"], []),
        ("choices", ["He left."], [["He is away.", "He is here."]]),
    ],
)
def test_a_line_has_the_texts_and_the_prediction_of_the_pipeline(folders, kind, texts, pairs):
    options = [("--pair", pair) for pair in (pairs[0] if kind == "choices" else pairs)]
    lines = output_of("predict", folders[kind], *texts, *itertools.chain(*options)).splitlines()
    predictions = albert_tf.pipeline(folders[kind])(*([texts, pairs] if pairs else [texts]))
    expected = [{"text": text, "prediction": as_json(one)} for text, one in zip(texts, predictions, strict=True)]
    for row, pair in zip(expected, pairs):
        row["pair"] = pair
    assert [json.loads(line) for line in lines] == expected


@pytest.mark.parametrize(("form", "engine"), [("weights", "keras"), ("saved", "tensorflow"), ("onnx", "onnxruntime")])
def test_the_engine_can_be_chosen(folders, exports, onnx_folders, form, engine):
    folder = {"weights": folders.get, "saved": lambda kind: exports[kind].folder, "onnx": onnx_folders.get}[form]
    (shown,) = answers(folder("classifier"), "a text", "--engine", engine)
    expected = albert_tf.pipeline(folders["classifier"])("a text")
    assert shown["label"] == expected.label
    assert shown["probabilities"] == pytest.approx(expected.probabilities, abs=1e-4)
    wrong = "tensorflow" if form != "saved" else "openvino"
    assert "choose another engine" in mistake("predict", folder("classifier"), "a text", "--engine", wrong)


def test_runs_of_several_seeds_are_named(tmp_path):
    """A loop over seeds leaves a folder of them."""
    for seed in (0, 2, 10):
        write_classifier(tmp_path / "runs" / f"seed-{seed}")
    listed = ", ".join(f"{tmp_path}/runs/seed-{seed}" for seed in (0, 10, 2))
    assert mistake("predict", tmp_path / "runs", "a text").endswith(f"give one of them: {listed}.")


def test_control_characters_are_escaped(folders):
    printed = output_of("predict", folders["classifier"], "a\x1b[2Jb")
    assert "\x1b" not in printed
    assert json.loads(printed)["text"] == "a\x1b[2Jb"


def test_texts_without_a_label_are_shown(folders):
    shares = albert_tf.pipeline(folders["multi_label"])("a text").probabilities
    first, second = sorted(shares.values())
    command = ("predict", folders["multi_label"], "a text", "--set")
    for threshold, labels in ((second + 0.01, []), ((first + second) / 2, [max(shares, key=shares.__getitem__)])):
        (found,) = answers(*command[1:], f"threshold={threshold}")
        assert found["labels"] == labels
    limits = f"threshold.a={shares['a'] - 0.01}", "--set", f"threshold.b={shares['b'] + 0.01}"
    assert answers(*command[1:], *limits)[0]["labels"] == ["a"]
    for wrong, message in {
        ".x=0.5": "`threshold` must name labels of the model. Received: 'x'.",
        "=1.5": "`threshold` must be a number from 0 to 1, such numbers by label, or 'per_label'. Received: "
        "threshold=1.5.",
        "=half": "`threshold` must be a number from 0 to 1, such numbers by label, or 'per_label'. Received: "
        "threshold='half'.",
    }.items():
        assert mistake(*command, f"threshold{wrong}") == f"albert-tf: {message}"
    classifier = ("predict", folders["classifier"], "a text", "--set", "threshold=0.4")
    assert "must be left out unless problem='multi_label'" in mistake(*classifier)


DATA = ("--data", "a.tsv")


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        ("pretrained", ("text",), "must contain [MASK]"),
        ("pretrained", ("a", "b", "--pair", "c"), "must be given once for each text"),
        ("questions", ("Who is he?",), "takes question and context. Received: ['Who is he?']"),
        ("choices", ("a", "b", "--pair", "c"), "must be given once for each text"),
        ("classifier", ("a", "--pair", "c"), "was trained on single texts"),
        ("nowhere", ("a",), "check the spelling"),
        ("nowhere", (), "Either texts or `--data`"),
        ("nowhere", ("a text", *DATA), "Either texts or `--data`"),
        ("nowhere", (*DATA, "--pair", "a"), "`--pair` is only for texts"),
        ("nowhere", ("a text", "--output", "a.tsv"), "are only for `--data`; leave them out"),
        ("nowhere", ("a text", "--pair-column", "b"), "are only for `--data`; leave them out"),
        ("nowhere", ("a text", "--set", "header=false"), "are only for `--data`; leave them out"),
        ("nowhere", (*DATA, "--format", "csv"), "`--format` must be given with `--data -`, and only there"),
        ("nowhere", ("--data", "-"), "with `--data -`, and only there: text (one in each line)"),
        ("nowhere", (*DATA, "--set", "header=3"), "`header` is invalid"),
        ("nowhere", (*DATA, "--set", "hedder=true"), "Unknown key 'hedder' in --set; did you mean 'header'?"),
        ("nowhere", (*DATA, "--set", "epochs=3"), "it must be one of threshold, windows, header"),
    ],
)
def test_mistakes(kind, arguments, message, folders):
    assert message in mistake("predict", folders.get(kind, kind), *arguments)
