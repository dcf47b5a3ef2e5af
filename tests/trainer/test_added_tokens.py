"""Recipes that add tokens to a vocabulary: from prepared text over pretraining to a classifier."""

import json

import pytest

from albert_tf import AlbertTokenizer, checkpoints
from albert_tf.data import PrepareOptions, prepare
from albert_tf.data.manifest import Manifest
from albert_tf.trainer import finetune, parse_recipe, pretrain
from tests.cli.terminal import mistake
from tests.small_pipeline import LENGTH, small_recipe
from tests.toy_task import write_mood_table, write_pretrained
from tests.trainer.mood_runs import options_for
from tests.trainer.test_pretraining import SHORT

TOKENS = ["Squire Trelawney", "[E1]", "Benbow"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("added")
    write_pretrained(folder / "pretrained")
    write_mood_table(folder / "few.tsv", 40, seed=3)
    (folder / "tokens.txt").write_text("Squire Trelawney\n\n [E1]\r\nBenbow\n▁the\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def examples(files, pipeline):
    options = {"split_sentences": True, "max_seq_length": LENGTH, "num_shards": 2, "dupe_factor": 1}
    files_of = {"inputs": (pipeline.text,), "output_dir": files / "examples", "tokenizer": files / "pretrained"}
    return prepare(PrepareOptions(**files_of, **options, add_tokens=files / "tokens.txt")).folder


def recipe_of(pipeline, files, examples, **model):
    model = {"weights": str(files / "pretrained"), "add_tokens": str(files / "tokens.txt"), **model}
    return {**small_recipe(pipeline, **SHORT), "model": model, "data": {"examples": str(examples)}}


@pytest.mark.exhaustive
def test_pretraining_and_fine_tuning_add_the_tokens_of_a_file(pipeline, files, examples, tmp_path):
    report = pretrain(parse_recipe(recipe_of(pipeline, files, examples)), tmp_path / "run", show_progress=False)
    once = finetune(options_for(files, tmp_path / "once", add_tokens=files / "tokens.txt"))
    twice = finetune(
        options_for(files, tmp_path / "twice", add_tokens=files / "tokens.txt", pretrained=report.model_folder)
    )
    expected = {token: 30_000 + index for index, token in enumerate(TOKENS)}
    for folder in (report.model_folder, once.folder, twice.folder):
        tokenizer = AlbertTokenizer.from_pretrained(folder)
        assert tokenizer.added_tokens == expected
        assert tokenizer.vocab_hash == Manifest.load(examples).recipe.vocab_hash
        assert checkpoints.read(folder).config.vocab_size == 30_003
    assert json.loads((once.folder / "recipe.json").read_text())["pretrained"]["vocab_hash"] == tokenizer.vocab_hash


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ({"add_tokens": "nothing.txt"}, "nothing.txt does not exist"),
        ({"add_tokens": 3}, "`\\[model\\]` must have either `preset` or `weights`.*`add_tokens`"),
        ({"weights": None}, "`\\[model\\]` must have either `preset` or `weights`.*`add_tokens`"),
        ({"vocab_size": 30_003}, "`add_tokens`, the path of a file, instead of `vocab_size`"),
    ],
)
def test_recipes_that_do_not_fit(pipeline, files, examples, model, sentence):
    values = recipe_of(pipeline, files, examples, **model)
    values["model"] = {name: value for name, value in values["model"].items() if value is not None}
    with pytest.raises(ValueError, match=sentence):
        parse_recipe(values)


def test_data_with_other_tokens_are_refused(pipeline, files, examples, tmp_path):
    (tmp_path / "other.txt").write_text("Squire\nTrelawney\nBenbow\n")
    recipe = parse_recipe(recipe_of(pipeline, files, examples, add_tokens=str(tmp_path / "other.txt")))
    with pytest.raises(ValueError, match=r"was prepared with another vocabulary.*--add-tokens .*other.txt"):
        recipe.check_vocabulary()
    parse_recipe(recipe_of(pipeline, files, examples)).check_vocabulary()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "has no tokens; write one a line"),
        (b"\n  \n", "has no tokens"),
        (b"a\xff", "not valid UTF-8 at byte 1"),
        (b"a\0b\n", "An added token must be a string"),
        ("e\n\u0301\n".encode(), "Something must be left"),
    ],
)
def test_files_of_tokens_that_are_refused(files, tmp_path, content, sentence):
    (tmp_path / "tokens.txt").write_bytes(content)
    command = ("finetune", files / "pretrained", "--train", files / "few.tsv", "--dev", files / "few.tsv")
    said = mistake(*command, "--output", tmp_path / "out", "--set", f"add_tokens={tmp_path / 'tokens.txt'}")
    assert sentence in said
    assert not (tmp_path / "out").exists()
