"""Proves that the settings of a model are read as they were written, and checked."""

import json

import pytest

from albert_tf.tasks.sequence_classification.settings import ClassificationSettings
from albert_tf.tasks.settings import read_settings, write_settings

RECORD = {"task": "sequence_classification", "labels": [], "problem": "classification", "max_length": 48, "files": {}}


def write(folder, **files):
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")


def test_what_is_written_is_read(tmp_path):
    settings = ClassificationSettings(max_length=32, labels=("\ud800", "둘"), pair_column="second", encoding="cp949")
    write_settings(tmp_path, settings)
    assert read_settings(tmp_path) == settings.model_copy(update={"encoding": None})
    write(tmp_path, model={"format": "layers-model", "max_length": 8}, recipe={"max_length": 16})  # of TensorFlow.js
    assert read_settings(tmp_path, 64, ClassificationSettings).max_length == 64


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
    write(tmp_path, model={**RECORD, **change})
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
