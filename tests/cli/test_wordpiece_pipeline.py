"""The whole pipeline with a WordPiece vocabulary: from text to answers of an exported model, and through `convert`."""

import json

import pytest

import albert_tf
from albert_tf.tokenization import AlbertTokenizer
from tests.small_pipeline import NOVEL, VOCAB_SIZE, SmallPipeline, small_recipe
from tests.toy_task import write_mood_table
from tests.trainer.runs import write_recipe

from .terminal import output_of


@pytest.mark.exhaustive
def test_every_stage_keeps_the_vocabulary(tmp_path):
    pipeline = SmallPipeline(*(tmp_path / name for name in ("train.txt", "vocabulary", "examples", "heldout")))
    chapters = NOVEL.read_text(encoding="utf-8").split("\n\n")
    pipeline.text.write_text("\n\n".join(chapters[:3]) + "\n", encoding="utf-8")
    (tmp_path / "heldout.txt").write_text(chapters[3] + "\n", encoding="utf-8")
    write_mood_table(tmp_path / "train.tsv", 20, seed=1)
    train = ("train-tokenizer", pipeline.text, "--output", pipeline.vocabulary, "--vocab-size", VOCAB_SIZE)
    output_of(*train, "--model-type", "wordpiece", "--no-do-lower-case")
    for text, examples in ((pipeline.text, pipeline.examples), (tmp_path / "heldout.txt", pipeline.heldout)):
        prepare = ("prepare", text, "--output", examples, "--tokenizer", pipeline.vocabulary, "--split-sentences")
        output_of(*prepare, "--max-seq-length", 32, "--dupe-factor", 1, "--num-processes", 2)
    values = small_recipe(pipeline, num_train_steps=6, log_every=3, evaluate_every=6, save_every=6)
    output_of("pretrain", write_recipe(tmp_path / "recipe.toml", values), "--output", tmp_path / "run")
    model, tables = tmp_path / "run/model", ("--train", tmp_path / "train.tsv", "--dev", tmp_path / "train.tsv")
    output_of("finetune", model, *tables, "--output", tmp_path / "classifier", "--epochs", 1, "--batch-size", 8)
    for to in ("google", "huggingface"):
        output_of("convert", model, tmp_path / to, "--to", to)
    hashes = {json.loads((tmp_path / "examples/manifest.json").read_text())["recipe"]["vocab_hash"]}
    for stage in ("vocabulary", "run/model", "classifier", "google", "huggingface"):
        assert not (tmp_path / stage / "spiece.model").exists()
        tokenizer = AlbertTokenizer.from_pretrained(tmp_path / stage)
        assert tokenizer.options.do_lower_case is False
        hashes.add(tokenizer.vocab_hash)
    assert len(hashes) == 1
    output_of("export", tmp_path / "classifier", "--name", "mood", "--output", tmp_path / "saved")
    texts = ["the Garden went by", "a cold, cold house — grief!", ""]
    lines = output_of("predict", tmp_path / "saved/mood/1", *texts).splitlines()
    for line, prediction in zip(lines, albert_tf.pipeline(tmp_path / "classifier")(texts), strict=True):
        assert json.loads(line)["prediction"]["probabilities"] == pytest.approx(prediction.probabilities, abs=1e-4)
