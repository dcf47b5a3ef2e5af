"""Proves that fine-tuning learns, repeats itself to the bit, writes what it reports and refuses what cannot be."""

import csv
import itertools
import json
import os

import numpy as np
import pytest
import safetensors.numpy

from albert_tf import AlbertConfig, AlbertForPreTraining
from albert_tf.checkpoints import read
from albert_tf.data.finetuning.classification import read_texts
from albert_tf.inference.folder import load_folder
from albert_tf.metrics import ConstantScore, RegressionScores
from albert_tf.tasks.sequence_classification.settings import ClassificationSettings
from albert_tf.tasks.sequence_classification.task import TextClassification
from albert_tf.trainer import finetune, load_examples
from albert_tf.trainer.evaluation import evaluate_folder
from albert_tf.trainer.starting_model import default_rate
from tests import toy_task
from tests.toy_task import CONFIG, mood_rows, tokenizer, write_mood_table, write_pretrained
from tests.trainer import mirrored_finetuning
from tests.trainer.mood_runs import options_for, predictions, write_files


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("finetuning"))


@pytest.mark.exhaustive
def test_the_default_learning_rate_is_that_of_a_small_model_and_recorded(files, tmp_path):
    finetune(options_for(files, tmp_path / "run"))
    assert json.loads((tmp_path / "run" / "recipe.json").read_text())["learning_rate"] == 1e-3
    assert [default_rate(AlbertConfig.from_preset(name)) for name in ("tiny", "base_v2")] == [1e-3, 3e-5]


def test_a_label_column_of_different_values_looks_wrong(files):
    rows = [{"text": f"text {n}", "label": f"2026-01-{n}"} for n in range(30)]
    with pytest.warns(UserWarning, match=r"^the examples has 30 different labels in 30 rows; 'label' looks like"):
        TextClassification(None, ClassificationSettings()).model_arguments(load_examples(rows))


@pytest.fixture(scope="module")
def learnt(files):
    options = options_for(
        files, files / "learnt", train=files / "train.tsv", dev=files / "dev.tsv", epochs=8, learning_rate=3e-3
    )
    return options, finetune(options)


def test_a_separable_task_is_learnt(learnt):
    _, report = learnt
    assert report.scores.accuracy > 0.9
    assert report.scores.f1 > 0.9
    assert report.constant_score.value < 0.7
    assert report.steps == 8 * 20
    assert (report.train_examples, report.dev_examples, report.cut_examples) == (320, 100, 0)
    assert len(report.score_by_evaluation) == 8
    scores = report.score_by_evaluation
    assert scores[report.kept_evaluation - 1] == max(scores) == report.scores.accuracy


@pytest.mark.exhaustive
def test_weights_that_were_evaluated_are_not_evaluated_again(files, tmp_path, monkeypatch):
    evaluations, evaluator = [], TextClassification.evaluator

    def counting_evaluator(*args):
        evaluate = evaluator(*args)
        return lambda: evaluations.append(evaluate()) or evaluations[-1]

    monkeypatch.setattr(TextClassification, "evaluator", counting_evaluator)
    report = finetune(options_for(files, tmp_path / "run", learning_rate=1e-12, epochs=3))
    assert len(evaluations) == 3
    assert report.kept_evaluation == 1  # all scores are equal


@pytest.mark.exhaustive
def test_what_is_wrong_is_noted(learnt, files, tmp_path):
    assert learnt[1].notes == ()
    report = finetune(options_for(files, tmp_path / "run", learning_rate=1e-12))
    unused, shared, learnt_nothing = report.notes
    assert unused.startswith("Precision is undefined for labels that are never predicted: ")
    assert shared.startswith("40 of the 40 examples to evaluate on are also in the training examples")
    assert learnt_nothing.startswith("Nothing was learnt: all predictions are the same")


def test_the_folder_holds_the_weights_that_were_scored(learnt):
    options, report = learnt
    loaded = load_folder(options.output)
    assert loaded.model.labels == ("gloomy", "pleasant")
    examples, again = evaluate_folder(options.output, options.dev)
    assert examples == report.dev_examples
    assert again.scores == report.scores
    assert again.constant_score == report.constant_score


@pytest.mark.exhaustive
def test_rules_hold_the_encoder_still(files, tmp_path):
    rules = (("encoder/", 0.0), (".*", 1.0))
    finetune(options_for(files, tmp_path / "run", learning_rate=1e-2, learning_rate_rules=rules))
    before, after = read(files / "pretrained").arrays, read(tmp_path / "run").arrays
    kernels = [name for name in before if "attention" in name and "kernel" in name]
    assert kernels
    assert all(np.array_equal(before[name], after[name]) for name in kernels)


