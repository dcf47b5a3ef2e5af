"""Proves that checkpoints of the reference go in and out to the bit, are found, and are refused where damaged."""

import json
import pathlib
import shutil
import sys

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import (
    AlbertConfig,
    AlbertEncoder,
    AlbertForMultipleChoice,
    AlbertForPreTraining,
    AlbertForQuestionAnswering,
    AlbertForSequenceClassification,
    checkpoints,
)
from albert_tf.checkpoints.formats.google import write_google
from albert_tf.checkpoints.huggingface import save_huggingface
from tests.checkpoints.comparison import assert_same
from tests.disk import flip_bit


def test_by_folder_and_by_prefix_and_without_slots(golden):
    folder = golden("O1_lamb").folder
    by_folder, by_prefix = checkpoints.read(folder), checkpoints.read(folder / "model.ckpt-0")
    assert by_folder.config == by_prefix.config
    assert by_folder.arrays.keys() == by_prefix.arrays.keys()
    assert len(by_folder.arrays) == 32


def test_of_several_the_best_and_none_without_its_config(golden, tmp_path):
    def copy_as(name):
        for end in ("index", "data-00000-of-00001"):
            shutil.copy(golden("M1_small").folder / f"model.ckpt.{end}", tmp_path / f"{name}.{end}")

    copy_as("model.ckpt")
    with pytest.raises(ValueError, match=r"model\.ckpt has no albert_config\.json beside it; add"):
        AlbertEncoder.from_pretrained(tmp_path / "model.ckpt")
    shutil.copy(golden("M1_small").folder / "albert_config.json", tmp_path)
    copy_as("model.ckpt-7")
    with pytest.raises(ValueError, match=r"holds several checkpoints \(model\.ckpt, model\.ckpt-7\); give the prefix"):
        AlbertEncoder.from_pretrained(tmp_path)
    assert AlbertEncoder.from_pretrained(tmp_path / "model.ckpt-7")
    copy_as("model.ckpt-best")
    assert checkpoints.read(tmp_path).source == tmp_path / "model.ckpt-best"


DAMAGE = {
    "truncated": lambda data: data.write_bytes(data.read_bytes()[:20000]),
    "flipped": lambda data: flip_bit(data, 30000),
    "absent": pathlib.Path.unlink,
    "empty index": lambda data: data.with_name("model.ckpt.index").write_bytes(b""),
    "without values": lambda data: save(
        data.with_name("model.ckpt"),
        {**tensors_in(data.with_name("model.ckpt")), "output_bias": np.zeros((0, 2**40), "f4")},
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged(damage, golden, tmp_path):
    shutil.copytree(golden("M1_small").folder, tmp_path, dirs_exist_ok=True)
    DAMAGE[damage](tmp_path / "model.ckpt.data-00000-of-00001")
    with pytest.raises(ValueError, match=r"model\.ckpt could not be read \(.*\); download"):
        AlbertEncoder.from_pretrained(tmp_path)


def test_without_tensorflow(golden, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(ValueError, match=r"which only TensorFlow reads; convert it once .*albert-tf convert \S+model"):
        checkpoints.read(golden("M1_small").folder)


def test_data_in_several_files_and_text_beside_it(golden, tmp_path):
    tensors = tensors_in(golden("M1_small").folder / "model.ckpt")
    parts = ({name: tensors[name] for name in list(tensors)[:9]}, {name: tensors[name] for name in list(tensors)[9:]})
    for part, values in zip(("a", "b"), ({**parts[0], "text/adam_m": np.array([b"a"])}, parts[1]), strict=True):
        save(tmp_path / part, values)
    prefix = tmp_path / "model.ckpt"
    tf.raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=[str(tmp_path / part) for part in "ab"], destination_prefix=str(prefix)
    )
    assert len(list(tmp_path.glob("model.ckpt.data-*-of-00002"))) == 2
    shutil.copy(golden("M1_small").folder / "albert_config.json", tmp_path)
    assert_same(checkpoints.read(prefix).arrays, checkpoints.read(golden("M1_small").folder).arrays)


# === Written ===

HEADS = {
    "classifier": AlbertForSequenceClassification,
    "regression": AlbertForSequenceClassification,
    "squad_v1": AlbertForQuestionAnswering,
    "squad_v2": AlbertForQuestionAnswering,
    "race": AlbertForMultipleChoice,
}


def save(prefix, tensors):
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=list(tensors),
        shape_and_slices=[""] * len(tensors),
        tensors=[tf.constant(tensor) for tensor in tensors.values()],
    )


def tensors_in(prefix):
    reader = tf.train.load_checkpoint(str(prefix))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map() if name != "global_step"}


