"""Sentence embeddings from tables to the command line: what is learnt, written, exported and refused."""

import csv
import json
import random

import numpy as np
import pandas
import pytest

import albert_tf
from albert_tf import AlbertForSentenceEmbedding
from albert_tf.data.finetuning.encoded import encode_texts
from albert_tf.export import export_saved_model
from albert_tf.metrics import RegressionScores, cosines
from albert_tf.tasks.sentence_embedding import task as sentence_embedding
from albert_tf.trainer import FinetuneOptions, finetune
from albert_tf.trainer.evaluation import evaluate_folder
from tests.cli.terminal import mistake, output_of
from tests.toy_task import CONFIG, GLOOMY, PLEASANT, tokenizer, write_pretrained

FILLING = ("the", "a", "old", "man", "house", "went", "by", "and")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two texts are similar if both are pleasant or both are gloomy."""
    folder = tmp_path_factory.mktemp("sentences")
    write_pretrained(folder / "pretrained")
    chance = random.Random(0)

    def text(words):
        return " ".join([*chance.choices(FILLING, k=3), chance.choice(words)])

    with (folder / "pairs.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["one", "two", "other", "score", "relation"])
        for _ in range(80):
            same, kinds = chance.random() < 0.5, chance.sample([PLEASANT, GLOOMY], 2)
            row = [text(kinds[0]), text(kinds[0] if same else kinds[1]), text(kinds[1])]
            table.writerow([*row, 5 if same else 0, "same" if same else "other"])
    return folder


def options_for(files, output, **changes):
    values = {"pretrained": files / "pretrained", "train": files / "pairs.csv", "dev": files / "pairs.csv"}
    columns = {"text_column": "one", "pair_column": "two", "label_column": "score", "largest_label": 5}
    values |= {"max_length": 16, "learning_rate": 3e-3, "epochs": 4, "batch_size": 8, "output": output}
    return FinetuneOptions(task="sentence_embedding", **{**columns, **values, **changes})


@pytest.fixture(scope="module")
def run(files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "run"
    return folder, finetune(options_for(files, folder, normalize=True))


def test_similarities_are_learnt(files, run):
    folder, report = run
    assert isinstance(report.scores, RegressionScores)
    assert report.main_score == "spearman"
    assert report.scores.spearman > 0.8
    assert len((folder / "dev_predictions.tsv").read_text(encoding="utf-8").splitlines()) == 81
    examples, again = evaluate_folder(folder, files / "pairs.csv")
    assert (examples, again.scores) == (80, report.scores)
    predictor = albert_tf.pipeline(folder)
    assert (predictor.model.settings.max_length, predictor.model.model.normalize) == (16, True)
    vectors = np.array(predictor(["the old sun", "the old joy", "the old grief"]))
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    same, other = cosines(vectors[[0, 0]], vectors[1:])
    assert same > other


@pytest.mark.exhaustive
@pytest.mark.parametrize("objective", ["ranking", "triplet"])
def test_other_objectives(files, tmp_path, objective):
    pairs = pandas.read_csv(files / "pairs.csv")
    columns = {"train": pairs[pairs["relation"] == "same"], "dev": pairs}
    report = finetune(options_for(files, tmp_path / "run", **columns, negative_column="other", objective=objective))
    assert report.train_examples < report.dev_examples == 80
    assert report.scores.spearman > 0.4


@pytest.mark.exhaustive
def test_random_weights_keep_normalisation_and_length_of_the_model(files, run, tmp_path):
    changes = {"pretrained": run[0], "from_scratch": True, "max_length": None, "epochs": 1}
    finetune(options_for(files, tmp_path / "run", **changes))
    loaded = albert_tf.pipeline(tmp_path / "run").model
    assert (loaded.settings.max_length, loaded.model.normalize) == (16, True)


@pytest.mark.exhaustive
def test_command_and_export_give_the_same_embeddings(run, tmp_path):
    folder, _ = run
    texts = ["the old sun", "a storm went by, and by, and by, and by, and by, and by, and by", ""]
    expected = np.array(albert_tf.pipeline(folder)(texts))
    report = export_saved_model(folder, tmp_path, "sentences")
    assert report.largest_difference < 1e-5
    np.testing.assert_allclose(albert_tf.pipeline(tmp_path / "sentences")(texts), expected, atol=1e-5, rtol=0)
    (tmp_path / "texts.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in texts), encoding="utf-8")
    for model in (folder, tmp_path / "sentences"):
        lines = output_of("predict", model, "--data", tmp_path / "texts.jsonl").splitlines()
        np.testing.assert_allclose([json.loads(line)["embedding"] for line in lines], expected, atol=1e-5, rtol=0)
        (cosine,) = cosines(expected[:1], expected[1:2])
        shown = json.loads(output_of("predict", model, texts[0], "--pair", texts[1]))["prediction"]
        assert shown == pytest.approx(cosine, abs=1e-4)
    (line,) = output_of("predict", folder, texts[0]).splitlines()
    np.testing.assert_allclose(json.loads(line)["prediction"], expected[0], atol=1e-5, rtol=0)
    assert "must be .jsonl" in mistake(
        "predict", folder, "--data", tmp_path / "texts.jsonl", "--output", tmp_path / "a.tsv"
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pair_column": None}, "`pair_column` must be given"),
        ({"main_score": "accuracy"}, "`main_score` must be 'spearman' or 'pearson'"),
        ({"objective": "triplet"}, "`negative_column` must be given for the objective 'triplet'"),
        ({"largest_label": 4}, "the label '5' is not a number from 0 to 4"),
        ({"label_column": "relation"}, "the label '(same|other)' is not a number"),
    ],
)
def test_mistakes_with_tables(files, tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        finetune(options_for(files, tmp_path / "run", **changes))


def write_model(folder, pairs, **arguments):
    """Writes a model with random weights and a table of pairs with the numbers 0 to 6; gives the options to read it."""
    AlbertForSentenceEmbedding(CONFIG, **arguments).save_pretrained(folder / "model")
    tokenizer().save_pretrained(folder / "model")
    rows = [f"{first}\t{second}\t{number % 7}" for number, (first, second) in enumerate(pairs)]
    (folder / "pairs.tsv").write_text("one\ttwo\tscore\n" + "\n".join(rows), encoding="utf-8")
    return {"text_column": "one", "pair_column": "two", "label_column": "score"}


def test_evaluation_cuts_texts_as_the_model_does(tmp_path):
    texts = ["the sun " * 20 + word for word in (*PLEASANT, *GLOOMY)][:7]
    pairs = [(text, f"{word} {text}") for text, word in zip(texts, FILLING)]
    _, evaluation = evaluate_folder(
        tmp_path / "model", tmp_path / "pairs.tsv", **write_model(tmp_path, pairs, max_length=8)
    )
    found = [albert_tf.pipeline(tmp_path / "model")(list(side)) for side in zip(*pairs)]
    expected = np.corrcoef(cosines(*map(np.array, found)), np.arange(len(pairs)))[0, 1]
    assert evaluation.scores.pearson == pytest.approx(expected, abs=1e-3)


def test_each_different_sentence_is_computed_once(tmp_path, monkeypatch):
    pairs = [(first, second) for first in (*PLEASANT, "") for second in FILLING[:6]]
    columns, encoded = write_model(tmp_path, pairs), []
    monkeypatch.setattr(
        sentence_embedding,
        "encode_texts",
        lambda _, texts, *given: encoded.extend(texts) or encode_texts(_, texts, *given),
    )
    monkeypatch.setattr(sentence_embedding, "_PAIRS_AT_ONCE", 4)
    _, evaluation = evaluate_folder(tmp_path / "model", tmp_path / "pairs.tsv", **columns)
    assert encoded == [*PLEASANT, "", *FILLING[:6]]
    found = [np.array(albert_tf.pipeline(tmp_path / "model")(list(side))) for side in zip(*pairs)]
    np.testing.assert_allclose(evaluation.logits[:, 0], cosines(*found), atol=1e-5)
