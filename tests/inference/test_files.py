"""Proves that files of examples are predicted and scored alike with weights and with their exports."""

import json

import numpy as np
import pytest

from albert_tf.trainer.evaluation import evaluate_folder, predict_folder
from tests.cli.terminal import mistake
from tests.parameters import first_of

WORDS = "John B-PER\nSmith I-PER\nwent O\nto O\nRome B-LOC\n\nShe O\nsang O\n" * 3
PASSAGE = "The old man lived in Rome by the river, and the young one in a house by the sea."
QUESTION = {"id": "a", "question": "Where did he live?", "answers": [{"text": "Rome", "answer_start": 21}]}
CHOICE = {"context": PASSAGE, "question": "Where did he live?", "choices": ["Rome", "Paris"], "label": 0}
PAIRS = "text\ttext_pair\tlabel\n" + "the sun\tthe rain\tgloomy\na garden\tof joy 🙂\tpleasant\n" * 3
SCORES = "text\ttext_pair\tlabel\nthe sun\tthe rain\t1\na garden\tof joy 🙂\t4\nold\tan old man\t5\n"
# For each kind of model, its file and what `evaluate` has to be told of an export.
FILES = {
    "tags": ("words.conll", WORDS, {}),
    "questions": (
        "questions.json",
        json.dumps({"data": [{"paragraphs": [{"context": PASSAGE, "qas": [QUESTION]}]}]}),
        {},
    ),
    "choices": ("choices.jsonl", json.dumps(CHOICE) + "\n", {}),
    "pairs": ("pairs.tsv", PAIRS, {"pair_column": "text_pair"}),
    "embedding": ("scores.tsv", SCORES, {"pair_column": "text_pair"}),
}


def scores_of(value):
    """The numbers of an Evaluation's scores, in their order."""
    parts = vars(value).values() if hasattr(value, "__dict__") else value.values() if isinstance(value, dict) else None
    return [value] if parts is None else [number for part in parts for number in scores_of(part)]


FORMS = {"tags": "onnx", "embedding": "onnx", "questions": "saved_model", "choices": "onnx", "pairs": "saved_model"}


@pytest.mark.parametrize(("kind", "form"), first_of(FORMS.items(), count=2))
def test_scores_and_predictions_are_those_of_the_weights(kind, form, folders, exports, onnx_folders, tmp_path):
    name, content, changes = FILES[kind]
    (tmp_path / name).write_text(content, encoding="utf-8")
    export = exports[kind].folder if form == "saved_model" else onnx_folders[kind]
    (count, expected), (found_count, found) = (
        evaluate_folder(folder, tmp_path / name, **changes) for folder in (folders[kind], export)
    )
    assert found_count == count > 0
    wanted = [number for number in scores_of(expected.scores) if isinstance(number, float)]
    np.testing.assert_allclose([one for one in scores_of(found.scores) if isinstance(one, float)], wanted, atol=1e-6)
    if kind in ("pairs", "embedding"):  # whose files are those of test_predict.py
        return
    for number, folder in enumerate((folders[kind], export)):
        assert predict_folder(folder, tmp_path / name, tmp_path / f"{number}.out") == count
    lines = [(tmp_path / f"{number}.out").read_text(encoding="utf-8") for number in (0, 1)]
    if kind == "choices":  # logits of exports are those of the probabilities: only differences count
        lines = [line.split("logit")[0] + str([row.split("\t")[:3] for row in line.splitlines()[1:]]) for line in lines]
    assert lines[0] == lines[1]


def test_an_export_reads_the_columns_of_its_training(onnx_folders, tmp_path):
    (tmp_path / "pairs.tsv").write_text(PAIRS, encoding="utf-8")
    assert evaluate_folder(onnx_folders["pairs"], tmp_path / "pairs.tsv")[0] == 6
    (tmp_path / "other.tsv").write_text(PAIRS.replace("text_pair", "second"), encoding="utf-8")
    command = "evaluate", onnx_folders["pairs"], "--data", tmp_path / "other.tsv"
    assert "has no column 'text_pair'" in mistake(*command)
    command = "evaluate", onnx_folders["classifier"], "--data", tmp_path / "pairs.tsv", "--pair-column", "text_pair"
    assert "trained on single texts, but received pairs" in mistake(*command)
