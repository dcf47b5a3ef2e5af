"""Proves the Hugging Face layout: its files give its numbers, ours have its names and come back to the bit."""

import json
import shutil

import numpy as np
import pytest
import safetensors.numpy

from albert_tf import (
    AlbertConfig,
    AlbertEncoder,
    AlbertForMaskedLM,
    AlbertForPreTraining,
    AlbertForSequenceClassification,
)
from tests.checkpoints.comparison import tensors_in
from tests.disk import change_json

CONFIG = AlbertConfig(
    vocab_size=30, embedding_size=8, hidden_size=16, num_hidden_layers=4, num_attention_heads=2, intermediate_size=24
)
SHAPES = {
    "all": {},
    "attention": {"share": "attention"},
    "ffn": {"share": "ffn"},
    "none": {"share": "none"},
    "groups": {"num_hidden_groups": 2, "inner_group_num": 2},
    "equal_widths": {"embedding_size": 16},
    "unshared_inner": {"share": "none", "inner_group_num": 2, "hidden_act": "gelu"},
}


def values_of(model):
    return {path: variable.numpy() for path, variable in model.variables_by_path().items()}


def assert_same(model, other):
    values = values_of(other)
    assert values_of(model).keys() == values.keys()
    for path, array in values_of(model).items():
        np.testing.assert_array_equal(array, values[path], err_msg=path)


def randomized(kind, config=CONFIG, **arguments):
    """No two variables are equal, and none is what a fresh model has."""
    model, random = kind(config, **arguments), np.random.default_rng(0)
    for variable in model.variables_by_path().values():
        variable.assign(random.standard_normal(variable.shape))
    return model


# === Files of transformers ===


def test_a_file_of_transformers_gives_its_numbers(golden):
    case = golden("hf_for_pretraining")
    arrays = case.arrays
    model = AlbertForPreTraining.from_pretrained(case.folder)
    assert model.config.hidden_act == "gelu_new"
    inputs = {name: arrays[name] for name in ("input_ids", "attention_mask", "token_type_ids")}
    outputs = model(inputs)
    np.testing.assert_allclose(outputs["masked_lm_logits"], arrays["prediction_logits"], atol=1e-5, rtol=0)
    np.testing.assert_allclose(outputs["sentence_order_logits"], arrays["sop_logits"], atol=1e-5, rtol=0)
    hidden = AlbertEncoder.from_pretrained(case.folder)(inputs)["sequence_output"]
    np.testing.assert_allclose(hidden, arrays["last_hidden_state"], atol=1e-5, rtol=0)
    labels = {
        "masked_lm_ids": np.maximum(arrays["labels"], 0),
        "masked_lm_weights": (arrays["labels"] != -100).astype("float32"),
        "sentence_order_labels": arrays["sentence_order_label"],
    }
    terms = model.loss_terms(labels, outputs)
    np.testing.assert_allclose(terms["masked_lm_loss"].mean(), arrays["masked_lm_loss"], atol=1e-5, rtol=0)
    np.testing.assert_allclose(terms["sentence_order_loss"].mean(), arrays["sentence_order_loss"], atol=1e-5, rtol=0)


def test_what_we_write_is_what_transformers_wrote(golden, tmp_path):
    case = golden("hf_for_pretraining")
    AlbertForPreTraining.from_pretrained(case.folder).save_pretrained(tmp_path)
    expected, found = tensors_in(case.folder), tensors_in(tmp_path)
    assert set(found) == set(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array, err_msg=name)
    theirs, ours = (json.loads((folder / "config.json").read_text()) for folder in (case.folder, tmp_path))
    same = set(theirs) - {"dtype", "tie_word_embeddings", "transformers_version"}
    assert {name: ours[name] for name in same} == {name: theirs[name] for name in same}


# === Our own ===


@pytest.mark.parametrize("shape", SHAPES)
def test_round_trip_of_every_kind_of_sharing(shape, tmp_path):
    config = CONFIG.replace(**SHAPES[shape])
    model = randomized(AlbertForPreTraining, config)
    model.save_pretrained(tmp_path)
    again = AlbertForPreTraining.from_pretrained(tmp_path)
    assert again.config == config
    assert_same(again, model)


def test_where_layers_share_in_part_the_file_has_a_group_for_each(tmp_path):
    randomized(AlbertForPreTraining, CONFIG.replace(share="ffn")).save_pretrained(tmp_path)
    tensors, layer = tensors_in(tmp_path), "albert.encoder.albert_layer_groups.{}.albert_layers.0.{}.weight"
    assert json.loads((tmp_path / "config.json").read_text())["num_hidden_groups"] == 4
    for group in (1, 2, 3):
        np.testing.assert_array_equal(tensors[layer.format(group, "ffn")], tensors[layer.format(0, "ffn")])
        key = "attention.query"
        assert not np.array_equal(tensors[layer.format(group, key)], tensors[layer.format(0, key)])


def test_shared_layers_that_differ_are_refused(tmp_path):
    randomized(AlbertForPreTraining, CONFIG.replace(share="none")).save_pretrained(tmp_path)
    change_json(tmp_path / "config.json", share="attention")
    with pytest.raises(ValueError, match=r"has different values for the copies of `encoder/attention_0_0/.*` .*'none'"):
        AlbertForPreTraining.from_pretrained(tmp_path)


