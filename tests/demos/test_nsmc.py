"""The Korean demo runs from raw reviews to their sentiment, with and without a segmenter, and loses no Hangul."""

import functools
import json

import pytest
from nsmc import nsmc
from reviews import read_labelled, write_reviews
from steps import run_demo

from albert_tf.tokenization import AlbertTokenizer
from tests.cli.terminal import mistake, output_of
from tests.small_pipeline import REPOSITORY

from .small_recipes import shrink

PROGRAM = functools.partial(run_demo, nsmc)

DATA = REPOSITORY / "training/sample_data/nsmc"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The first reviews of each file."""
    folder = tmp_path_factory.mktemp("nsmc")
    for file, lines in (("reviews.txt", 800), ("ratings_train.txt", 65), ("ratings_test.txt", 33)):
        text = (DATA / file).read_text(encoding="utf-8").split("\n")[:lines]
        (folder / file).write_text("\n".join(text) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    return shrink(REPOSITORY / "training/recipes/nsmc.toml", tmp_path_factory.mktemp("recipe"))


@pytest.mark.exhaustive
@pytest.mark.parametrize("segmenter", [None, "kiwi"])
def test_the_demo(data, recipe, tmp_path, segmenter):
    options = () if segmenter is None else ("--segmenter", segmenter)
    printed = output_of("--output", tmp_path, "--data", data, "--recipe", recipe, *options, program=PROGRAM)
    for line in ("sentiment of 32 reviews", "same network without", "TF-IDF of characters", "강추!"):
        assert line in printed
    for folder in (tmp_path / "pretraining/model", tmp_path / "finetuning/pretrained"):
        tokenizer = AlbertTokenizer.from_pretrained(folder)
        config = json.loads((folder / "tokenizer_config.json").read_text())
        assert config.get("segmenter") == segmenter
        reviews = (data / "reviews.txt").read_text(encoding="utf-8").split()
        ids = [index for row in tokenizer.encode_batch(reviews) for index in row]
        assert ids.count(tokenizer.unk_token_id) < len(ids) / 100
    if segmenter:
        assert "must work without a segmenter" in mistake(
            "export", tmp_path / "finetuning/pretrained", "--output", tmp_path / "saved", "--name", "sentiment"
        )


def test_reviews_are_documents_and_every_twentieth_is_held_out(data, tmp_path):
    write_reviews(data, tmp_path)
    train, heldout = ((tmp_path / f"{name}.txt").read_text().split("\n\n") for name in ("train", "heldout"))
    assert (len(train), len(heldout)) == (380, 20)  # of 400 reviews, with an empty line behind each
    assert not set(heldout) & set(train)


def test_without_unlabelled_reviews_the_labelled_ones_are_read(data, tmp_path):
    for name in ("ratings_train.txt", "ratings_test.txt"):
        (tmp_path / name).write_bytes((data / name).read_bytes())
    write_reviews(tmp_path, tmp_path / "corpus")
    words = (tmp_path / "corpus/train.txt").read_text(encoding="utf-8").split()
    assert set(words) <= {word for text in read_labelled(tmp_path, "ratings_train.txt").texts for word in text.split()}


def test_reviews_that_are_not_utf_8_are_named_and_only_line_ends_part_them(tmp_path):
    (tmp_path / "reviews.txt").write_text("one\u2028review\r\nanother\n", encoding="utf-8")
    write_reviews(tmp_path, tmp_path / "corpus")
    assert (tmp_path / "corpus/train.txt").read_text(encoding="utf-8") == "one\u2028review\n\nanother\n"
    (tmp_path / "reviews.txt").write_bytes("영화".encode("cp949"))
    with pytest.raises(ValueError, match=r"reviews\.txt is not UTF-8: byte 0xbf at byte offset 0"):
        write_reviews(tmp_path, tmp_path / "corpus")


def test_a_folder_without_reviews_is_named(tmp_path, recipe):
    sentence = mistake("--output", tmp_path / "out", "--data", tmp_path, "--recipe", recipe, program=PROGRAM)
    assert "ratings_train.txt" in sentence
    assert not (tmp_path / "out").exists()