@pytest.mark.parametrize("name", ["M1_small", "M2_groups", "M4_xlargeish"])
def test_a_model_goes_out_as_it_came_in(name, golden, tmp_path):
    folder, prefix = golden(name).folder, tmp_path / "out" / "model.ckpt-best"
    checkpoints.save_google(AlbertForPreTraining.from_pretrained(folder), prefix)
    assert_same(tensors_in(prefix), tensors_in(folder / "model.ckpt"))
    written, given = (json.loads((path / "albert_config.json").read_text()) for path in (prefix.parent, folder))
    assert written == given
    assert sorted(path.name for path in prefix.parent.iterdir()) == [
        *("albert_config.json", "model.ckpt-best.data-00000-of-00001", "model.ckpt-best.index")
    ]


@pytest.mark.parametrize("head", HEADS)
def test_every_head_goes_out_as_it_came_in(head, golden, tmp_path):
    folder = golden(f"M3_heads/{head}").folder
    checkpoint, expected = checkpoints.read(folder), tensors_in(folder / "model.ckpt")
    write_google(tmp_path / "model.ckpt-best", checkpoint.config, checkpoint.arrays, {})
    assert_same(tensors_in(tmp_path / "model.ckpt-best"), expected)
    # Through the Hugging Face layout, too.
    save_huggingface(tmp_path / "hf", checkpoint.config, checkpoint.arrays, checkpoint.settings)
    again = checkpoints.read(tmp_path / "hf")
    assert again.config == checkpoint.config
    assert_same(again.arrays, checkpoint.arrays)
    assert {key: again.settings[key] for key in checkpoint.settings} == checkpoint.settings
    # And as a model: the kind of head, and how many classes it has, is seen from the file.
    checkpoints.save_google(HEADS[head].from_pretrained(folder), tmp_path / "model.ckpt-best")
    if "squad" in head:  # these models have no pooler
        expected = {name: array for name, array in expected.items() if not name.startswith("bert/pooler/")}
    assert_same(tensors_in(tmp_path / "model.ckpt-best"), expected)


@pytest.mark.parametrize("share", ["attention", "ffn", "none"])
def test_partial_sharing_comes_back(share, tmp_path):
    config = AlbertConfig(
        **{"vocab_size": 30, "embedding_size": 8, "hidden_size": 16, "num_hidden_layers": 3},
        **{"num_attention_heads": 2, "intermediate_size": 24, "share": share, "classifier_dropout_prob": 0.3},
    )
    model = AlbertEncoder(config)
    checkpoints.save_google(model, tmp_path / "model.ckpt-best")
    assert json.loads((tmp_path / "albert_config.json").read_text())["num_hidden_groups"] == 3
    again = AlbertEncoder.from_pretrained(tmp_path)
    assert again.config == config
    for variable, expected in zip(again.weights, model.weights, strict=True):
        np.testing.assert_array_equal(variable, expected)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"hidden_act": "gelu"}, "have the tanh form of GELU"),
        ({"layer_norm_eps": 1e-5}, "normalise with an epsilon of 1e-12"),
        ({"embedding_size": 128, "embedding_projection": True}, "have no projection between equal widths"),
    ],
)
def test_what_the_reference_cannot_compute_is_not_written(changes, rule, tmp_path):
    model = AlbertEncoder(AlbertConfig.from_preset("tiny").replace(vocab_size=9, **changes))
    with pytest.raises(ValueError, match=f"A model in Google's layout must {rule}. Received: .*Hugging Face layout"):
        checkpoints.save_google(model, tmp_path / "new" / "model.ckpt-best")
    assert not any(tmp_path.iterdir())


def test_a_checkpoint_that_was_there_is_replaced(golden, tmp_path):
    for name in ("M1_small", "M2_groups"):
        checkpoint = checkpoints.read(golden(name).folder)
        write_google(tmp_path / "model.ckpt-best", checkpoint.config, checkpoint.arrays, {})
    assert_same(checkpoints.read(tmp_path).arrays, checkpoint.arrays)


# === TF Hub ===


def hub_module(folder, case):
    """A module as the reference published it: names with a prefix, the config among the assets."""
    (folder / "variables").mkdir(parents=True)
    (folder / "assets").mkdir()
    tensors = tensors_in(case / "model.ckpt")
    save(folder / "variables" / "variables", {f"module/{name}": tensor for name, tensor in tensors.items()})
    shutil.copy(case / "albert_config.json", folder / "assets")
    for name in ("saved_model.pb", "tfhub_module.pb"):
        (folder / name).write_bytes(b"")
    return folder


def test_a_module_of_tf_hub(golden, tmp_path):
    case = golden("M2_groups").folder
    found = checkpoints.read(hub_module(tmp_path / "hub", case))
    assert_same(found.arrays, checkpoints.read(case).arrays)
    assert found.config.hidden_act == "relu"
    by_prefix = checkpoints.read(tmp_path / "hub" / "variables" / "variables")
    assert_same(by_prefix.arrays, found.arrays)