def test_equal_widths_have_the_projection_that_does_nothing(tmp_path):
    randomized(AlbertForPreTraining, CONFIG.replace(embedding_size=16)).save_pretrained(tmp_path)
    tensors = tensors_in(tmp_path)
    name = "albert.encoder.embedding_hidden_mapping_in"
    np.testing.assert_array_equal(tensors[f"{name}.weight"], np.eye(16))
    np.testing.assert_array_equal(tensors[f"{name}.bias"], np.zeros(16))
    assert AlbertForPreTraining.from_pretrained(tmp_path).encoder.projection is None
    tensors[f"{name}.bias"][3] = 0.5
    safetensors.numpy.save_file(tensors, tmp_path / "model.safetensors")
    assert AlbertForPreTraining.from_pretrained(tmp_path).encoder.projection.bias[3] == 0.5


def test_groups_that_transformers_deals_layers_to_unevenly(tmp_path):
    even, uneven = CONFIG.replace(num_hidden_layers=22, num_hidden_groups=22), CONFIG.replace(num_hidden_layers=18)
    AlbertEncoder(even).save_pretrained(tmp_path)
    encoder = AlbertEncoder(uneven.replace(num_hidden_groups=14))
    with pytest.warns(UserWarning, match="transformers would .* num_hidden_layers=18 unevenly to num_hidden_groups=14"):
        encoder.save_pretrained(tmp_path)
    assert AlbertEncoder.from_pretrained(tmp_path).config == encoder.config


def test_a_bare_encoder_has_bare_names(tmp_path):
    encoder = randomized(AlbertEncoder)
    encoder.save_pretrained(tmp_path)
    names = set(tensors_in(tmp_path))
    assert "embeddings.word_embeddings.weight" in names
    assert not any(name.startswith("albert.") for name in names)
    assert_same(AlbertEncoder.from_pretrained(tmp_path), encoder)
    assert_same(AlbertForSequenceClassification.from_pretrained(tmp_path, new_head=True, num_labels=3).encoder, encoder)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (AlbertForMaskedLM, {}),
        (AlbertForSequenceClassification, {"labels": ["no", "yes", "perhaps"]}),
        (AlbertForSequenceClassification, {"problem": "regression"}),
        (AlbertForPreTraining, {"objective": "none"}),
        (AlbertForPreTraining, {"objective": "sentence_order"}),
    ],
)
def test_every_head_comes_back_with_its_settings(kind, arguments, tmp_path):
    model = randomized(kind, **arguments)
    model.save_pretrained(tmp_path)
    again = kind.from_pretrained(tmp_path)
    assert_same(again, model)
    assert again.head_settings() == model.head_settings()
    assert again.get_config() == {**model.get_config(), "name": again.name}
    published = json.loads((tmp_path / "config.json").read_text())
    assert published["architectures"] == [kind.__name__]
    if "labels" in arguments:
        assert again.labels == ("no", "yes", "perhaps")
        assert published["id2label"] == {"0": "no", "1": "yes", "2": "perhaps"}


# === Damage ===


@pytest.mark.parametrize("kept", [0, 7, 400, -1])
def test_a_truncated_file(kept, golden, tmp_path):
    shutil.copytree(golden("hf_for_pretraining").folder, tmp_path, dirs_exist_ok=True)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"model\.safetensors .*damaged .*again"):
        AlbertForPreTraining.from_pretrained(tmp_path)


def test_nothing_there(tmp_path):
    with pytest.raises(ValueError, match="nowhere does not exist; check the spelling"):
        AlbertForPreTraining.from_pretrained(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="is empty; pass the folder of a model"):
        AlbertForPreTraining.from_pretrained(tmp_path)
    (tmp_path / "notes.txt").touch()
    with pytest.raises(ValueError, match=r"`path` must be a folder with config\.json and model\.safetensors"):
        AlbertForPreTraining.from_pretrained(tmp_path)


EXPORTS = {
    "graph": ["1/saved_model.pb"],
    "onnx": ["2/model.json", "2/onnx/model.onnx", "1/saved_model.pb"],
    "phone": ["1/model.tflite", "1/model.json"],
    "hub": ["encoder/saved_model.pb", "preprocess/saved_model.pb"],
}


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("graph", "graph is a SavedModel, which only `predict`, `evaluate` and `serve` read; pass the folder that"),
        ("onnx", "onnx is an ONNX folder, which only `predict`, `evaluate` and `serve` read; pass the folder that"),
        ("phone", r"phone is a LiteRT export, which LiteRT runs; saved_models/README\.md shows how\."),
        ("hub", "hub does not take texts, like all modules for TF Hub; export it with --format saved_model"),
        ("", r"is a folder of models; give one of them: \S+graph, \S+hub, \S+onnx, \S+phone\."),
    ],
)
def test_an_export_is_named_for_what_it_is(tmp_path, name, complaint):
    for folder, files in EXPORTS.items():
        for file in files:
            (tmp_path / folder / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / folder / file).touch()
    with pytest.raises(ValueError, match=complaint):
        AlbertForPreTraining.from_pretrained(tmp_path / name)


def test_the_folder_of_a_run_names_its_model(tmp_path):
    AlbertForPreTraining(CONFIG).save_pretrained(tmp_path / "run/model")
    with pytest.raises(ValueError, match=r"run is a folder of models; give one of them: .*run/model\."):
        AlbertForPreTraining.from_pretrained(tmp_path / "run")
