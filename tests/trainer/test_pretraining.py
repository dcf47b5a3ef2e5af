"""Pretraining runs: they learn, go on after a kill bit for bit, and refuse what does not fit."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import safetensors.numpy

from albert_tf import AlbertForPreTraining, AlbertTokenizer
from albert_tf.data import pretraining_dataset
from albert_tf.trainer import load_recipe, parse_recipe, plot_losses, pretrain
from albert_tf.trainer.callbacks import read_metrics
from albert_tf.trainer.pretraining import unigram_entropy
from tests.small_road import REPOSITORY, VOCAB_SIZE, small_recipe

RECIPES = sorted((REPOSITORY / "training/recipes").glob("*.toml"))
SMALL = {
    **{"embedding_size": 16, "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64},
    **{"num_hidden_layers": 2, "vocab_size": VOCAB_SIZE},
}


@pytest.fixture(scope="module")
def finished(road, tmp_path_factory):
    """A whole run, never stopped."""
    output = tmp_path_factory.mktemp("runs") / "whole"
    return pretrain(parse_recipe(small_recipe(road)), output, show_progress=False)


def weights(folder: pathlib.Path) -> dict[str, np.ndarray]:
    return safetensors.numpy.load_file(folder / "model.safetensors")


def test_the_loss_falls_and_everything_is_written(finished):
    entries = read_metrics(finished.metrics_file)
    assert [entry["step"] for entry in entries] == [10, 20, 30, 40, 50, 60]
    assert entries[-1]["masked_lm_loss"] < entries[0]["masked_lm_loss"] - 0.2
    assert {"val_masked_lm_loss", "learning_rate", "tokens_per_second"} <= set(entries[1])
    run = finished.model_folder.parent
    assert json.loads((run / "results.json").read_text()) == finished.results
    assert list((run / "logs").rglob("events*"))
    assert AlbertTokenizer.from_pretrained(finished.model_folder).vocab_size == VOCAB_SIZE


def test_results_are_those_of_the_saved_model(finished, road):
    model = AlbertForPreTraining.from_pretrained(finished.model_folder)
    model.compile()
    dataset = pretraining_dataset(road.heldout, 16, shuffle=False, repeat=False, drop_remainder=False)
    results = model.evaluate(dataset, return_dict=True, verbose=0)
    assert results["masked_lm_loss"] == pytest.approx(finished.results["masked_lm_loss"], abs=1e-5)


def test_unigram_entropy_is_that_of_the_masked_tokens(road, finished):
    dataset = pretraining_dataset(road.heldout, 7, shuffle=False, repeat=False, drop_remainder=False)
    tokens = [
        token
        for _, labels in dataset
        for token, weight in zip(labels["masked_lm_ids"].numpy().ravel(), labels["masked_lm_weights"].numpy().ravel())
        if weight
    ]
    shares = np.array([tokens.count(token) / len(tokens) for token in set(tokens)])
    assert unigram_entropy(dataset) == pytest.approx(-np.sum(shares * np.log(shares)), abs=1e-9)
    assert finished.results["unigram_entropy"] == pytest.approx(unigram_entropy(dataset), abs=1e-9)


def test_a_killed_run_goes_on_to_the_same_bits(road, finished, tmp_path):
    recipe, output = tmp_path / "recipe.json", tmp_path / "run"
    recipe.write_text(json.dumps(small_recipe(road)))
    program = (
        "import json, sys; from albert_tf.trainer import parse_recipe, pretrain; "
        "pretrain(parse_recipe(json.load(open(sys.argv[1]))), sys.argv[2], show_progress=False)"
    )
    command = [sys.executable, "-c", program, str(recipe), str(output)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 240
    while not (output / "checkpoints/step-20.json").exists():
        assert process.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (output / "model").exists(), "the run had finished before it was killed"
    report = pretrain(parse_recipe(small_recipe(road)), output, show_progress=False)
    whole, resumed = weights(finished.model_folder), weights(report.model_folder)
    assert all(np.array_equal(whole[name], resumed[name]) for name in whole)
    losses = [[entry["loss"] for entry in read_metrics(file)] for file in (finished.metrics_file, report.metrics_file)]
    assert losses[0] == losses[1]


def test_a_finished_run_is_not_trained_again(road, finished):
    before = weights(finished.model_folder)
    again = pretrain(parse_recipe(small_recipe(road)), finished.model_folder.parent, show_progress=False)
    after = weights(again.model_folder)
    assert again.num_train_steps == 60
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_another_recipe_is_refused_naming_what_differs(road, finished):
    other = small_recipe(road, batch_size=8)
    with pytest.raises(ValueError, match=r"training\.batch_size \(there 16, here 8\)"):
        pretrain(parse_recipe(other), finished.model_folder.parent)


def test_a_folder_with_other_things_is_refused(road, tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(ValueError, match="new or empty"):
        pretrain(parse_recipe(small_recipe(road)), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_vocabulary_of_another_size_is_refused(road, tmp_path):
    recipe = small_recipe(road)
    recipe["model"]["vocab_size"] = 500
    with pytest.raises(ValueError, match=f"vocab_size=500, a vocabulary of {VOCAB_SIZE} pieces in"):
        pretrain(parse_recipe(recipe), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_examples_of_another_vocabulary_are_refused(road, tmp_path):
    recipe = small_recipe(road)
    del recipe["data"]["tokenizer"]
    recipe["model"]["vocab_size"] = 30000
    with pytest.raises(ValueError, match="vocabulary"):
        pretrain(parse_recipe(recipe), tmp_path / "run")


def test_examples_longer_than_the_model_takes_are_refused(road, tmp_path):
    recipe = small_recipe(road)
    recipe["model"]["max_position_embeddings"] = 16
    with pytest.raises(ValueError, match="length=32, max_position_embeddings=16"):
        pretrain(parse_recipe(recipe), tmp_path / "run")


def test_a_loss_that_is_not_finite_stops_the_run_naming_the_step(road, tmp_path):
    recipe = small_recipe(road)
    recipe["optimizer"] = {"name": "adamw", "learning_rate": 1e30, "global_clipnorm": None}
    with pytest.raises(ValueError, match=r"must stay finite.* step \d+"):
        pretrain(parse_recipe(recipe), tmp_path / "run", show_progress=False)


def test_a_checkpoint_cut_short_is_named(road, tmp_path):
    recipe = parse_recipe(small_recipe(road, num_train_steps=20))
    pretrain(recipe, tmp_path / "run", show_progress=False)
    (data,) = (tmp_path / "run/checkpoints").glob("step-20.data*")
    data.write_bytes(data.read_bytes()[:1000])
    with pytest.raises(ValueError, match=r"step-20.*remove it"):
        pretrain(recipe, tmp_path / "run", show_progress=False)


def test_a_full_disk_leaves_the_checkpoints_before_it_whole(road, finished, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(finished.model_folder.parent, run)
    recipe = parse_recipe(small_recipe(road, num_train_steps=80))
    (run / "recipe.json").write_text(json.dumps(recipe.model_dump(mode="json")))
    program = (
        "import json, resource, sys; from albert_tf.trainer import parse_recipe, pretrain; "
        "limit = lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY)); "
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); limit(60_000); "
        "pretrain(parse_recipe(json.load(open(sys.argv[1]))), sys.argv[2], show_progress=False)"
    )
    file = tmp_path / "recipe.json"
    file.write_text(json.dumps(small_recipe(road, num_train_steps=80)))
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", program, str(file), str(run)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert "must find room on the disk" in result.stderr.strip().splitlines()[-1]
    assert "at step 80" in result.stderr
    report = pretrain(recipe, run, show_progress=False)
    assert report.num_train_steps == 80


@pytest.mark.parametrize("file", RECIPES, ids=lambda file: file.stem)
def test_every_recipe_runs_a_step_when_shrunk(file, road, tmp_path):
    recipe = load_recipe(file, examples=road.examples, heldout=road.heldout, tokenizer=road.vocabulary)
    values = recipe.model_dump(mode="json")
    values["model"] |= SMALL
    values["training"] |= {"num_train_steps": 1, "batch_size": 4, "log_every": 1}
    values["optimizer"]["num_warmup_steps"] = 0
    report = pretrain(parse_recipe(values), tmp_path / "run", show_progress=False)
    assert report.num_train_steps == 1
    assert np.isfinite(report.results["loss"])


def test_the_plot_is_a_picture(finished, tmp_path):
    plot_losses(finished.metrics_file, tmp_path / "losses.png", floor=5.0)
    assert (tmp_path / "losses.png").read_bytes().startswith(b"\x89PNG")
