"""Pretraining refuses folders, data and recipes that do not fit, before it writes anything."""

import json
import pathlib
import shutil

import pytest

from albert_tf.data import PrepareOptions, prepare
from albert_tf.files.atomic import exclusive_lock
from albert_tf.trainer import parse_recipe, pretrain
from tests.small_pipeline import LENGTH, VOCAB_SIZE, small_recipe


def test_a_folder_that_another_run_writes_to_is_refused(pipeline, tmp_path):
    # The other run may be removing checkpoints, so they are not looked at; this one would be an error of its own.
    (tmp_path / "run/checkpoints/step-10").mkdir(parents=True)
    with (
        exclusive_lock(tmp_path / "run"),
        pytest.raises(ValueError, match=r"run is being written by another process"),
    ):
        pretrain(parse_recipe(small_recipe(pipeline)), tmp_path / "run", show_progress=False)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["checkpoints"]


@pytest.mark.parametrize(
    ("section", "changes", "message"),
    [
        ("model", {"vocab_size": 500}, f"vocab_size=500, but .* with a vocabulary of {VOCAB_SIZE} pieces"),
        ("model", {"max_position_embeddings": 16}, "length=32, max_position_embeddings=16"),
        ("training", {"batch_size": 100_000}, r"batch_size=100,000 is larger than the [\d,]+ examples in .*; lower it"),
        ("training", {"batch_size": 2**30}, r"needs at least [\d,]+ GiB for activations, and this machine has"),
        ("training", {"best_metric": "masked_lm_los"}, r"`best_metric` must be one of \('loss', 'masked_lm.*Received"),
    ],
)
def test_a_recipe_that_cannot_be_is_refused_before_work_begins(pipeline, tmp_path, section, changes, message):
    recipe = small_recipe(pipeline)
    recipe[section] |= changes
    with pytest.raises(ValueError, match=message):
        pretrain(parse_recipe(recipe), tmp_path / "run", show_progress=False)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("strategy", ["one_device", "mirrored"])
def test_one_of_several_workers_is_no_run_of_its_own(pipeline, tmp_path, monkeypatch, strategy):
    cluster = {"worker": ["127.0.0.1:2222", "127.0.0.1:2223"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 0}}))
    with pytest.raises(ValueError, match=f'strategy="{strategy}", but TF_CONFIG makes .* set strategy="multi_worker"'):
        pretrain(parse_recipe(small_recipe(pipeline, strategy=strategy)), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_folder_with_other_things_is_refused(pipeline, tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(ValueError, match="new or empty"):
        pretrain(parse_recipe(small_recipe(pipeline)), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("spoil", [lambda file: file.unlink(), lambda file: file.write_bytes(b"another")])
def test_a_tokenizer_that_changed_since_it_prepared_the_folder_is_refused(pipeline, tmp_path, spoil):
    recipe = small_recipe(pipeline)
    recipe["data"]["examples"] = str(shutil.copytree(pipeline.examples, tmp_path / "examples"))
    file = tmp_path / "examples" / "tokenizer" / "spiece.model"
    spoil(file)
    with pytest.raises(ValueError, match=f"{file} (is missing|was changed after)"):
        pretrain(parse_recipe(recipe), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_data_of_several_vocabularies_do_not_mix(pipeline, tmp_path):
    recipe = small_recipe(pipeline)
    options = {"inputs": (pipeline.text,), "split_sentences": True, "max_seq_length": LENGTH, "num_shards": 2}
    prepare(PrepareOptions(output_dir=tmp_path / "english", **options))
    recipe["data"]["heldout"] = str(tmp_path / "english")
    with pytest.raises(ValueError, match=r"made with another vocabulary .* than the requested one"):
        pretrain(parse_recipe(recipe), tmp_path / "run")
    mixed = pathlib.Path(shutil.copytree(pipeline.examples, tmp_path / "mixed"))
    ours, theirs = (sorted(folder.glob("*.tfrecord"))[0] for folder in (mixed, tmp_path / "english"))
    shutil.copy(theirs, ours)
    recipe["data"] |= {"examples": str(mixed), "heldout": str(pipeline.heldout)}
    with pytest.raises(ValueError, match=rf"{ours.name} is not the file that `prepare` wrote .* another vocabulary"):
        pretrain(parse_recipe(recipe), tmp_path / "run")
    assert not (tmp_path / "run").exists()
