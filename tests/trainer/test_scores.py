"""What a fine-tuning says of its scores: undefined ones in its files, their reasons, and the label that F1 is of."""

import json
import math

import numpy as np
import pytest

from albert_tf.metrics import RegressionScores
from albert_tf.report import write_report
from albert_tf.tasks.sequence_classification.evaluation import LabelEvaluation
from albert_tf.trainer import finetune
from albert_tf.trainer.evaluation import evaluate_folder
from albert_tf.trainer.finetune_report import read_report
from albert_tf.trainer.run_folder import read_metrics
from tests.trainer.mood_runs import options_for, write_files


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("scores"))


@pytest.fixture(scope="module")
def undefined(files):
    """A run whose dev set has equal labels."""
    for name, numbers in (("train", (1, 2, 3, 4)), ("dev", (3, 3))):
        rows = "".join(f"{number} fine {name}\t{number}\n" for number in numbers)
        (files / f"{name}_numbers.tsv").write_text(f"text\tlabel\n{rows}", encoding="utf-8")
    paths = {name: files / f"{name}_numbers.tsv" for name in ("train", "dev")}
    options = options_for(files, files / "undefined", problem="regression", epochs=2, **paths)
    return options, finetune(options)


@pytest.mark.exhaustive
def test_an_undefined_score_is_null_in_every_file_and_read_again(undefined):
    options, report = undefined
    sentence = "The scores pearson, spearman are undefined, because all labels are 3."
    assert sentence in report.notes
    content = json.loads((options.output / "metrics.json").read_text("utf-8"), parse_constant=pytest.fail)
    assert (content["scores"]["pearson"], content["score_by_evaluation"]) == (None, [None, None])
    assert sentence in content["notes"]
    for line in (options.output / "metrics.jsonl").read_text("utf-8").splitlines():
        assert json.loads(line, parse_constant=pytest.fail)["val_pearson"] is None
    assert all(math.isnan(entry["val_pearson"]) for entry in read_metrics(options.output / "metrics.jsonl"))
    assert json.loads(report.model_dump_json())["scores"]["pearson"] is None
    again = finetune(options)
    assert again.finished_before
    assert isinstance(again.scores, RegressionScores)
    assert all(map(math.isnan, (again.scores.pearson, *again.score_by_evaluation)))
    assert again.scores.mean_squared_error == report.scores.mean_squared_error
    page = write_report(options.output).file.read_text("utf-8")
    assert "<th>scores.pearson</th><td>undefined</td>" in page
    assert "nan" not in page.lower()


def test_an_entry_without_a_step_is_refused(tmp_path):
    file = tmp_path / "metrics.jsonl"
    file.write_text('{"step": null, "loss": 1.0}\n')
    with pytest.raises(ValueError, match="has no step, no loss or a value that is not a number"):
        read_metrics(file)


@pytest.mark.parametrize(
    ("predictions", "sentence"),
    [
        ([1.0, 2.0, np.nan], "pearson, spearman, mean squared error are undefined, because 1 of 3 predictions are not"),
        ([2.0, 2.0, 2.0], "The scores pearson, spearman are undefined, because all predictions are 2."),
    ],
)
def test_why_a_correlation_is_undefined(predictions, sentence):
    logits = np.array(predictions, np.float32)[:, None]
    evaluation = LabelEvaluation("regression", (), np.array([1.0, 2.0, 3.0]), logits, "pearson")
    assert sentence in " ".join(evaluation.notes)


@pytest.mark.parametrize(
    ("targets", "sentence"),
    [
        ([[0, 0], [0, 0]], "All examples have no label, so that the scores tell little."),
        ([[1, 1], [1, 1]], "All examples have the same label, 'a', 'b', so that the scores tell little."),
        ([[1, 0], [1, 1]], "Precision is undefined for labels that are never predicted: 'b'."),
    ],
)
def test_labels_that_tell_little(targets, sentence):
    logits = np.array([[1.0, -1.0], [1.0, -1.0]], np.float32)
    assert sentence in LabelEvaluation("multi_label", ("a", "b"), np.array(targets), logits, "f1_micro").notes


def test_a_variance_of_one_is_no_single_label():
    logits = np.array([[1.0], [2.0]], np.float32)
    evaluation = LabelEvaluation("regression", (), np.array([1.0, 3.0], np.float32), logits, "pearson")
    assert (evaluation.constant_score.value, evaluation.notes) == (1.0, [])


@pytest.mark.exhaustive
def test_f1_is_of_the_label_of_the_recipe(files, tmp_path):
    report = finetune(options_for(files, tmp_path / "run", positive_label="gloomy", main_score="f1", epochs=1))
    scores = report.scores
    assert (scores.positive_label, scores.f1) == ("gloomy", scores.by_label["gloomy"].f1)
    assert report.score_by_evaluation == (scores.f1,)
    _, again = evaluate_folder(tmp_path / "run", files / "few.tsv")
    assert (again.scores, read_report(tmp_path / "run").scores) == (scores, scores)
    page = write_report(tmp_path / "run").file.read_text("utf-8")
    assert "<th>scores.positive_label</th><td>gloomy</td>" in page
    assert '<table id="labels">' in page
    assert '<table id="confusion">' in page
    assert "scores.by_label" not in page
    _, other = evaluate_folder(tmp_path / "run", files / "few.tsv", positive_label="pleasant")
    assert other.scores.f1 == scores.by_label["pleasant"].f1
    with pytest.raises(ValueError, match=r"`positive_label` must be one of two labels\. Received: 'happy' for 2"):
        finetune(options_for(files, tmp_path / "other", positive_label="happy"))


@pytest.mark.exhaustive
def test_labels_with_lone_surrogates_are_written_and_read_again(files, tmp_path):
    """JSON may hold them."""
    rows = [{"text": text, "label": label} for text, label in (("sun", "\ud800"), ("rain", "b")) * 8]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    options = options_for(files, tmp_path / "run", train=tmp_path / "rows.jsonl", dev=tmp_path / "rows.jsonl")
    report = finetune(options)
    assert report.scores.by_label["\ud800"].examples == 8
    assert finetune(options).scores == report.scores