def test_predictions_are_those_that_were_scored(learnt):
    options, report = learnt
    rows, texts = predictions(options.output), read_texts(options.dev)
    assert [row["label"] for row in rows] == list(texts.labels)
    assert [int(row["line"]) for row in rows] == list(texts.lines)
    assert np.mean([row["label"] == row["prediction"] for row in rows]) == report.scores.accuracy
    for row in rows:
        shares = {name: float(row[f"probability of {name}"]) for name in ("gloomy", "pleasant")}
        assert sum(shares.values()) == pytest.approx(1, abs=2e-6)
        assert max(shares, key=shares.get) == row["prediction"]


def test_the_same_run_is_not_made_twice(learnt):
    options, report = learnt
    (options.output / "checkpoints/step-9").mkdir(parents=True)  # it was killed while it removed them
    before = {path.name: path.stat().st_mtime_ns for path in options.output.iterdir()}
    again = finetune(options)
    assert again.finished_before
    assert again == report.model_copy(update={"finished_before": True})
    assert {path.name: path.stat().st_mtime_ns for path in options.output.iterdir()} == before


def test_a_folder_of_another_recipe_is_refused(learnt, files):
    options, _ = learnt
    with pytest.raises(ValueError, match=r"learning_rate \(there 0.003, here 0.001\)"):
        finetune(options.model_copy(update={"learning_rate": 1e-3}))
    with pytest.raises(ValueError, match=r"train.sha256"):
        finetune(options.model_copy(update={"train": files / "few.tsv"}))


@pytest.mark.exhaustive
def test_each_option_counts(files):
    changes = {
        "a": {},
        "lamb": {"optimizer": "lamb"},
        "no_decay": {"weight_decay": 0.0},
        "no_warmup": {"warmup_proportion": 0.0},
        "dropout": {"dropout": 0.1},
        "head_dropout": {"head_dropout": 0.5},
        "xla": {"jit_compile": True},
    }
    common = {"seed": 5, "learning_rate": 1e-2, "warmup_proportion": 0.5}
    for name, change in changes.items():
        finetune(options_for(files, files / name, **{**common, **change}))
    weights = {name: (files / name / "model.safetensors").read_bytes() for name in changes}
    assert len(set(weights.values())) == len(weights)


@pytest.mark.exhaustive
def test_parts_of_a_batch_and_bfloat16(files, tmp_path):
    parts = {"batch_size": 20, "gradient_accumulation_steps": 4, "dtype_policy": "mixed_bfloat16", "remat": "block"}
    assert finetune(options_for(files, tmp_path / "run", **parts)).steps == 2
    assert read(tmp_path / "run").arrays["classifier/kernel"].dtype == np.float32


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("recipe.json", b"[1]", "recipe.json holds list where an object is expected; restore it from a copy"),
        ("metrics.json", b"{", r"metrics.json is not valid JSON .*; remove it to train again"),
        ("metrics.json", b"[1]", "metrics.json holds list where an object is expected; remove it to train again"),
        ("metrics.json", b'{"folder": 5}', "metrics.json is not the report of a fine-tuning run; remove it"),
    ],
)
def test_a_damaged_file_is_named(learnt, name, content, message):
    options, _ = learnt
    before = (options.output / name).read_bytes()
    (options.output / name).write_bytes(content)
    try:
        with pytest.raises(ValueError, match=message):
            finetune(options)
    finally:
        (options.output / name).write_bytes(before)


def test_a_batch_that_memory_cannot_hold_is_refused(files, tmp_path, monkeypatch):
    sysconf = os.sysconf
    pages = {"SC_PHYS_PAGES": 100}
    monkeypatch.setattr(os, "sysconf", lambda name: pages[name] if name in pages else sysconf(name))
    with pytest.raises(ValueError, match=r"batch_size=16 needs at least .* GiB for activations"):
        finetune(options_for(files, tmp_path / "run"))
    assert not (tmp_path / "run").exists()


@pytest.mark.exhaustive
def test_training_may_start_from_random_weights(files):
    finetune(options_for(files, files / "scratch", from_scratch=True, learning_rate=1e-12))
    before, after = read(files / "pretrained").arrays, read(files / "scratch").arrays
    name = "encoder/embeddings/word_embeddings"
    assert np.abs(before[name] - after[name]).max() > 1e-3


