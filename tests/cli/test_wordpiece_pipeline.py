"""The whole pipeline with a WordPiece vocabulary: from text to answers of an exported model, and through `convert`."""

import json

import pytest

from albert_tf import pipeline
from albert_tf.tokenization import AlbertTokenizer
from tests.small_pipeline import NOVEL, VOCAB_SIZE, SmallPipeline, small_recipe
from tests.toy_task import write_mood_table

from .terminal import output_of
from .test_main_path import write_recipe


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Every stage's folder, each made by its command."""
    folder = tmp_path_factory.mktemp("wordpiece")
    pipeline = SmallPipeline(*(folder / name for name in ("train.txt", "vocabulary", "examples", "heldout")))
    chapters = NOVEL.read_text(encoding="utf-8").split("\n\n")
    pipeline.text.write_text("\n\n".join(chapters[:3]) + "\n", encoding="utf-8")
    (folder / "heldout.txt").write_text(chapters[3] + "\n", encoding="utf-8")
    write_mood_table(folder / "train.tsv", 20, seed=1)
    write_mood_table(folder / "dev.tsv", 10, seed=2)
    train = ("train-tokenizer", pipeline.text, "--output", pipeline.vocabulary, "--vocab-size", VOCAB_SIZE)
    output_of(*train, "--model-type", "wordpiece", "--no-do-lower-case")
    for text, examples in ((pipeline.text, pipeline.examples), (folder / "heldout.txt", pipeline.heldout)):
        prepare = ("prepare", text, "--output", examples, "--tokenizer", pipeline.vocabulary, "--split-sentences")
        output_of(*prepare, "--max-seq-length", 32, "--dupe-factor", 1, "--num-processes", 2)
    values = small_recipe(pipeline, num_train_steps=6, log_every=3, evaluate_every=6, save_every=6)
    output_of("pretrain", write_recipe(folder / "recipe.toml", values), "--output", folder / "run")
    tables = ("--train", folder / "train.tsv", "--dev", folder / "dev.tsv", "--output", folder / "classifier")
    output_of("finetune", folder / "run" / "model", *tables, "--epochs", 1, "--batch-size", 8)
    output_of("export", folder / "classifier", "--name", "mood", "--output", folder / "saved")
    return folder


@pytest.mark.exhaustive
def test_every_stage_keeps_the_vocabulary(folder):
    hashes = set()
    for stage in ("vocabulary", "run/model", "classifier"):
        assert not (folder / stage / "spiece.model").exists()
        tokenizer = AlbertTokenizer.from_pretrained(folder / stage)
        assert tokenizer.options.do_lower_case is False
        hashes.add(tokenizer.vocab_hash)
    manifest = json.loads((folder / "examples" / "manifest.json").read_text())
    assert hashes == {manifest["recipe"]["vocab_hash"]}


@pytest.mark.exhaustive
def test_the_exported_model_answers_as_the_model_does(folder):
    texts = ["the Garden went by", "a cold, cold house — grief!", ""]
    predictor = pipeline(folder / "classifier")
    lines = output_of("predict", folder / "saved" / "mood" / "1", *texts).splitlines()
    for line, prediction in zip(lines, predictor(texts), strict=True):
        assert json.loads(line)["prediction"]["probabilities"] == pytest.approx(prediction.probabilities, abs=1e-4)
    printed = output_of("predict", folder / "run" / "model", "the old [MASK].")
    (guess,) = pipeline(folder / "run" / "model")("the old [MASK].")
    assert all(piece in printed for piece in guess.pieces)


@pytest.mark.exhaustive
def test_converting_takes_the_vocabulary_along(folder):
    for to in ("google", "huggingface"):
        output_of("convert", folder / "run" / "model", folder / to, "--to", to)
        copy = AlbertTokenizer.from_pretrained(folder / to)
        assert copy.vocab_hash == AlbertTokenizer.from_pretrained(folder / "vocabulary").vocab_hash
