"""Proves that long texts are trained on and scored in windows, and that runs and commands say which texts were cut."""

import csv
import json
import warnings

import numpy as np
import pytest

import albert_tf
from albert_tf.tasks.sequence_classification.task import TextClassification
from albert_tf.trainer import FinetuneOptions, finetune, load_examples
from albert_tf.trainer.evaluation import evaluate_folder
from tests.cli.terminal import run
from tests.toy_task import mood_rows, tokenizer, write_pretrained
from tests.trainer.mood_runs import predictions

BEFORE = "the old man went by with a very old house and " * 4
CUT = "of {} texts did not fit into 32 tokens, and their ends were left out; raise `max_length`"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A pretrained model, and texts of which every other one has the word that decides in its second half."""
    folder = tmp_path_factory.mktemp("long")
    write_pretrained(folder / "start")
    for name, count, seed in (("train", 160, 1), ("dev", 60, 2)):
        rows = [(BEFORE * (number % 2) + text, label) for number, (text, label) in enumerate(mood_rows(count, seed))]
        with (folder / f"{name}.tsv").open("w", encoding="utf-8") as file:
            csv.writer(file, delimiter="\t").writerows([("text", "label"), *rows, ("", "gloomy")])
    return folder


def options_for(files, output, **changes):
    values = {"pretrained": files / "start", "train": files / "train.tsv", "dev": files / "dev.tsv", "output": output}
    training = {"max_length": 32, "epochs": 1, "learning_rate": 3e-3, "batch_size": 16}
    return FinetuneOptions(**{**values, **training, **changes})


@pytest.fixture(scope="module")
def learnt(files):
    return finetune(options_for(files, files / "windows", windows="mean", doc_stride=15, epochs=8))


@pytest.fixture(scope="module")
def cut(files):
    return finetune(options_for(files, files / "cut"))


def test_long_texts_are_learnt_in_windows(files, learnt):
    assert learnt.scores.accuracy > 0.9  # half of the texts say nothing in their first 32 tokens
    assert (learnt.cut_examples, learnt.train_examples) == (0, 161)
    cause = "texts had no tokens: they are empty, or the vocabulary leaves all of their characters out."
    assert learnt.notes[:2] == (f"train: 1 of 161 {cause}", f"dev: 1 of 61 {cause}")
    with (files / "train.tsv").open(encoding="utf-8") as file:
        texts = [row[0] for row in csv.reader(file, delimiter="\t")][1:]
    num_windows = len(tokenizer()(texts, max_length=32, doc_stride=15)["input_ids"])
    assert learnt.steps == 8 * -(-num_windows // 16)
    recipe = json.loads((files / "windows/recipe.json").read_text())
    assert (recipe["windows"], recipe["doc_stride"]) == ("mean", 15)


def test_predictions_are_those_of_the_run(files, learnt):
    examples, evaluation = evaluate_folder(files / "windows", files / "dev.tsv")
    assert (examples, evaluation.scores) == (61, learnt.scores)
    with (files / "dev.tsv").open(encoding="utf-8") as file:
        texts = [row[0] for row in csv.reader(file, delimiter="\t")][1:]
    found = [one.probabilities for one in albert_tf.pipeline(files / "windows")(texts)]
    expected = [float(row["probability of pleasant"]) for row in predictions(files / "windows")]
    np.testing.assert_allclose([one["pleasant"] for one in found], expected, atol=1e-5)


def test_each_window_has_the_label_and_the_weight_of_its_text(files):
    options = options_for(files, files / "x", windows="max", class_weights="balanced")
    rows = [("man " * 40, "a"), ("man", "b"), ("man " * 31, "a")]
    examples = load_examples([{"text": text, "label": label} for text, label in rows])
    task = TextClassification(tokenizer(), options.settings.with_facts(labels=examples.label_names()))
    encoded = task.training_examples(examples)
    inputs, targets, weights = encoded.training_batch(np.arange(len(encoded.lengths)))
    assert inputs["input_ids"].shape == (5, 32)
    assert targets.tolist() == [0, 0, 1, 0, 0]
    np.testing.assert_allclose(weights, [5 / 8, 5 / 8, 5 / 2, 5 / 8, 5 / 8])


@pytest.mark.exhaustive
def test_a_run_says_which_texts_were_cut(files, cut):
    assert cut.cut_examples == 80
    assert [note.partition(" as far")[0] for note in cut.notes[:4:2]] == [
        f"train: 80 {CUT.format(161)}",
        f"dev: 30 {CUT.format(61)}",
    ]
    assert cut.notes[1].startswith("train: 1 of 161 texts had no tokens")
    again = finetune(options_for(files, files / "cut"))
    assert (again.finished_before, again.cut_examples) == (True, 80)


@pytest.fixture
def shown():
    """Warnings are shown, as without the filters of the tests."""
    with warnings.catch_warnings():
        warnings.filterwarnings("always", ".* of ", UserWarning)
        yield


@pytest.mark.exhaustive
@pytest.mark.usefixtures("shown")
def test_commands_say_once_which_texts_were_cut(files, learnt, cut, tmp_path):
    data, expected = ("--data", files / "dev.tsv"), f"albert-tf: 30 {CUT.format(61)}"
    for command, output in (("predict", ("--output", tmp_path / "labels.csv")), ("evaluate", ())):
        code, _, err = run(command, cut.folder, *data, *output)
        assert code == 0
        assert err.count("albert-tf:") == 2, err
        assert expected in err
        assert "albert-tf: 1 of 61 texts had no tokens" in err
        code, _, err = run(command, cut.folder, *data, *output, "--set", "windows=max")
        assert (code, err.count("albert-tf:")) == (0, 1), err
        assert "did not fit" not in err
    assert "did not fit" not in run("predict", files / "windows", *data, "--output", tmp_path / "labels.csv")[2]
