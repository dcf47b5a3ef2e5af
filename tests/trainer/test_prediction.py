"""`predict` for the tasks that have files of their own: without labels, with the answers of one call."""

import json

import pytest

from albert_tf.trainer import FinetuneOptions, finetune
from albert_tf.trainer.evaluation import evaluate_folder, predict_folder
from tests.cli.terminal import mistake, output_of
from tests.toy_task import write_pretrained

PASSAGE = "The old man lived in {place} by the river, and the young one in a house by the sea."
PLACES = ("Paris", "London", "Seoul", "Rome")


def question_file(path, labelled=True):
    rows = []
    for number in range(24):
        place = PLACES[number % 4]
        context = PASSAGE.format(place=place)
        answers = [] if number % 3 == 0 else [{"text": place, "answer_start": context.index(place)}]
        question = {"id": f"q{number}", "question": "Where was the grief?" if not answers else "Where did he live?"}
        rows.append({"context": context, "qas": [{**question, **({"answers": answers} if labelled else {})}]})
    path.write_text(json.dumps({"data": [{"paragraphs": rows}]}), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    return write_pretrained(tmp_path_factory.mktemp("prediction") / "pretrained")


def run(pretrained, file, output, **changes):
    values = {"epochs": 4, "batch_size": 8, "learning_rate": 1e-2, "max_length": 48, **changes}
    values |= {} if changes["task"] == "multiple_choice" else {"doc_stride": 16}
    return finetune(FinetuneOptions(pretrained=pretrained, train=file, dev=file, output=output, **values))


@pytest.mark.exhaustive
def test_questions_without_answers(pretrained, tmp_path):
    file = question_file(tmp_path / "train.json")
    report = run(pretrained, file, tmp_path / "run", task="question_answering")
    assert report.no_answer_threshold is not None
    unlabelled = question_file(tmp_path / "test.json", labelled=False)
    printed = output_of("predict", tmp_path / "run", "--data", unlabelled, "--output", tmp_path / "answers.json")
    assert "24 predictions in" in printed
    answers = json.loads((tmp_path / "answers.json").read_text(encoding="utf-8"))
    assert answers == json.loads((tmp_path / "run/dev_predictions.json").read_text(encoding="utf-8"))
    _, evaluation = evaluate_folder(tmp_path / "run", file)
    assert evaluation.no_answer_threshold == report.no_answer_threshold
    assert evaluation.scores == report.scores
    _, generous = evaluate_folder(tmp_path / "run", file, no_answer_threshold=1e9)
    assert "" not in generous.texts.values()
    with pytest.raises(ValueError, match="must not exceed the model's 64 positions"):
        evaluate_folder(tmp_path / "run", file, max_length=65)
    assert "must be files for question_answering" in mistake("predict", tmp_path / "run", "--data", unlabelled)


@pytest.mark.exhaustive
def test_texts_without_tags(pretrained, tmp_path):
    rows = [
        {"text": f"the man of {place}", "spans": [{"start": 11, "end": 11 + len(place), "label": "LOC"}]}
        for place in PLACES
    ]
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, rows * 6)), encoding="utf-8")
    run(pretrained, tmp_path / "train.jsonl", tmp_path / "run", task="token_classification", epochs=8)
    (tmp_path / "texts.txt").write_text("\n\n".join(row["text"] for row in rows), encoding="utf-8")
    (tmp_path / "texts.jsonl").write_text(
        "\n".join(json.dumps({"text": row["text"]}) for row in rows), encoding="utf-8"
    )
    for file in ("texts.txt", "texts.jsonl"):
        assert predict_folder(tmp_path / "run", tmp_path / file, tmp_path / "spans.jsonl") == 4
        found = [json.loads(line) for line in (tmp_path / "spans.jsonl").read_text(encoding="utf-8").splitlines()]
        assert [span["text"] for row in found for span in row["spans"]] == list(PLACES)


@pytest.mark.exhaustive
def test_choices_without_labels(pretrained, tmp_path):
    rows = [{"context": "a text", "question": "who?", "choices": ["he", "she"], "label": 0}] * 8
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    run(pretrained, tmp_path / "train.jsonl", tmp_path / "run", task="multiple_choice", epochs=1)
    unlabelled = [{name: value for name, value in row.items() if name != "label"} for row in rows]
    (tmp_path / "test.jsonl").write_text("\n".join(map(json.dumps, unlabelled)), encoding="utf-8")
    assert predict_folder(tmp_path / "run", tmp_path / "test.jsonl", tmp_path / "out.tsv") == 8
    lines = [line.split("\t") for line in (tmp_path / "out.tsv").read_text(encoding="utf-8").splitlines()]
    assert {line[1] for line in lines[1:]} == {""}
    assert {line[2] for line in lines[1:]} <= {"0", "1"}
    with pytest.raises(ValueError, match="the answer must be a number from 0 to 1"):
        evaluate_folder(tmp_path / "run", tmp_path / "test.jsonl")
