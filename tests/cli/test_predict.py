"""Proves that `albert-tf predict` shows what a model says, whatever it was trained for, in memory or exported."""

import pytest

from albert_tf.export import classify, export_saved_model, fill_mask, load_folder, sentence_order
from tests.toy_task import write_classifier, write_pretrained

from .terminal import mistake, output_of


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("predict")
    write_classifier(folder / "classifier", labels=["gloomy [x]", "pleasant"])
    write_pretrained(folder / "pretrained")
    for kind in ("classifier", "pretrained"):
        export_saved_model(folder / kind, folder / "saved", kind)
    return folder


@pytest.mark.parametrize("where", ["", "saved"])
def test_labels_with_probabilities(files, where):
    printed = output_of("predict", files / where / "classifier", "a [first] text", "another")
    for prediction in classify(load_folder(files / "classifier"), ["a [first] text", "another"]):
        for share in prediction.probabilities.values():
            assert f"{share:.4f}" in printed
    assert "gloomy [x]" in printed
    assert "a [first] text" in printed


@pytest.mark.parametrize("where", ["", "saved"])
def test_pieces_and_orders(files, where):
    loaded, folder = load_folder(files / "pretrained"), files / where / "pretrained"
    guess = fill_mask(loaded, ["the old [MASK]."])[0]
    printed = output_of("predict", folder, "the old [MASK].")
    assert all(piece in printed for piece in guess.pieces)
    share = sentence_order(loaded, ["one"], ["two"])[0]
    printed = output_of("predict", folder, "one", "--pair", "two")
    assert f"{max(share, 1 - share):.4f}" in printed
    assert "comes first" in printed


def test_control_characters_are_escaped_and_long_texts_complete(files):
    printed = output_of("predict", files / "classifier", "a\x1b[2Jb", "long " * 30, columns=60)
    assert "\x1b" not in printed
    assert "a\\x1b[2Jb" in printed
    assert printed.count("long") == 30


def test_mistakes(files):
    assert "must contain [MASK] exactly once" in mistake("predict", files / "pretrained", "text")
    assert "must contain [MASK] exactly once" in mistake("predict", files / "saved" / "pretrained", "text")
    assert "must be given once for each text" in mistake("predict", files / "pretrained", "a", "b", "--pair", "c")
    assert "was trained on single texts" in mistake("predict", files / "classifier", "a", "--pair", "c")
    assert "was trained on text" in mistake("predict", files / "saved" / "classifier", "a", "--pair", "c")
    assert "check the spelling" in mistake("predict", files / "nowhere", "a")
