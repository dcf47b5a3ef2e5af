"""The commands from text to a pretrained model: what they print, and one sentence for each mistake."""

import gzip
import json
import pathlib
import shutil

import pytest

from albert_tf.tokenization import AlbertTokenizer
from tests.disk import flip_bit
from tests.small_pipeline import NOVEL, small_recipe
from tests.trainer.runs import write_recipe

from .terminal import mistake, output_of, run

SENTENCES = "".join(f"It rained on day {n}.\nThe hall stayed dry.\nNobody came.\n\n" for n in range(40))


def test_train_tokenizer_writes_a_vocabulary(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text(NOVEL.read_text(encoding="utf-8")[:40_000], encoding="utf-8")
    printed = output_of("train-tokenizer", text, "--output", tmp_path / "vocabulary", "--vocab-size", 300)
    assert "300 pieces" in printed
    assert (tmp_path / "vocabulary/spiece.model").is_file()
    (row,) = (line for line in printed.split("\n") if "held-out characters per token" in line)
    report = json.loads((tmp_path / "vocabulary/vocabulary_report.json").read_text())
    assert row.split()[-2] == f"{report['characters_per_token']:.3f}"


@pytest.mark.exhaustive
def test_train_tokenizer_passes_every_option_on(tmp_path):
    for name, part in (("a.txt.gz", slice(0, 40_000)), ("heldout.txt", slice(40_000, 50_000))):
        text = NOVEL.read_text(encoding="utf-8")[part].encode()
        (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    command = ("train-tokenizer", tmp_path / "a.txt.gz", "--heldout", tmp_path / "heldout.txt", "--seed", 7)
    command += ("--input-sentence-size", 100, "--character-coverage", 0.99, "--no-do-lower-case", "--keep-accents")
    command += ("--model-type", "bpe", "--vocab-size", 420, "--user-defined-symbols", "Silver,zzz", "--byte-fallback")
    assert f"420 pieces in {tmp_path / 'new'}" in output_of(*command, "--output", tmp_path / "new")
    tokenizer = AlbertTokenizer.from_pretrained(tmp_path / "new")
    assert (tokenizer.options.keep_accents, tokenizer.options.do_lower_case) == (True, False)
    assert {"Silver", "zzz", "<0xFF>"} < set(tokenizer.pieces)
    report = json.loads((tmp_path / "new" / "vocabulary_report.json").read_text())
    assert report["num_training_lines"] == 100
    assert report["num_heldout_lines"] > 0


@pytest.mark.exhaustive
def test_train_tokenizer_keeps_to_morphemes_and_holds_lines_out(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("나는 밥을 먹었다.\n학교에 갔다가 밥을 먹었다.\n" * 20, encoding="utf-8")
    command = ("train-tokenizer", text, "--output", tmp_path / "ko", "--keep-accents", "--character-coverage", 1)
    output_of(*command, "--vocab-size", 27, "--segmenter", "kiwi", "--heldout-share", 0.5)
    assert json.loads((tmp_path / "ko" / "tokenizer_config.json").read_text())["segmenter"] == "kiwi"
    report = json.loads((tmp_path / "ko" / "vocabulary_report.json").read_text())
    assert report["num_heldout_lines"] == 20


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--user-defined-symbols", "@a,[SEP]"), "`user_defined_symbols` must not name special pieces"),
        (("--character-coverage", 1.5), "`character_coverage` must be between 0.98 and 1.0"),
        (("--vocab-size", 30000), "vocab_size"),
    ],
    ids=str,
)
def test_train_tokenizer_names_a_mistake(tmp_path, options, sentence):
    (tmp_path / "text.txt").write_text(SENTENCES, encoding="utf-8")
    said = mistake("train-tokenizer", tmp_path / "text.txt", "--output", tmp_path / "vocabulary", *options)
    assert sentence in said
    assert not (tmp_path / "vocabulary").exists()


def test_prepare_prints_what_it_wrote_and_does_it_once(pipeline, tmp_path):
    command = ("prepare", pipeline.text, "--output", tmp_path / "examples", "--tokenizer", pipeline.vocabulary)
    options = ("--max-seq-length", 32, "--dupe-factor", 1, "--split-sentences")
    printed = output_of(*command, *options)
    manifest = json.loads((tmp_path / "examples/manifest.json").read_text())
    count = sum(shard["statistics"]["examples"] for shard in manifest["shards"])
    assert f"{count:,}" in printed
    assert "existing files" in output_of(*command, *options)
    refusal = mistake(*command, *options, "--ngram", 1)
    assert "ngram" in refusal
    assert json.loads((tmp_path / "examples/manifest.json").read_text()) == manifest


@pytest.mark.parametrize("option", [("--max-seq-length", 1), ("--objective", "order"), ("--masked-lm-prob", 2)])
def test_prepare_explains_an_option_that_cannot_be(option, pipeline, tmp_path):
    name = option[0].removeprefix("--").replace("-", "_")
    assert f"`{name}`" in mistake("prepare", pipeline.text, "--output", tmp_path / "examples", *option)


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore:.*treated as one sentence:UserWarning")  # the long line is hinted at
def test_long_lines_and_odd_characters_do_no_harm(pipeline, tmp_path):
    text = tmp_path / "text.txt"
    text.write_bytes(SENTENCES.encode() + b"x" * 1_000_000 + b"\nNUL \x00 here.\n\xed\x95\x9c.\n" + SENTENCES.encode())
    command = ("prepare", text, "--output", tmp_path / "examples", "--tokenizer", pipeline.vocabulary)
    output_of(*command, "--max-seq-length", 32, "--dupe-factor", 1)
    assert json.loads((tmp_path / "examples/manifest.json").read_text())["shards"]


def test_pretrain_prints_results_and_says_what_differs(pipeline, tmp_path):
    values = small_recipe(pipeline, num_train_steps=10, log_every=10, evaluate_every=10, save_every=10)
    recipe = write_recipe(tmp_path / "recipe.toml", values)
    code, printed, err = run("pretrain", recipe, "--output", tmp_path / "run")
    assert code == 0
    assert "2 layers of width 32, vocabulary of 400: " in err
    assert " examples, 0." in err
    assert "masked lm loss" in printed
    assert "unigram entropy" in printed
    values["optimizer"]["learning_rate"] = 0.02
    changed = write_recipe(tmp_path / "changed.toml", values)
    sentence = mistake("pretrain", changed, "--output", tmp_path / "run")
    assert "optimizer.learning_rate (there 0.03, here 0.02)" in sentence


def test_pretrain_explains_a_recipe_that_cannot_be(pipeline, tmp_path):
    for section, key, value, message in (
        ("training", "bach_size", 4, "did you mean 'batch_size'"),
        ("data", "examples", "nowhere", "nowhere"),
    ):
        values = small_recipe(pipeline)
        values[section][key] = value
        recipe = write_recipe(tmp_path / "recipe.toml", values)
        assert message in mistake("pretrain", recipe, "--output", tmp_path / "run")
        assert not (tmp_path / "run").exists()


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("default::UserWarning")  # printed, as a user sees it
def test_a_corrupt_shard_is_named_with_its_record(pipeline, tmp_path):
    broken = pathlib.Path(shutil.copytree(pipeline.examples, tmp_path / "broken"))
    shard = sorted(broken.glob("*.tfrecord"))[1]
    flip_bit(shard)
    values = small_recipe(pipeline)
    values["data"]["examples"] = str(broken)
    recipe = write_recipe(tmp_path / "recipe.toml", values)
    code, _, err = run("pretrain", recipe, "--output", tmp_path / "run")
    began, size, sentence = err.strip().splitlines()
    assert (code, began) == (2, "training on 1 CPU")
    assert size.startswith("2 layers of width 32, vocabulary of ")
    assert shard.name in sentence
    assert "record" in sentence
    code, printed, warning = run("pretrain", recipe, "--output", tmp_path / "run", "--skip-corrupt")
    assert code == 0, warning
    assert "masked lm loss" in printed
    assert any(line.startswith("albert-tf: ") and shard.name in line for line in warning.splitlines()), warning
