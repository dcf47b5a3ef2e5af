"""Proves that `albert-tf evaluate` prints the scores of the predictions that it writes."""

import collections
import csv
import json

import numpy as np
import pytest

from tests.toy_task import write_classifier, write_mood_table

from .terminal import mistake, output_of


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluate")
    write_classifier(folder / "model", labels=["gloomy", "pleasant"])
    write_mood_table(folder / "test.tsv", 30, seed=1)
    return folder


def test_scores_are_those_of_the_predictions(files):
    printed = output_of(
        *("evaluate", files / "model", "--data", files / "test.tsv", "--batch-size", 7),
        *("--predictions", files / "predictions.tsv"),
    )
    with (files / "predictions.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert len(rows) == 30
    accuracy = np.mean([row["label"] == row["prediction"] for row in rows])
    assert f"{accuracy:.4f}" in printed
    assert "30 examples" in printed
    most = max(collections.Counter(row["label"] for row in rows).values()) / 30
    assert f"accuracy of the most frequent label │ {most:.4f}" in printed
    assert "same label" not in printed
    (files / "one.tsv").write_text("text\tlabel\na\tgloomy\nb\tgloomy\n")
    assert "All examples have the same label" in output_of("evaluate", files / "model", "--data", files / "one.tsv")


def test_another_threshold_gives_other_labels(folders, tmp_path):
    (tmp_path / "a.tsv").write_text("text\tlabel\none\ta\ntwo\ta, b\n")
    command = ("evaluate", folders["multi_label"], "--data", tmp_path / "a.tsv", "--json")
    for given, exact_match in ((("0",), 0.5), (("1",), 0.0), (("a=0", "b=1"), 0.5)):
        options = [f"--threshold={value}" for value in given]
        assert json.loads(output_of(*command, *options))["scores"]["exact_match"] == exact_match
    classifier = ("evaluate", folders["classifier"], "--data", tmp_path / "a.tsv", "--threshold", "0.5")
    assert "`threshold` must be left out unless a text may have any number of labels" in mistake(*classifier)


def test_mistakes(files):
    (files / "other.tsv").write_text("text\tlabel\na\tsad\n")
    assert "line 2: the label 'sad' is not one of 'gloomy', 'pleasant'" in mistake(
        "evaluate", files / "model", "--data", files / "other.tsv"
    )
    pair = ("--pair-column", "text")
    assert "was trained on single texts" in mistake("evaluate", files / "model", "--data", files / "test.tsv", *pair)
    scorer = ("--scorer", "korquad")
    assert "`scorer` must be left out" in mistake("evaluate", files / "model", "--data", files / "test.tsv", *scorer)
    assert "check the spelling" in mistake("evaluate", files / "nowhere", "--data", files / "test.tsv")
