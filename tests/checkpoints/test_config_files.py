"""Proves that values of a wrong kind in the JSON beside weights are one sentence that names the file."""

import json
import shutil
import zipfile

import pytest

from albert_tf import checkpoints
from tests.disk import change_json

WRONG = {
    "architectures": [5, "AlbertModel", [5], {}],
    "id2label": [5, ["a"], {"a": "b"}, {"0": 5}, {"1": "a"}, {"0": "a", "00": "b"}],
    "problem_type": [[3], 1],
    "start_n_top": ["a", 0, -1, 10**9, True],
    "end_n_top": [1.5],
    "hidden_size": [[1], "a", True, 10**30],
    "hidden_act": [[1]],
}
KERAS = {
    "a list": [1],
    "no config": {"class_name": "AlbertBackbone"},
    "a config that is a list": {"class_name": "AlbertBackbone", "config": [1]},
    "a backbone without config": {"class_name": "AlbertBackbone", "config": {"backbone": {"a": 1}}},
    "a class that is a number": {"class_name": 5, "config": {}},
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in WRONG.items() for value in values])
def test_a_value_of_a_wrong_kind(key, value, golden, tmp_path):
    shutil.copytree(golden("hf_for_pretraining").folder, tmp_path, dirs_exist_ok=True)
    change_json(tmp_path / "config.json", **{key: value})
    with pytest.raises(ValueError, match=rf"config\.json: `{key}` must be "):
        checkpoints.read(tmp_path)


@pytest.mark.parametrize("kind", KERAS)
def test_a_keras_config_of_a_wrong_kind(kind, golden, tmp_path):
    with zipfile.ZipFile(golden("keras_hub_backbone").folder / "model.keras") as source:
        weights = source.read("model.weights.h5")
    with zipfile.ZipFile(tmp_path / "model.keras", "w") as archive:
        archive.writestr("config.json", json.dumps(KERAS[kind]))
        archive.writestr("model.weights.h5", weights)
    with pytest.raises(ValueError, match=r"model\.keras"):
        checkpoints.read(tmp_path / "model.keras")
