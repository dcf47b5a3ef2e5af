"""Proves that values of a wrong kind in the JSON beside weights are one sentence that names the file."""

import json
import shutil
import struct
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
    "ours without config": {"class_name": "AlbertEncoder", "registered_name": "albert_tf>AlbertEncoder"},
    "ours with a list": {"class_name": "A", "registered_name": "albert_tf>A", "config": {"config": [1]}},
    "ours with labels": {"class_name": "A", "registered_name": "albert_tf>A", "config": {"config": {}, "labels": 5}},
    "ours with a key": {"class_name": "A", "registered_name": "albert_tf>A", "config": {"config": {"hidden": 5}}},
    "ours, of a number": {"class_name": 5, "registered_name": "albert_tf>A", "config": {"config": {}}},
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


@pytest.mark.parametrize(("dtype", "size"), [("F8_E4M3", 8), ("F4", 4), ("C64", 64), ("I32", 32)])
def test_weights_that_are_no_floats(dtype, size, golden, tmp_path):
    shutil.copytree(golden("hf_for_pretraining").folder, tmp_path, dirs_exist_ok=True)
    file = tmp_path / "model.safetensors"
    content = file.read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + length])
    name, shape = "predictions.LayerNorm.bias", header["predictions.LayerNorm.bias"]["shape"]
    others = {key: value for key, value in header.items() if key not in (name, "__metadata__")}
    stop = 0
    for value in sorted(others.values(), key=lambda value: value["data_offsets"][0]):
        begin, stop = stop, stop + value["data_offsets"][1] - value["data_offsets"][0]
        value["data_offsets"] = [begin, stop]
    header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [stop, stop + shape[0] * size // 8]}
    written = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(written)) + written + bytes(header[name]["data_offsets"][1]))
    with pytest.raises(ValueError, match=r"not a safetensors file of known types|floating-point weights are expected"):
        checkpoints.read(tmp_path)
