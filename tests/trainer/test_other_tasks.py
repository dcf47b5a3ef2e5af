"""Fine-tuning of taggers and of multiple choice, and the files that they write."""

import json
import random

import pytest
import tensorflow as tf

import albert_tf
from albert_tf.export import export_onnx, export_saved_model
from albert_tf.files.json import read_json
from albert_tf.inference.folder import load_folder
from albert_tf.metrics import ChoiceScores, ConstantScore, LabelScores, TagScores
from albert_tf.tasks.token_classification.evaluation import TagEvaluation
from albert_tf.tasks.token_classification.tagged import TaggedText, encode_tagged
from albert_tf.tasks.token_classification.task import TokenClassification
from albert_tf.trainer import FinetuneOptions, finetune
from albert_tf.trainer.evaluation import evaluate_folder, predict_folder
from tests.toy_task import tokenizer, write_pretrained

LOCATIONS = ("O", "B-LOC", "I-LOC")
NAMES, FILLING = ("anna", "bruno", "clara", "david"), ("the", "old", "house", "was", "by", "a", "river")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tasks")
    write_pretrained(folder / "pretrained")
    chance = random.Random(0)
    columns, spans, choices = [], [], []
    for number in range(60):
        words = chance.choices(FILLING, k=chance.randrange(3, 12 + 40 * (number == 7)))
        place = chance.randrange(len(words))
        words[place] = chance.choice(NAMES)
        columns += [f"{word}\t{'B-PER' if word in NAMES else 'O'}" for word in words] + [""]
        start = len(" ".join(words[:place])) + bool(place)
        span = {"start": start, "end": start + len(words[place]), "label": "PER"}
        spans.append(json.dumps({"text": " ".join(words), "spans": [span]}))
        answers = chance.sample([words[place], "table", "spoon"], 3)
        label = answers.index(words[place])
        choices.append({"context": " ".join(words), "question": "who?", "choices": answers, "label": label})
    (folder / "words.conll").write_text("\n".join(columns), encoding="utf-8")
    (folder / "spans.jsonl").write_text("\n".join(spans), encoding="utf-8")
    (folder / "choices.jsonl").write_text("\n".join(map(json.dumps, choices)), encoding="utf-8")
    return folder


def options_for(files, output, task, file, **changes):
    paths = {"pretrained": files / "pretrained", "train": files / file, "dev": files / file, "output": output}
    values = {"max_length": 32, "learning_rate": 1e-2, "epochs": 8, "batch_size": 8}
    values |= {} if task == "multiple_choice" else {"doc_stride": 10}
    return FinetuneOptions(task=task, **paths, **{**values, **changes})


@pytest.mark.exhaustive
@pytest.mark.parametrize("file", ["words.conll", "spans.jsonl"])
def test_entities_are_learnt(files, tmp_path, file):
    report = finetune(options_for(files, tmp_path / "run", "token_classification", file))
    tags_words = file == "words.conll"
    assert load_folder(tmp_path / "run").settings.tag_words is tags_words
    assert read_json(tmp_path / "run/recipe.json", cure="")["tag_words"] is tags_words
    assert isinstance(report.scores, TagScores)
    assert report.main_score == "f1"
    assert report.scores.f1 > 0.9
    assert {label: each.f1 for label, each in report.scores.by_label.items()} == {"PER": report.scores.f1}
    rows = [json.loads(line) for line in (tmp_path / "run/dev_predictions.jsonl").read_text("utf-8").splitlines()]
    assert len(rows) == report.dev_examples == 60
    found = [span["text"] for row in rows for span in row["spans"]]
    assert all(span["text"] == row["text"][span["start"] : span["end"]] for row in rows for span in row["spans"])
    assert sum(text in NAMES for text in found) > 50
    assert ("tags" in rows[0]) == tags_words
    examples, again = evaluate_folder(tmp_path / "run", files / file)
    assert (examples, again.scores) == (60, report.scores)


@pytest.fixture(scope="module")
def parts_of_speech(files):
    """The folder of a model that was trained on parts of speech, and its report."""
    chance, lines = random.Random(0), []
    for _ in range(30):
        words = chance.choices((*NAMES, "the", "a", "house", "river"), k=chance.randrange(3, 9))
        tags = ["PROPN" if word in NAMES else "DET" if word in ("the", "a") else "NOUN" for word in words]
        lines += [*map("\t".join, zip(words, tags)), ""]
    (files / "pos.conll").write_text("\n".join(lines), encoding="utf-8")
    report = finetune(options_for(files, files / "pos", "token_classification", "pos.conll"))
    return files / "pos", report


def test_parts_of_speech_are_learnt(files, parts_of_speech, tmp_path):
    folder, report = parts_of_speech
    assert report.main_score == "accuracy"
    assert report.score_by_evaluation[report.kept_evaluation - 1] == report.scores.accuracy == report.scores.f1 > 0.9
    assert set(report.scores.by_label) == {"DET", "NOUN", "PROPN"}
    assert evaluate_folder(folder, files / "pos.conll")[1].scores == report.scores
    predict_folder(folder, files / "pos.conll", tmp_path / "words.jsonl")
    (row, *_) = (json.loads(line) for line in (tmp_path / "words.jsonl").read_text("utf-8").splitlines())
    assert [span["label"] for span in row["spans"]] == row["tags"]
    assert [span["text"] for span in row["spans"]] == row["text"].split()
    (tmp_path / "texts.txt").write_text("the river the house\n", encoding="utf-8")
    predict_folder(folder, tmp_path / "texts.txt", tmp_path / "texts.jsonl")
    (row,) = (json.loads(line) for line in (tmp_path / "texts.jsonl").read_text("utf-8").splitlines())
    assert [span["text"] for span in row["spans"]] == ["the", "river", "the", "house"]