@pytest.mark.exhaustive
def test_numbers_are_predicted_from_pairs_in_csv(files):
    rows = [(text, text[:10], f"{text.count('a') / 4}") for text, _ in mood_rows(60, seed=7)]
    for name, part in (("train", rows[:40]), ("dev", rows[40:])):
        with (files / f"numbers_{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("first", "second", "score"), *part])
    columns = {"text_column": "first", "pair_column": "second", "label_column": "score", "problem": "regression"}
    paths = {"train": files / "numbers_train.csv", "dev": files / "numbers_dev.csv"}
    report = finetune(options_for(files, files / "numbers", **columns, **paths, epochs=2, keep="last", max_length=12))
    assert isinstance(report.scores, RegressionScores)
    labels = [float(row["label"]) for row in predictions(files / "numbers")]
    assert report.constant_score == ConstantScore(
        "mean squared error of the mean", pytest.approx(np.var(labels), rel=1e-5)
    )
    assert report.kept_evaluation == 2
    assert 0 < report.cut_examples <= 40
    assert report.notes[0].startswith(f"train: {report.cut_examples} of 40 texts did not fit into 12 tokens")
    found = predictions(files / "numbers")
    expected = np.corrcoef([[float(row[key]) for row in found] for key in ("label", "prediction")])[0, 1]
    assert report.scores.pearson == pytest.approx(expected, abs=1e-5)
    loaded = load_folder(files / "numbers")
    assert (loaded.settings.pair_column is None, loaded.settings.max_length) == (False, 12)
    assert loaded.model.problem == "regression"


@pytest.mark.parametrize("name", ["[1]", "a\\b"])
def test_folders_that_tensorflow_cannot_read_are_refused(files, tmp_path, name):
    with pytest.raises(ValueError, match=r"must not have '\[' or '\\'; use another folder"):
        finetune(options_for(files, tmp_path / name))
    assert not (tmp_path / name).exists()


@pytest.mark.exhaustive
def test_a_loss_that_is_not_finite_stops_the_run_and_names_the_step(files):
    with pytest.raises(ValueError, match=r"loss is not finite.*at step \d+"):
        finetune(options_for(files, files / "diverged", learning_rate=1e30, warmup_proportion=0.0))
    assert not (files / "diverged" / "metrics.json").exists()


@pytest.fixture(scope="module")
def bad_files(files):
    (files / "one_label.tsv").write_text("text\tlabel\na\tx\nb\tx\n")
    AlbertForPreTraining(CONFIG.replace(vocab_size=100)).save_pretrained(files / "small")
    tokenizer().save_pretrained(files / "small")
    return files


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dev": "one_label.tsv"}, r"one_label\.tsv, line 2: the label 'x' is not one of 'gloomy', 'pleasant'"),
        ({"train": "one_label.tsv"}, r"at least two labels. Received: \['x'\]"),
        ({"main_score": "pearson"}, "`main_score` must be one of accuracy, f1"),
        ({"main_score": "f1", "labels": ("a", "b", "c")}, "must not be 'f1' for 3 classes"),
        ({"max_length": 65}, "max_length=65, max_position_embeddings=64"),
        ({"text_column": "sentence"}, r"few\.tsv, line 2, has no column 'sentence'; .* --text-column"),
        ({"pretrained": "nowhere"}, "nowhere"),
        ({"pretrained": "small"}, "vocab_size=100, a vocabulary of 30000 pieces"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(bad_files, changes, message):
    changes = {
        key: bad_files / value if key in ("dev", "train", "pretrained") else value for key, value in changes.items()
    }
    with pytest.raises(ValueError, match=message) as raised:
        finetune(options_for(bad_files, bad_files / "refused", **changes))
    assert "\n" not in str(raised.value)
    assert not (bad_files / "refused").exists()


@pytest.mark.exhaustive
def test_two_devices_and_microbatches_give_the_weights_of_one(tmp_path, run_python, monkeypatch):
    monkeypatch.setattr(toy_task, "CONFIG", CONFIG.replace(classifier_dropout_prob=0.0))
    write_pretrained(tmp_path / "pretrained")
    write_mood_table(tmp_path / "train.tsv", 33, seed=1)  # 4 batches of 8 rows, and one of a single row
    write_mood_table(tmp_path / "dev.tsv", 20, seed=2)
    assert [mirrored_finetuning.main(tmp_path, "one_device", microbatches) for microbatches in (1, 4)] == [10, 10]
    run_python(mirrored_finetuning.__file__, tmp_path, "mirrored")
    names = ("pretrained", "one_device1", "one_device4", "mirrored1")
    before, one, *others = (safetensors.numpy.load_file(tmp_path / name / "model.safetensors") for name in names)
    for name, other in itertools.product(one, others):
        np.testing.assert_allclose(other[name], one[name], atol=1e-5, rtol=0, err_msg=name)
    assert max(np.abs(one[name] - before[name]).max() for name in before if name in one) > 1e-3
