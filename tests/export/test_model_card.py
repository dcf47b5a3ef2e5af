"""Proves that an export describes itself, without a path of the machine that wrote it."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
import tensorflow as tf

import albert_tf
from albert_tf.export.model_card import write_model_card
from albert_tf.files.atomic import sha256
from albert_tf.inference.folder import load_folder

FORM = {"precision": "bfloat16", "frozen": True, "xla": False, "largest_difference": 0.0021}


def test_the_card_tells_what_the_model_is(folders, tmp_path):
    source, folder = tmp_path / "source", tmp_path / "export"
    source.mkdir()
    folder.mkdir()
    recipe = {"train": {"sha256": "ab"}, "learning_rate": 1e-3, "patience": None, "optimizer": "lamb"}
    (source / "recipe.json").write_text(json.dumps(recipe))
    scores = {"accuracy": 0.875, "f1": 0.5, "positive_label": "mixed"}
    (source / "metrics.json").write_text(json.dumps({"scores": scores, "dev_examples": 1200}))
    (folder / "weights").write_bytes(b"12345")
    loaded = load_folder(folders["classifier"])
    write_model_card(folder, loaded, "mood", source, "Apache-2.0", FORM)
    card = json.loads((folder / "model.json").read_text())
    assert (card["name"], card["task"], card["license"]) == ("mood", "sequence_classification", "Apache-2.0")
    assert card["labels"] == ["gloomy", "mixed", "pleasant"]
    assert card["parameters"] == loaded.model.count_params()
    assert card["config"] == loaded.model.config.to_dict()
    assert card["files"]["weights"] == {"bytes": 5, "sha256": sha256(folder / "weights")}
    assert card["recipe"] == recipe
    text = (folder / "MODEL.md").read_text()
    assert "| accuracy | 0.8750 |\n| f1 of mixed | 0.5000 |" in text
    assert "## Scores on 1,200 examples" in text
    assert "| Licence | Apache-2.0 |" in text
    assert FORM.items() <= card.items()
    assert "| Precision | bfloat16; differs by at most 2.1e-03 from the Keras model |" in text
    assert "| Graph | weights are constants |" in text
    assert "| `optimizer` | lamb |" in text
    assert "sha256" not in text


def test_a_model_without_a_record_has_a_card(folders, tmp_path):
    write_model_card(tmp_path, load_folder(folders["pretrained"]), "base", folders["pretrained"], None, FORM)
    assert json.loads((tmp_path / "model.json").read_text())["scores"] is None
    assert "| Licence | not stated |" in (tmp_path / "MODEL.md").read_text()


@pytest.mark.exhaustive
def test_a_checkout_that_is_not_installed_exports(folders, tmp_path):
    root = pathlib.Path(albert_tf.__file__).parent
    shutil.copytree(root, tmp_path / "checkout/albert_tf")
    packages = tmp_path / "packages"  # all but what installs this one
    packages.mkdir()
    for entry in pathlib.Path(tf.__file__).parents[1].iterdir():
        if "albert_tf" not in entry.name:
            (packages / entry.name).symlink_to(entry)
    command = [sys.executable, "-S", "-P", "-m", "albert_tf", "export", folders["classifier"], "--name", "mood"]
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path / 'checkout'}:{packages}"}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (card,) = tmp_path.rglob("mood/*/model.json")
    assert json.loads(card.read_text())["versions"]["albert-tf"] == albert_tf.__version__
