"""Proves the ways to call the encoder and its errors, and that models predict, save and load themselves."""

import keras
import numpy as np
import pytest

from albert_tf import (
    AlbertEncoder,
    AlbertForMaskedLM,
    AlbertForMultipleChoice,
    AlbertForPreTraining,
    AlbertForQuestionAnswering,
    AlbertForSentenceEmbedding,
    AlbertForSequenceClassification,
    AlbertForTokenClassification,
    models,
)
from tests.parameters import first_of

from .small import CONFIG, make_choices, make_inputs, make_pretraining_batch

MODELS = [
    (AlbertEncoder, {}),
    (AlbertForMaskedLM, {}),
    (AlbertForMultipleChoice, {}),
    (AlbertForPreTraining, {}),
    (AlbertForQuestionAnswering, {}),
    (AlbertForQuestionAnswering, {"head": "beam", "start_n_top": 3, "end_n_top": 2}),
    (AlbertForSentenceEmbedding, {"normalize": True}),
    (AlbertForSequenceClassification, {"num_labels": 3}),
    (AlbertForSequenceClassification, {"problem": "regression"}),
    (AlbertForTokenClassification, {"labels": ["O", "B-PER", "I-PER"]}),
]


def inputs_for(kind):
    if kind in (AlbertForMaskedLM, AlbertForPreTraining):
        return make_pretraining_batch()[0]
    return make_choices() if kind is AlbertForMultipleChoice else make_inputs()


def assert_equal(found, expected, atol=0.0):
    assert set(found) == set(expected)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, atol=atol, rtol=0, err_msg=name)


@pytest.fixture(scope="module")
def encoder():
    return AlbertEncoder(CONFIG)


def test_every_public_model_is_tested_here():
    assert {kind.__name__ for kind, _ in MODELS} == set(models.__all__) - {"Preprocessor"}


def test_ids_alone_attend_to_everything_and_have_type_0(encoder):
    ids = make_inputs()["input_ids"]
    expected = encoder({"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)})
    assert_equal(encoder({"input_ids": ids}), expected)
    assert_equal(encoder(ids), expected)
    assert_equal(encoder(ids.astype("int64")), expected)


def test_the_mask_and_the_types_matter(encoder):
    inputs = make_inputs()
    whole = encoder(inputs)
    for name in ("attention_mask", "token_type_ids"):
        rest = {key: value for key, value in inputs.items() if key != name}
        assert np.max(np.abs(encoder(rest)["sequence_output"] - whole["sequence_output"])) > 1e-3
    for dtype in ("bool", "float32", "int64"):
        other = {**inputs, "attention_mask": inputs["attention_mask"].astype(dtype)}
        assert_equal(encoder(other), whole)


def test_optional_outputs(encoder):
    outputs = encoder(make_inputs(), output_hidden_states=True, output_attentions=True)
    assert list(outputs) == ["sequence_output", "pooled_output", "hidden_states", "attentions"]
    assert isinstance(outputs["hidden_states"], tuple)
    assert isinstance(outputs["attentions"], tuple)
    np.testing.assert_array_equal(outputs["hidden_states"][-1], outputs["sequence_output"])
    assert set(AlbertEncoder(CONFIG, add_pooling_layer=False)(make_inputs())) == {"sequence_output"}


def test_inside_a_functional_model_of_the_user(encoder, tmp_path):
    symbols = {name: keras.Input((None,), dtype="int32", name=name) for name in make_inputs()}
    outputs = encoder(symbols, output_hidden_states=True)
    assert outputs["sequence_output"].shape == (None, None, 16)
    assert outputs["pooled_output"].shape == (None, 16)
    scores = keras.layers.Dense(2, name="scores")(outputs["pooled_output"])
    model = keras.Model(symbols, [scores, outputs["hidden_states"][1]])
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    for rows in (1, 5):
        inputs = make_inputs(rows)
        expected = encoder(inputs, output_hidden_states=True)
        for one in (model, again):
            np.testing.assert_allclose(one(inputs)[0], model.get_layer("scores")(expected["pooled_output"]), atol=1e-6)
            np.testing.assert_allclose(one(inputs)[1], expected["hidden_states"][1], atol=1e-6)


@pytest.mark.parametrize(("kind", "arguments"), first_of(MODELS))
def test_predict_and_saving(kind, arguments, tmp_path):
    inputs = inputs_for(kind)
    model = kind(CONFIG, **arguments)
    expected = model(inputs)
    assert_equal(model.predict(inputs, batch_size=2, verbose=0), expected, atol=1e-6)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.config == CONFIG
    assert again.get_config() == model.get_config()
    assert list(again.variables_by_path()) == list(model.variables_by_path())
    assert_equal(again(inputs), expected)
    model.save_weights(tmp_path / "model.weights.h5")
    other = kind(CONFIG, **arguments)
    other.load_weights(tmp_path / "model.weights.h5")
    assert_equal(other(inputs), expected)


def test_errors_of_construction():
    with pytest.raises(ValueError, match=r"`config` must be an AlbertConfig\. Received: config='folder'"):
        AlbertEncoder("folder")
    with pytest.raises(ValueError, match="`num_labels` or `labels` must be given"):
        AlbertForSequenceClassification(CONFIG)
