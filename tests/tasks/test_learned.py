"""Proves that a task is added with a model, a folder and a row, as CONTRIBUTING.md says."""

import dataclasses
import pathlib
import random

import pytest

import albert_tf
from albert_tf import AlbertForSequenceClassification, models
from albert_tf.tasks.settings import read_settings
from albert_tf.tasks.table import TASKS, Task
from albert_tf.trainer import FinetuneOptions, finetune, load_examples
from albert_tf.trainer.evaluation import evaluate_folder, predict_folder
from tests.toy_task import write_pretrained

WORDS = {1: ("grief", "storm"), 2: ("house", "man"), 3: ("joy", "bloom")}


class AlbertForRating(AlbertForSequenceClassification):
    """A model of a new task."""

    architecture = "AlbertForRating"


@pytest.fixture
def rating(monkeypatch):
    page = (pathlib.Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    shown = eval(page.partition("```python\n")[2].partition("```")[0], {"Task": Task})
    row = dataclasses.replace(shown, kind=shown.kind.replace("albert_tf", "tests"))
    monkeypatch.setattr(models, "AlbertForRating", AlbertForRating, raising=False)
    TASKS.append(row)
    yield row
    TASKS.remove(row)


def write_lines(path, count, seed):
    chance = random.Random(seed)
    stars = [chance.choice((1, 2, 3)) for _ in range(count)]
    path.write_text("".join(f"{number} the {chance.choice(WORDS[number])} went by\n" for number in stars))
    return path


def test_a_new_task_is_trained_evaluated_and_predicted(rating, tmp_path):
    paths = {
        "pretrained": write_pretrained(tmp_path / "pretrained"),
        "train": write_lines(tmp_path / "train.txt", 160, seed=1),
        "dev": write_lines(tmp_path / "dev.txt", 40, seed=2),
        "output": tmp_path / "run",
    }
    assert load_examples(paths["dev"], task="rating").stars.max() == 3
    report = finetune(FinetuneOptions(task="rating", epochs=8, batch_size=16, learning_rate=3e-3, **paths))
    assert report.main_score == "pearson"
    assert report.scores.pearson > 0.9
    count, evaluation = evaluate_folder(tmp_path / "run", paths["dev"])
    assert (count, evaluation.scores) == (40, report.scores)
    assert read_settings(tmp_path / "run").highest == 3
    assert predict_folder(tmp_path / "run", paths["dev"], tmp_path / "out.tsv") == 40
    assert (tmp_path / "out.tsv").read_bytes() == (tmp_path / "run/dev_predictions.tsv").read_bytes()
    predictor = albert_tf.pipeline(tmp_path / "run")
    low, high = predictor(["the storm went by", "the joy went by"])
    assert low < 2 < high
    with pytest.raises(ValueError, match="`windows` must be left out for the task 'rating'"):
        albert_tf.pipeline(tmp_path / "run", windows="mean")


def test_without_its_row_it_is_unknown(tmp_path):
    paths = dict.fromkeys(("pretrained", "train", "dev", "output"), tmp_path)
    with pytest.raises(ValueError, match=r"`task` must be one of sequence_classification, .*Received: rating"):
        FinetuneOptions(task="rating", **paths)
    with pytest.raises(ValueError, match=r"`task` must be one of sequence_classification, .*Received: masked_lm"):
        FinetuneOptions(task="masked_lm", **paths)
