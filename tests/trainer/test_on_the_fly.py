"""A run on documents learns another objective, and goes on in the middle of an epoch to the same bits."""

import json
import pathlib
import shutil

import pytest

from albert_tf.data import PrepareOptions, prepare
from albert_tf.trainer import load_recipe, parse_recipe, pretrain
from albert_tf.trainer.callbacks import read_metrics
from albert_tf.trainer.guesses import guess_heldout
from tests.small_road import LENGTH, small_recipe

TRAINING = {"num_train_steps": 12, "log_every": 4, "save_every": 4, "evaluate_every": 12, "batch_size": 8}


@pytest.fixture(scope="module")
def recipe(road, tmp_path_factory):
    """Of a run on the fly with next sentence prediction, over five epochs of a very small text."""
    folder = tmp_path_factory.mktemp("documents")
    lines = road.text.read_text(encoding="utf-8").splitlines()[:60]
    text = folder / "text.txt"
    text.write_text("\n".join(lines), encoding="utf-8")
    values = small_recipe(road, **TRAINING)
    for kind in ("documents", "examples"):
        prepare(
            PrepareOptions(
                inputs=(text,),
                output_dir=folder / kind,
                format=kind,
                tokenizer=road.vocabulary,
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
        "tokenizer": str(road.vocabulary),
        "objective": "next_sentence",
    }
    return values


def test_a_stopped_run_goes_on_to_the_same_bits(recipe, tmp_path):
    whole = pretrain(parse_recipe(recipe), tmp_path / "whole", show_progress=False)
    assert {"masked_lm_loss", "next_sentence_loss", "next_sentence_accuracy"} <= set(whole.results)
    stopped = shutil.copytree(tmp_path / "whole", tmp_path / "stopped")
    for path in (stopped / "checkpoints").glob("step-*"):
        if path.name.split(".")[0] != "step-4":
            path.unlink()
    resumed = pretrain(parse_recipe(recipe), stopped, show_progress=False)
    for file in ("model/model.safetensors", "results.json"):
        assert (tmp_path / "whole" / file).read_bytes() == (stopped / file).read_bytes()
    first, second = (read_metrics(report.metrics_file) for report in (whole, resumed))
    assert [entry["loss"] for entry in first] == [entry["loss"] for entry in second]
    # The line before the checkpoint is the first run's own, times included; those after it were written again.
    assert [one == other for one, other in zip(first, second, strict=True)] == [True, False, False]


def test_data_are_one_folder_of_the_right_kind(recipe, tmp_path):
    data = recipe["data"]
    with pytest.raises(ValueError, match=r"must have one of .*\. Received: examples=.*, documents="):
        parse_recipe({**recipe, "data": {**data, "examples": data["heldout"]}})
    swapped = {**data, "documents": data["heldout"]}
    with pytest.raises(ValueError, match="holds examples, not documents"):
        pretrain(parse_recipe({**recipe, "data": swapped}), tmp_path / "run", show_progress=False)


@pytest.fixture(scope="module")
def of_texts(recipe):
    """The same run, which begins with the text itself."""
    text = str(pathlib.Path(recipe["data"]["documents"]).parent / "text.txt")
    data = {name: recipe["data"][name] for name in ("tokenizer", "objective")}
    options = {"split_sentences": True, "max_seq_length": LENGTH, "num_shards": 1}
    return {**recipe, "data": {**data, "texts": [text], "heldout_texts": [text], "prepare": options}}


def test_a_run_that_begins_with_text_is_the_same(recipe, of_texts, tmp_path):
    of_documents = pretrain(parse_recipe(recipe), tmp_path / "documents", show_progress=False)
    begun = pretrain(parse_recipe(of_texts), tmp_path / "texts", show_progress=False)
    weights, again = (report.model_folder / "model.safetensors" for report in (of_documents, begun))
    assert weights.read_bytes() == again.read_bytes()
    assert of_documents.results == begun.results
    assert begun.results["masked_lm_loss"] > 0
    made = sorted((tmp_path / "texts/data").rglob("*.tfrecord"))
    assert len(made) == 2
    assert json.loads((tmp_path / "texts/recipe.json").read_text())["data"]["texts"] == of_texts["data"]["texts"]
    written = [file.stat().st_mtime_ns for file in made]
    moved = (tmp_path / "texts").rename(tmp_path / "moved")
    assert pretrain(parse_recipe(of_texts), moved, show_progress=False).results == begun.results
    assert [file.stat().st_mtime_ns for file in sorted((moved / "data").rglob("*.tfrecord"))] == written
    assert guess_heldout(moved, parse_recipe(of_texts), count=2)


@pytest.mark.parametrize(
    ("section", "change", "message"),
    [
        ("data", {"prepare": {"max_seq_length": LENGTH, "n_gram": 3}}, "Received: 'n_gram' in \\[data.prepare\\]"),
        ("data", {"prepare": {"dupe_factor": 3}}, "`prepare` must not have .* Received: dupe_factor; leave them out"),
        ("data", {"prepare": {"max_seq_length": 64}}, "max_position_embeddings"),
        ("data", {"texts": ["nowhere/*.txt"]}, "nowhere"),
        ("data", {"texts": []}, "`data.texts` must be valid"),
        ("data", {"texts": None, "documents": "there"}, "`heldout_texts` and `prepare` must go with `texts`"),
        ("data", {"heldout": "there"}, "must have `heldout` or `heldout_texts`"),
        ("training", {"strategy": "multi_worker"}, "must name a folder where many machines train"),
    ],
)
def test_texts_that_cannot_be_are_refused(of_texts, section, change, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        pretrain(parse_recipe({**of_texts, section: {**of_texts[section], **change}}), tmp_path / "run")
    assert not list(tmp_path.rglob("*.tfrecord"))


def test_other_options_need_another_folder(of_texts, tmp_path):
    shorter = {**of_texts, "training": {**of_texts["training"], "num_train_steps": 8, "evaluate_every": 8}}
    pretrain(parse_recipe(shorter), tmp_path / "run", show_progress=False)
    changed = {**of_texts["data"], "prepare": {**of_texts["data"]["prepare"], "masked_lm_prob": 0.3}}
    with pytest.raises(ValueError, match="masked_lm_prob"):
        pretrain(parse_recipe({**shorter, "data": changed}), tmp_path / "run", show_progress=False)


def test_folders_on_the_command_line_replace_the_texts(of_texts, tmp_path):
    file = tmp_path / "recipe.toml"
    lines = [f"[{section}]\n" + "\n".join(_toml(values)) for section, values in of_texts.items()]
    file.write_text("\n".join(lines), encoding="utf-8")
    assert load_recipe(file).data.texts == tuple(of_texts["data"]["texts"])
    replaced = load_recipe(file, examples=tmp_path / "mine", heldout=tmp_path / "held").data
    assert (replaced.source, replaced.heldout) == (tmp_path / "mine", tmp_path / "held")
    assert (replaced.texts, replaced.heldout_texts, replaced.prepare) == (None, None, None)


def _toml(values):
    for name, value in values.items():
        if isinstance(value, dict):
            yield from (f"{name}.{key} = {json.dumps(one)}" for key, one in value.items())
        else:
            yield f"{name} = {json.dumps(value)}"
