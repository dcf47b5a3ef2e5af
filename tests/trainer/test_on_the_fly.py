"""A run on documents learns another objective, and goes on in the middle of an epoch to the same bits."""

import shutil

import pytest

from albert_tf.data import PrepareOptions, prepare
from albert_tf.trainer import parse_recipe, pretrain
from albert_tf.trainer.run_folder import read_metrics
from tests.small_pipeline import LENGTH, small_recipe

TRAINING = {"num_train_steps": 12, "log_every": 4, "save_every": 4, "evaluate_every": 12, "batch_size": 8}


@pytest.fixture(scope="module")
def recipe(pipeline, tmp_path_factory):
    """Of a run on the fly with next sentence prediction, over five epochs of a very small text."""
    folder = tmp_path_factory.mktemp("documents")
    lines = pipeline.text.read_text(encoding="utf-8").splitlines()[:60]
    text = folder / "text.txt"
    text.write_text("\n".join(lines), encoding="utf-8")
    values = small_recipe(pipeline, **TRAINING)
    for kind in ("documents", "examples"):
        prepare(
            PrepareOptions(
                inputs=(text,),
                output_dir=folder / kind,
                format=kind,
                tokenizer=pipeline.vocabulary,
                split_sentences=True,
                max_seq_length=LENGTH,
                dupe_factor=1,
                num_shards=1,
                objective="next_sentence",
            )
        )
    values["data"] = {
        "documents": str(folder / "documents"),
        "heldout": str(folder / "examples"),
        "objective": "next_sentence",
    }
    return values


@pytest.mark.exhaustive
def test_a_stopped_run_goes_on_to_the_same_bits(recipe, tmp_path):
    whole = pretrain(parse_recipe(recipe), tmp_path / "whole", show_progress=False)
    assert {"masked_lm_loss", "next_sentence_loss", "next_sentence_accuracy"} <= set(whole.results)
    stopped = shutil.copytree(tmp_path / "whole", tmp_path / "stopped")
    for path in (stopped / "checkpoints").glob("step-*"):
        if path.name != "step-4":
            shutil.rmtree(path)
    resumed = pretrain(parse_recipe(recipe), stopped, show_progress=False)
    for file in ("model/model.safetensors", "results.json"):
        assert (tmp_path / "whole" / file).read_bytes() == (stopped / file).read_bytes()
    first, second = (read_metrics(report.metrics_file) for report in (whole, resumed))
    assert [entry["loss"] for entry in first] == [entry["loss"] for entry in second]
    # The line before the checkpoint is the first run's own, times included; those after it were written again.
    assert [one == other for one, other in zip(first, second, strict=True)] == [True, False, False]


def test_data_are_one_folder_of_the_right_kind(recipe, tmp_path):
    data = recipe["data"]
    with pytest.raises(ValueError, match=r"must have either .*\. Received: examples=.*, documents="):
        parse_recipe({**recipe, "data": {**data, "examples": data["heldout"]}})
    swapped = {**data, "documents": data["heldout"]}
    with pytest.raises(ValueError, match="holds examples, not documents"):
        pretrain(parse_recipe({**recipe, "data": swapped}), tmp_path / "run", show_progress=False)
