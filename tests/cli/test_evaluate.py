"""Proves that `albert-tf evaluate` prints the scores of the predictions that it writes."""

import collections
import csv
import json
import math
import re

import numpy as np
import pytest

from albert_tf.cli.tables import print_json, print_scores
from albert_tf.metrics import classification_scores
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
    printed = output_of("evaluate", files / "model", "--data", files / "one.tsv")
    assert "All examples have the same label, 'gloomy', so that the scores tell little." in printed
    assert "Recall is undefined for labels that no example to evaluate on has: 'pleasant'." in printed


def test_each_label_and_the_confusion_matrix_are_shown(files):
    command = ("evaluate", files / "model", "--data", files / "test.tsv")
    printed, answer = output_of(*command), json.loads(output_of(*command, "--json"))
    scores = answer["scores"]
    assert sum(row["examples"] for row in scores["by_label"].values()) == answer["examples"] == 30
    for name, row in scores["by_label"].items():
        assert row["examples"] == sum(scores["confusion"][name].values())
        shown = (f"{row['precision']:.4f}", f"{row['recall']:.4f}", f"{row['f1']:.4f}", str(row["examples"]))
        assert re.search(rf"{name}\W+{'[^0-9]+'.join(map(re.escape, shown))}", printed)
        counts = [str(scores["confusion"][name].get(other, 0)) for other in scores["by_label"]]
        assert re.search(rf"{name}\W+{'[^0-9]+'.join(counts)}\D", printed)


def test_an_undefined_correlation_is_null_and_said_in_a_sentence(files, tmp_path):
    write_classifier(tmp_path / "model", problem="regression")
    (tmp_path / "equal.tsv").write_text("text\tlabel\nfine\t3\ndull\t3\n")
    command = ("evaluate", tmp_path / "model", "--data", tmp_path / "equal.tsv")
    sentence = "The scores pearson, spearman are undefined, because all labels are 3."
    assert sentence in output_of(*command)
    answer = json.loads(output_of(*command, "--json"), parse_constant=pytest.fail)
    assert (answer["scores"]["pearson"], answer["scores"]["spearman"], answer["notes"]) == (None, None, [sentence])
    assert answer["scores"]["mean_squared_error"] > 0


def test_json_has_no_nan_and_no_lone_surrogates(capsys):
    print_json({"\ud800": np.array([math.nan, 0.5]), "largest": math.inf})
    printed = capsys.readouterr().out
    assert json.loads(printed, parse_constant=pytest.fail) == {"\ud800": [None, 0.5], "largest": None}


def test_many_labels_stay_readable(capsys):
    names = [f"label {number}" for number in range(50)]
    labels = np.repeat(np.arange(50), np.arange(1, 51))
    print_scores("scores", classification_scores(labels, np.maximum(labels - 1, 0), names), None, "metrics.json")
    printed = capsys.readouterr().out
    assert "the most frequent of 50 labels; all are in metrics.json" in " ".join(printed.split())
    assert re.search(r"label 49\W+undefined\W+0\.0000\W+0\.0000\W+50\W", printed)
    assert "predictions" not in printed  # the confusion of so many
    assert len(printed.splitlines()) < 70
    assert "label 5 " not in printed


@pytest.mark.exhaustive
def test_another_threshold_gives_other_labels(folders, tmp_path):
    (tmp_path / "a.tsv").write_text("text\tlabel\none\ta\ntwo\ta, b\n")
    command = ("evaluate", folders["multi_label"], "--data", tmp_path / "a.tsv", "--json")
    for given, exact_match in ((("=0",), 0.5), (("=1",), 0.0), ((".a=0", ".b=1"), 0.5)):
        options = [f"--set=threshold{value}" for value in given]
        assert json.loads(output_of(*command, *options))["scores"]["exact_match"] == exact_match
    classifier = ("evaluate", folders["classifier"], "--data", tmp_path / "a.tsv", "--set", "threshold=0.5")
    assert "`threshold` must be left out unless problem='multi_label'" in mistake(*classifier)


def test_mistakes(files):
    (files / "other.tsv").write_text("text\tlabel\na\tsad\n")
    assert "line 2: the label 'sad' is not one of 'gloomy', 'pleasant'" in mistake(
        "evaluate", files / "model", "--data", files / "other.tsv"
    )
    pair = ("--pair-column", "text")
    assert "was trained on single texts" in mistake("evaluate", files / "model", "--data", files / "test.tsv", *pair)
    scorer = ("--set", "scorer=korquad")
    assert "`scorer` must be left out" in mistake("evaluate", files / "model", "--data", files / "test.tsv", *scorer)
    assert "check the spelling" in mistake("evaluate", files / "nowhere", "--data", files / "test.tsv")