@pytest.mark.exhaustive
def test_neighbours_of_the_same_part_of_speech_are_words_of_their_own_in_exports(parts_of_speech, tmp_path):
    text = "the house house river"
    expected = albert_tf.pipeline(parts_of_speech[0])(text)
    assert [(word.text, word.label) for word in expected] == list(zip(text.split(), ["DET", "NOUN", "NOUN", "NOUN"]))
    exported = (
        export_saved_model(parts_of_speech[0], tmp_path, "saved").folder,
        export_onnx(parts_of_speech[0], tmp_path, "onnx", precisions=["float32"]).folder,
    )
    for folder in exported:
        assert [(word.label, word.start, word.end) for word in albert_tf.pipeline(folder)(text)] == [
            (word.label, word.start, word.end) for word in expected
        ]
    served = tf.saved_model.load(str(exported[0])).signatures["serving_default"](text=tf.constant([text, "the"]))
    assert served["entity_text"].numpy().tolist() == [[b"the", b"house", b"house", b"river"], [b"the", b"", b"", b""]]
    assert served["entity_label"][0].numpy().tolist() == [b"DET", b"NOUN", b"NOUN", b"NOUN"]


@pytest.mark.parametrize("labels", [("O", "DET", "NOUN", "PROPN"), ("B-PER", "DET", "NOUN", "PROPN")])
def test_tags_of_words_and_of_entities_are_not_mixed(files, tmp_path, labels):
    options = options_for(files, tmp_path, "token_classification", "words.conll", labels=labels)
    with pytest.raises(ValueError, match=r"Tags must all be O, or B-, .*, such as parts of speech\. Received: 'DET'"):
        TokenClassification(None, options.settings).model_arguments([])


def test_a_word_without_tokens_is_outside_of_entities():
    words = ((0, 3), (4, 5), (6, 11))
    encoded = encode_tagged(tokenizer(), [TaggedText("", "old \u0301 house", words, ("B-LOC", "O", "O"))], LOCATIONS)
    evaluation = TagEvaluation.of(encoded, [["B-LOC", "O"]], LOCATIONS)
    assert (evaluation.predictions, evaluation.scores.f1) == ([["B-LOC", "O", "O"]], 1.0)
    assert evaluation.constant_score == ConstantScore("accuracy of the most frequent tag", 2 / 3)
    assert evaluation.notes == []


@pytest.mark.exhaustive
def test_choices_are_learnt(files, tmp_path):
    report = finetune(options_for(files, tmp_path / "run", "multiple_choice", "choices.jsonl", epochs=8))
    assert isinstance(report.scores, ChoiceScores)
    assert report.scores.accuracy > 0.9 > report.constant_score.value
    assert report.constant_score.name == "accuracy of the most frequent position"
    lines = (tmp_path / "run/dev_predictions.tsv").read_text("utf-8").splitlines()
    assert lines[0].split("\t") == ["question", "label", "prediction", "logit 0", "logit 1", "logit 2"]
    assert sum(line.split("\t")[1] == line.split("\t")[2] for line in lines) == round(60 * report.scores.accuracy)
    examples, again = evaluate_folder(tmp_path / "run", files / "choices.jsonl")
    assert (examples, again.scores) == (60, report.scores)


def test_a_span_within_a_token_is_not_found_by_finding_the_token():
    encoded = encode_tagged(tokenizer(), [TaggedText("", "the garden", spans=((4, 6, "LOC"),))], LOCATIONS)
    evaluation = TagEvaluation.of(encoded, [["O", "B-LOC"]], LOCATIONS)
    assert evaluation.tags == evaluation.predictions == [["O", "B-LOC"]]
    assert (evaluation.spans, evaluation.expected) == ([[(4, 10, "LOC")]], [[(4, 6, "LOC")]])
    assert (evaluation.scores.f1, evaluation.scores.by_label) == (0.0, {"LOC": LabelScores(0.0, 0.0, 0.0, 1)})


def test_texts_without_entities_are_said_in_a_sentence():
    evaluation = TagEvaluation([["O", "O"]], [["B-LOC", "O"]], [[(0, 3, "LOC")]], None, ("O", "B-LOC"))
    assert evaluation.notes == [
        "All words have the same tag, 'O', so that the scores tell little.",
        "Recall is undefined for labels that no example to evaluate on has: 'LOC'.",
    ]


@pytest.mark.parametrize(
    ("train", "given", "expected"),
    [("words.conll", None, True), ("spans.jsonl", None, False), ("words.conll", False, False)],
)
def test_whether_words_are_tagged_follows_from_the_training_file(files, tmp_path, train, given, expected):
    options = options_for(files, tmp_path / "run", "token_classification", train, tag_words=given)
    task = TokenClassification(None, options.settings)
    assert task.learnt_settings(task.read(options.train)) == {"tag_words": expected}
