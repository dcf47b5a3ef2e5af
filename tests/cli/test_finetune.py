"""Proves that `albert-tf finetune` trains what its options say, prints its scores, and explains mistakes."""

import json
import shutil

import pytest

from albert_tf import AlbertForSequenceClassification
from tests.toy_task import write_mood_table, write_pretrained

from .terminal import mistake, output_of


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finetune")
    write_pretrained(folder / "pretrained")
    write_mood_table(folder / "train.tsv", 40, seed=1)
    write_mood_table(folder / "dev.tsv", 20, seed=2)
    return folder


def arguments(files, *more, start=None):
    tables = ("--train", files / "train.tsv", "--dev", files / "dev.tsv", "--output", files / "out")
    return ("finetune", start or files / "pretrained", *tables, "--epochs", 2, "--learning-rate", 0.001, *more)


def test_a_run_prints_its_scores_and_is_made_once(files):
    printed = output_of(*arguments(files, "--batch-size", 8))
    report = json.loads((files / "out" / "metrics.json").read_text())
    assert report["steps"] == 2 * 5
    assert f"{report['scores']['accuracy']:.4f}" in printed
    assert f"{report['majority_share']:.4f}" in printed
    recipe = json.loads((files / "out" / "recipe.json").read_text())
    assert (recipe["batch_size"], recipe["learning_rate"], recipe["from_scratch"]) == (8, 0.001, False)
    assert "already finished" in output_of(*arguments(files, "--batch-size", 8))
    assert "batch_size (there 8, here 16)" in mistake(*arguments(files, "--batch-size", 16))


@pytest.mark.exhaustive
def test_a_folder_fine_tuned_for_other_labels_is_a_start_too(files):
    first = AlbertForSequenceClassification.from_pretrained(files / "pretrained", num_labels=5, new_head=True)
    shutil.copytree(files / "pretrained", files / "first")
    first.save_pretrained(files / "first")
    output_of(*arguments(files, "--batch-size", 8, "--output", files / "second", start=files / "first"))
    assert len(json.loads((files / "second" / "config.json").read_text())["id2label"]) == 2


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--text-column", "txt"), "did you mean 'text'"),
        (("--optimizer", "sgd"), "`optimizer` is invalid"),
        (("--epochs", 0), "`epochs` is invalid"),
        (("--train", "missing.tsv"), "missing.tsv"),
        (("--keep", "first"), "`keep` is invalid"),
    ],
)
def test_mistakes(files, more, message):
    assert message in mistake(*arguments(files, *more))
