"""Pretraining runs: they learn, and go on after a kill bit for bit."""

import json
import os
import pathlib
import shutil
import signal

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertForPreTraining, AlbertTokenizer
from albert_tf.cli.session import user_errors
from albert_tf.data import PrepareOptions, prepare, pretraining_dataset
from albert_tf.trainer import load_recipe, parse_recipe, pretrain, pretraining
from albert_tf.trainer.devices import connect, explain_out_of_memory
from albert_tf.trainer.pretraining import unigram_entropy
from albert_tf.trainer.run_folder import read_metrics
from tests.disk import flip_bit, full_disk
from tests.small_pipeline import LENGTH, REPOSITORY, VOCAB_SIZE, make_small_pipeline, small_recipe
from tests.trainer.runs import PRETRAIN, largest_difference, losses, start, wait_for_checkpoint, weights, write_recipe

SHORT = {"num_train_steps": 10, "evaluate_every": 10, "save_every": 10}
# Those of large, xlarge and xxlarge differ from base only in numbers that are shrunk here; tests/demos runs two others.
RECIPES = [REPOSITORY / f"training/recipes/{name}.toml" for name in ("base_v1", "base_v2", "novels")]
SMALL = {
    **{"embedding_size": 16, "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64},
    **{"num_hidden_layers": 2, "vocab_size": VOCAB_SIZE},
}


@pytest.fixture(scope="module")
def finished(pipeline, tmp_path_factory):
    """A whole run, never stopped."""
    output = tmp_path_factory.mktemp("runs") / "whole"
    return pretrain(parse_recipe(small_recipe(pipeline)), output, show_progress=False)


def test_the_loss_falls_and_everything_is_written(finished):
    entries = read_metrics(finished.metrics_file)
    assert [entry["step"] for entry in entries] == [10, 20, 30, 40, 50, 60]
    assert entries[-1]["masked_lm_loss"] < entries[0]["masked_lm_loss"] - 0.2
    assert {"val_masked_lm_loss", "learning_rate", "tokens_per_second"} <= set(entries[1])
    run = finished.model_folder.parent
    assert json.loads((run / "results.json").read_text()) == finished.results
    assert list((run / "logs").rglob("events*"))
    assert AlbertTokenizer.from_pretrained(finished.model_folder).vocab_size == VOCAB_SIZE


def test_results_are_those_of_the_saved_model(finished, pipeline):
    model = AlbertForPreTraining.from_pretrained(finished.model_folder)
    model.compile()
    dataset = pretraining_dataset(pipeline.heldout, 16, shuffle=False, repeat=False, drop_remainder=False)
    results = model.evaluate(dataset, return_dict=True, verbose=0)
    assert results["masked_lm_loss"] == pytest.approx(finished.results["masked_lm_loss"], abs=1e-5)


def test_unigram_entropy_is_that_of_the_masked_tokens(pipeline, finished):
    dataset = pretraining_dataset(pipeline.heldout, 7, shuffle=False, repeat=False, drop_remainder=False)
    tokens = [
        token
        for _, labels in dataset
        for token, weight in zip(labels["masked_lm_ids"].numpy().ravel(), labels["masked_lm_weights"].numpy().ravel())
        if weight
    ]
    shares = np.array([tokens.count(token) / len(tokens) for token in set(tokens)])
    assert unigram_entropy(dataset) == pytest.approx(-np.sum(shares * np.log(shares)), abs=1e-9)
    assert finished.results["unigram_entropy"] == pytest.approx(unigram_entropy(dataset), abs=1e-9)


@pytest.mark.exhaustive
def test_a_killed_run_goes_on_to_the_same_bits(pipeline, finished, tmp_path):
    file, run = write_recipe(tmp_path / "recipe.toml", small_recipe(pipeline)), tmp_path / "run"
    run.mkdir()
    (run / ".recipe.json.abc").write_text("{")  # which an earlier kill has cut short
    process = start(*PRETRAIN, file, "--output", run)
    wait_for_checkpoint(run, 20, process)
    process.kill()
    process.communicate()
    assert not (run / "model").exists(), "the run had finished before it was killed"
    pretrain(parse_recipe(small_recipe(pipeline)), run, show_progress=False)
    assert largest_difference(run, finished.model_folder.parent) == 0
    assert losses(run) == losses(finished.model_folder.parent)


@pytest.mark.exhaustive
def test_a_run_that_is_told_to_stop_saves_at_once_and_goes_on_to_the_same_bits(pipeline, finished, tmp_path, capsys):
    """In the middle of an interval, whose means have to go on too, and at the end of one."""
    for step, told in ((23, signal.SIGTERM), (30, signal.SIGINT)):
        with pytest.raises(SystemExit) as ended, user_errors():
            stop_at(step, parse_recipe(small_recipe(pipeline)), tmp_path / "run", told)
        assert ended.value.code == 128 + told
        assert (tmp_path / f"run/checkpoints/step-{step}/state.json").exists()
        assert not (tmp_path / "run/results.json").exists()
        said = f"albert-tf: Interrupted at step {step}; the state was saved, and the same command resumes.\n"
        assert capsys.readouterr().err == said
    report = pretrain(parse_recipe(small_recipe(pipeline)), tmp_path / "run", show_progress=False)
    assert report.num_train_steps == 60
    assert largest_difference(tmp_path / "run", finished.model_folder.parent) == 0
    assert losses(tmp_path / "run") == losses(finished.model_folder.parent)


def stop_at(step: int, recipe, run: pathlib.Path, told: int):
    """Runs a recipe and sends this process a signal at the end of that step."""
    with pytest.MonkeyPatch.context() as patch:

        class Terminator(keras.callbacks.Callback):
            def on_train_batch_end(self, batch, logs=None):
                if self.model.optimizer.iterations.numpy() == step:
                    os.kill(os.getpid(), told)

        patch.setattr(
            pretraining, "_callbacks", lambda *arguments, own=pretraining._callbacks: [*own(*arguments), Terminator()]
        )
        pretrain(recipe, run, show_progress=False)


@pytest.mark.parametrize("name", ["recipe.json", "metrics.jsonl"])
def test_a_file_of_the_wrong_kind_is_named(pipeline, finished, tmp_path, name):
    run = pathlib.Path(shutil.copytree(finished.model_folder.parent, tmp_path / "run"))
    (run / "checkpoints/step-60").rename(tmp_path / "step-60")
    (run / name).write_text("[1]\n")
    with pytest.raises(ValueError, match=f"{name}.* holds list where an object is expected"):
        pretrain(parse_recipe(small_recipe(pipeline)), run, show_progress=False)


@pytest.mark.exhaustive
def test_what_it_trains_on_and_what_does_not_fit_there_is_told():
    assert connect("one_device").describe() == "training on 1 CPU"
    reason = r"Out of memory with batch_size=8: OOM .*; use `gradient_accumulation_steps`"
    with pytest.raises(RuntimeError, match=reason), explain_out_of_memory(8):
        tf.zeros([2**45])


def test_a_finished_run_is_not_trained_again(pipeline, finished):
    before = weights(finished.model_folder.parent)
    again = pretrain(parse_recipe(small_recipe(pipeline)), finished.model_folder.parent, show_progress=False)
    after = weights(again.model_folder.parent)
    assert again.num_train_steps == 60
    assert all(np.array_equal(before[name], after[name]) for name in before)


@pytest.mark.exhaustive
def test_another_recipe_is_refused_naming_what_differs_unless_it_is_allowed(pipeline, finished, tmp_path):
    other, run = parse_recipe(small_recipe(pipeline, batch_size=8, num_train_steps=70)), tmp_path / "run"
    shutil.copytree(finished.model_folder.parent, run)
    with pytest.raises(ValueError, match=r"training\.batch_size \(there 16, here 8\).*--allow-changed"):
        pretrain(other, run)
    with pytest.warns(UserWarning, match=r"training\.batch_size \(there 16, here 8\)"):
        report = pretrain(other, run, show_progress=False, allow_changed=True)
    assert report.num_train_steps == 70
    assert json.loads((run / "recipe.json").read_text())["training"]["batch_size"] == 8


@pytest.mark.parametrize(
    ("section", "changes", "message"),
    [
        ("optimizer", {"name": "adamw"}, "step-60 was saved with the optimizer Lamb, but the recipe has AdamW"),
        ("model", {"hidden_size": 16}, r"step-60 was saved with another model: hidden_size \(there 32, here 16\)"),
        ("model", {"num_hidden_layers": 1}, r"another model: num_hidden_layers \(there 2, here 1\); resume with"),
        ("training", {"dtype_policy": "mixed_float16"}, "The variables in .*step-60 do not match the recipe.s model"),
    ],
)
def test_a_checkpoint_of_another_optimizer_or_model_is_refused(pipeline, finished, tmp_path, section, changes, message):
    shutil.copytree(finished.model_folder.parent, tmp_path / "run")
    recipe = small_recipe(pipeline)
    recipe[section] |= changes
    with pytest.warns(UserWarning, match="has changed"), pytest.raises(ValueError, match=message) as caught:
        pretrain(parse_recipe(recipe), tmp_path / "run", allow_changed=True)
    assert "\n" not in str(caught.value)
    # The refusal has left the folder to the recipe that made it.
    for file in ("recipe.json", "results.json", "metrics.jsonl", "model/model.safetensors"):
        assert (tmp_path / "run" / file).read_bytes() == (finished.model_folder.parent / file).read_bytes()


def test_fewer_updates_than_were_made_are_refused(pipeline, finished, tmp_path):
    shutil.copytree(finished.model_folder.parent, tmp_path / "run")
    recipe = parse_recipe(small_recipe(pipeline, num_train_steps=40))
    with (
        pytest.warns(UserWarning, match="num_train_steps"),
        pytest.raises(
            ValueError, match=r"step-60 has already been trained for 60 steps, more than num_train_steps = 40; raise"
        ),
    ):
        pretrain(recipe, tmp_path / "run", allow_changed=True)


@pytest.mark.exhaustive
def test_other_data_under_the_same_path_are_refused_unless_it_is_allowed(pipeline, finished, tmp_path):
    run = shutil.copytree(finished.model_folder.parent, tmp_path / "run")
    examples = pathlib.Path(shutil.copytree(pipeline.examples, tmp_path / "examples"))
    values = small_recipe(pipeline)
    values["data"]["examples"] = str(examples)
    file = run / "recipe.json"
    file.write_text(json.dumps(parse_recipe(values).model_dump(mode="json")))
    moved = pretrain(parse_recipe(values), run, show_progress=False)  # the same data elsewhere
    assert moved.results == finished.results
    shutil.rmtree(examples)
    options = {"inputs": (pipeline.text,), "split_sentences": True, "max_seq_length": LENGTH, "num_shards": 2}
    prepare(PrepareOptions(output_dir=examples, tokenizer=pipeline.vocabulary, dupe_factor=2, seed=7, **options))
    with pytest.raises(ValueError, match="trained on other examples or with another vocabulary") as caught:
        pretrain(parse_recipe(values), run, show_progress=False)
    assert "source (there" in str(caught.value)
    with pytest.warns(UserWarning, match="The data of the run have changed"):
        pretrain(parse_recipe(values), run, show_progress=False, allow_changed=True)


@pytest.mark.exhaustive
def test_damage_in_held_out_examples_is_named(pipeline, tmp_path):
    heldout = pathlib.Path(shutil.copytree(pipeline.heldout, tmp_path / "heldout"))
    shard = max(heldout.glob("*.tfrecord"), key=lambda file: file.stat().st_size)
    flip_bit(shard)
    values = small_recipe(pipeline, **SHORT)
    values["data"]["heldout"] = str(heldout)
    with pytest.raises(ValueError, match=f"{shard.name}.*record"):
        pretrain(parse_recipe(values), tmp_path / "run", show_progress=False)


@pytest.mark.exhaustive
def test_a_damaged_checkpoint_is_left_out_with_a_warning_for_the_one_before(pipeline, finished, tmp_path):
    shutil.copytree(finished.model_folder.parent, tmp_path / "run")
    (data,) = (tmp_path / "run/checkpoints/step-60").glob("state.data*")
    flip_bit(data)
    with pytest.warns(UserWarning, match=r"step-60/state.data\S* is damaged.*Resuming from .*step-40"):
        pretrain(parse_recipe(small_recipe(pipeline)), tmp_path / "run", show_progress=False)
    assert largest_difference(tmp_path / "run", finished.model_folder.parent) == 0
    assert losses(tmp_path / "run") == losses(finished.model_folder.parent)


@pytest.mark.exhaustive
def test_a_longer_recipe_on_a_full_disk_has_no_results_but_the_checkpoints_before_it(pipeline, finished, tmp_path):
    run = pathlib.Path(shutil.copytree(finished.model_folder.parent, tmp_path / "run"))
    recipe = parse_recipe(small_recipe(pipeline, num_train_steps=80))
    with (
        pytest.warns(UserWarning, match="num_train_steps"),
        pytest.raises(OSError, match="Could not write the checkpoint of step 80"),
        full_disk(60_000),
    ):
        pretrain(recipe, run, show_progress=False, allow_changed=True)
    assert not (run / "results.json").exists()
    report = pretrain(recipe, run, show_progress=False)
    assert report.num_train_steps == 80
    assert report.results == json.loads((run / "results.json").read_text())


@pytest.mark.exhaustive
@pytest.mark.parametrize("file", RECIPES, ids=lambda file: file.stem)
def test_every_recipe_runs_a_step_when_shrunk(file, pipeline, tmp_path):
    objective = load_recipe(file).data.objective
    if objective != "sentence_order":
        pipeline = make_small_pipeline(tmp_path, objective)
    recipe = load_recipe(file, examples=pipeline.examples, heldout=pipeline.heldout)
    values = recipe.model_dump(mode="json")
    values["model"] |= SMALL
    values["training"] |= {"num_train_steps": 1, "batch_size": 4, "log_every": 1}
    values["optimizer"]["num_warmup_steps"] = 0
    report = pretrain(parse_recipe(values), tmp_path / "run", show_progress=False)
    assert report.num_train_steps == 1
    assert np.isfinite(report.results["loss"])
