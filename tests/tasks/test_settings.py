"""Proves that the settings of a model are read from what this and earlier versions wrote."""

import json

import pytest

from albert_tf.tasks.multiple_choice.settings import ChoiceSettings
from albert_tf.tasks.question_answering.settings import QuestionSettings
from albert_tf.tasks.sequence_classification.settings import ClassificationSettings
from albert_tf.tasks.settings import read_settings, write_settings
from albert_tf.tasks.token_classification.settings import TagSettings

# All that version 0.1 wrote of any model.
EARLIER = {
    **{"labels": [], "problem": "classification", "threshold": 0.5, "label_separator": ",", "takes_pairs": False},
    **{"normalize": False, "pooling": "mean", "dense_size": None, "doc_stride": None, "windows": None},
    **{"max_question_length": None, "max_answer_length": None, "no_answer_threshold": None, "tags_words": False},
    "files": {},
}


def write(folder, **files):
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")


@pytest.mark.parametrize(
    ("record", "settings"),
    [
        (
            {"labels": ["a", "b"], "takes_pairs": True},
            ClassificationSettings(labels=("a", "b"), pair_column="text_pair"),
        ),
        (
            {"labels": ["a", "b"], "problem": "multi_label", "threshold": {"b": 0.25}, "label_separator": ";"},
            ClassificationSettings(
                labels=("a", "b"), problem="multi_label", threshold={"b": 0.25}, label_separator=";"
            ),
        ),
        ({"labels": ["LABEL_0"], "problem": "regression"}, ClassificationSettings(problem="regression")),
        (
            {"task": "token_classification", "labels": ["O", "B-x"], "tags_words": True},
            TagSettings(task="token_classification", labels=("O", "B-x"), tag_words=True),
        ),
        (
            {"task": "question_answering", "no_answer_threshold": -1.5, "doc_stride": 16},
            QuestionSettings(
                task="question_answering", no_answer_threshold=-1.5, doc_stride=16, misplaced_answers="drop"
            ),
        ),
    ],
)
def test_exports_of_earlier_versions_are_read(record, settings, tmp_path):
    write(tmp_path, model={**EARLIER, "task": "sequence_classification", "max_length": 48, **record})
    assert read_settings(tmp_path, longest=64) == settings.with_facts(max_length=48)


def test_runs_of_earlier_versions_are_read(tmp_path):
    recipe = {"problem": "multi_label", "threshold": "per_label", "encoding": "cp949", "epochs": 3, "max_length": 16}
    write(tmp_path, recipe={**recipe, "scorer": "squad", "windows": None}, metrics={"threshold": {"a": 0.1}})
    settings = read_settings(tmp_path, 64, ClassificationSettings, labels=("a", "b"), problem="multi_label")
    assert (settings.threshold, settings.max_length, settings.encoding) == ({"a": 0.1}, 16, None)
    assert settings.thresholds.tolist() == pytest.approx([0.1, 0.5])
    write(tmp_path, recipe={"max_question_length": 9})
    assert read_settings(tmp_path, 64, ChoiceSettings) == ChoiceSettings(max_question_length=9, max_length=64)


def test_what_is_written_is_read_before_records_of_earlier_versions(tmp_path):
    write(tmp_path, recipe={"max_length": 16})
    settings = ClassificationSettings(max_length=32, labels=("\ud800", "둘"), pair_column="second", encoding="cp949")
    write_settings(tmp_path, settings)
    assert read_settings(tmp_path) == settings.model_copy(update={"encoding": None})
    write(tmp_path, model={"format": "layers-model"})  # a file of TensorFlow.js
    assert read_settings(tmp_path, 64, ClassificationSettings).max_length == 16


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": ["a", "a"]}, r"model\.json: `labels` must be a list of different strings"),
        ({"labels": "ab"}, r"`labels` must be a list of different strings"),
        ({"task": "naming"}, r"`task` must be one of .*Received: naming"),
        ({"max_length": 65}, r"must not exceed the model's 64 positions"),
        ({"windows": "sum"}, r"`windows` is invalid .*Export the model again"),
        ({"threshold": 2, "problem": "multi_label"}, r"`threshold` must be a number from 0 to 1"),
    ],
)
def test_damaged_settings_are_refused(change, message, tmp_path):
    write(tmp_path, model={**EARLIER, "task": "sequence_classification", "max_length": 48, **change})
    with pytest.raises(ValueError, match=message):
        read_settings(tmp_path, longest=64)


def test_changes_are_checked():
    settings = ClassificationSettings(max_length=32, labels=("a", "b"), problem="multi_label", threshold=0.25)
    assert settings.changed(threshold={"b": 0.5}).threshold == {"a": 0.25, "b": 0.5}
    assert settings.changed() is settings
    for changes, message in (
        ({"threshold": {"c": 0.5}}, "`threshold` must name labels of the model"),
        ({"threshold": "per_label"}, "`threshold` must be numbers"),
        ({"scorer": "squad"}, "`scorer` must be left out for the task 'sequence_classification'"),
        ({"max_length": 2}, "`max_length` is invalid"),
    ):
        with pytest.raises(ValueError, match=message):
            settings.changed(**changes)
