"""Proves the Hugging Face layout: its files give its numbers, ours have its names and come back to the bit."""

import json

import numpy as np
import pytest

from albert_tf import (
    AlbertConfig,
    AlbertEncoder,
    AlbertForMaskedLM,
    AlbertForPreTraining,
    AlbertForSequenceClassification,
)
from tests.checkpoints.comparison import assert_close, assert_same, change_tensors, tensors_in
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


def assert_same_weights(model, other):
    assert_same(model.arrays_by_path(), other.arrays_by_path())


def randomized(kind, config=CONFIG, **arguments):
    """No two variables are equal, and none is what a fresh model has."""
    model, random = kind(config, **arguments), np.random.default_rng(0)
    for variable in model.variables_by_path().values():
        variable.assign(random.standard_normal(variable.shape))
    return model


def test_a_file_of_transformers_gives_its_losses(golden):
    """tests/models has the outputs of all heads."""
    case = golden("hf_for_pretraining")
    model, arrays = AlbertForPreTraining.from_pretrained(case.folder), case.arrays
    assert model.config.hidden_act == "gelu_new"
    outputs = model({name: arrays[name] for name in ("input_ids", "attention_mask", "token_type_ids")})
    labels = {
        "masked_lm_ids": np.maximum(arrays["labels"], 0),
        "masked_lm_weights": (arrays["labels"] != -100).astype("float32"),
        "sentence_order_labels": arrays["sentence_order_label"],
    }
    terms = model.loss_terms(labels, outputs)
    for name in ("masked_lm_loss", "sentence_order_loss"):
        assert_close(terms[name].mean(), arrays[name])


@pytest.mark.parametrize("shape", SHAPES)
def test_round_trip_of_every_kind_of_sharing(shape, tmp_path):
    config = CONFIG.replace(**SHAPES[shape])
    model = randomized(AlbertForPreTraining, config)
    model.save_pretrained(tmp_path)
    again = AlbertForPreTraining.from_pretrained(tmp_path)
    assert again.config == config
    assert_same_weights(again, model)


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
    tensors, name = tensors_in(tmp_path), "albert.encoder.embedding_hidden_mapping_in"
    np.testing.assert_array_equal(tensors[f"{name}.weight"], np.eye(16))
    np.testing.assert_array_equal(tensors[f"{name}.bias"], np.zeros(16))
    assert AlbertForPreTraining.from_pretrained(tmp_path).encoder.projection is None
    change_tensors(tmp_path, lambda tensors: tensors[f"{name}.bias"].__setitem__(3, 0.5))
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
    assert_same_weights(AlbertEncoder.from_pretrained(tmp_path), encoder)
    classifier = AlbertForSequenceClassification.from_pretrained(tmp_path, new_head=True, num_labels=3)
    assert_same_weights(classifier.encoder, encoder)


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
    assert_same_weights(again, model)
    assert again.head_settings() == model.head_settings()
    assert again.get_config() == {**model.get_config(), "name": again.name}
    published = json.loads((tmp_path / "config.json").read_text())
    assert published["architectures"] == [kind.__name__]
    if "labels" in arguments:
        assert again.labels == ("no", "yes", "perhaps")
        assert published["id2label"] == {"0": "no", "1": "yes", "2": "perhaps"}
