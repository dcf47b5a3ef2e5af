"""Proves that fine-tuning learns, repeats itself to the bit, writes what it reports and refuses what cannot be."""

import csv

import numpy as np
import pytest

from albert_tf import AlbertForPreTraining
from albert_tf.checkpoints import read
from albert_tf.data.finetuning.classification import read_texts
from albert_tf.export import load_folder
from albert_tf.metrics import RegressionScores
from albert_tf.trainer import FinetuneOptions, finetune
from albert_tf.trainer.evaluation import evaluate
from tests.toy_task import CONFIG, mood_rows, tokenizer, write_mood_table, write_pretrained


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finetuning")
    write_pretrained(folder / "pretrained")
    write_mood_table(folder / "train.tsv", 320, seed=1)
    write_mood_table(folder / "dev.tsv", 100, seed=2)
    write_mood_table(folder / "few.tsv", 40, seed=3)
    return folder


def options_for(files, output, **changes):
    values = {
        "pretrained": files / "pretrained",
        "train": files / "few.tsv",
        "dev": files / "few.tsv",
        "output": output,
    }
    return FinetuneOptions(**{**values, "epochs": 1, "batch_size": 16, **changes})


@pytest.fixture(scope="module")
def learnt(files):
    options = options_for(
        files, files / "learnt", train=files / "train.tsv", dev=files / "dev.tsv", epochs=8, learning_rate=3e-3
    )
    return options, finetune(options)


def predictions(folder):
    with (folder / "dev_predictions.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_a_separable_task_is_learnt(learnt):
    _, report = learnt
    assert report.scores.accuracy > 0.9
    assert report.scores.f1 > 0.9
    assert report.majority_share < 0.7
    assert report.steps == 8 * 20
    assert (report.train_examples, report.dev_examples, report.full_share) == (320, 100, 0.0)
    assert len(report.score_by_epoch) == 8
    assert report.score_by_epoch[report.kept_epoch - 1] == max(report.score_by_epoch) == report.scores.accuracy


def test_the_folder_holds_the_weights_that_were_scored(learnt):
    options, report = learnt
    loaded = load_folder(options.output)
    assert loaded.model.labels == ("gloomy", "pleasant")
    again = evaluate(loaded.model, loaded.tokenizer, read_texts(options.dev), loaded.max_length)
    assert again.scores == report.scores
    assert again.majority_share == report.majority_share


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


def test_equal_seeds_give_equal_bits_and_others_do_not(files):
    runs = {name: options_for(files, files / name, seed=seed) for name, seed in (("a", 5), ("b", 5), ("c", 6))}
    for options in runs.values():
        finetune(options)
    weights = {name: (options.output / "model.safetensors").read_bytes() for name, options in runs.items()}
    assert weights["a"] == weights["b"] != weights["c"]
    assert predictions(files / "a") == predictions(files / "b")


@pytest.mark.parametrize("from_scratch", [False, True])
def test_training_starts_from_the_pretrained_weights_or_without_them(files, from_scratch):
    output = files / f"start_{from_scratch}"
    finetune(options_for(files, output, from_scratch=from_scratch, learning_rate=1e-12))
    before, after = read(files / "pretrained").arrays, read(output).arrays
    assert after["classifier/kernel"].shape == (CONFIG.hidden_size, 2)
    name = "encoder/embeddings/word_embeddings"
    assert (np.abs(before[name] - after[name]).max() < 1e-9) == (not from_scratch)


def test_numbers_are_predicted_from_pairs_in_csv(files):
    rows = [(text, text[:10], f"{text.count('a') / 4}") for text, _ in mood_rows(60, seed=7)]
    for name, part in (("train", rows[:40]), ("dev", rows[40:])):
        with (files / f"numbers_{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("first", "second", "score"), *part])
    columns = {"text_column": "first", "pair_column": "second", "label_column": "score", "problem": "regression"}
    paths = {"train": files / "numbers_train.csv", "dev": files / "numbers_dev.csv"}
    report = finetune(options_for(files, files / "numbers", **columns, **paths, epochs=2, keep="last", max_length=12))
    assert isinstance(report.scores, RegressionScores)
    assert report.majority_share is None
    assert report.kept_epoch == 2
    assert 0 < report.full_share <= 1
    found = predictions(files / "numbers")
    expected = np.corrcoef([[float(row[key]) for row in found] for key in ("label", "prediction")])[0, 1]
    assert report.scores.pearson == pytest.approx(expected, abs=1e-5)
    loaded = load_folder(files / "numbers")
    assert (loaded.takes_pairs, loaded.max_length, loaded.model.problem) == (True, 12, "regression")


def test_a_loss_that_is_not_finite_stops_the_run_and_names_the_step(files):
    with pytest.raises(ValueError, match=r"loss must stay finite.*at step \d+"):
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
        ({"dev": "one_label.tsv"}, r"one of 'gloomy', 'pleasant'. Received: 'x' in .*one_label.tsv, line 2"),
        ({"train": "one_label.tsv"}, r"at least two labels. Received: \['x'\]"),
        ({"max_length": 65}, "max_length=65, max_position_embeddings=64"),
        ({"text_column": "sentence"}, r"'sentence' for .*few.tsv"),
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
