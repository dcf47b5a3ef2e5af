"""Proves that what is frozen stays frozen in files, clones and copies, a whole model or a part of it."""

import copy
import pickle

import keras
import numpy as np
import pytest

from albert_tf import AlbertEncoder, AlbertForSequenceClassification
from albert_tf.layers import TransformerBlock

from .small import CONFIG, make_inputs

INPUTS, LABELS = make_inputs(4), np.array([0, 2, 1, 1])


def copies(model, folder):
    """The model again, in each way that Keras has."""
    model.save(folder / "model.keras")
    return {
        "file": keras.saving.load_model(folder / "model.keras"),
        "clone": keras.models.clone_model(model),
        "config": type(model).from_config(model.get_config()),
        "pickle": pickle.loads(pickle.dumps(model)),
        "deepcopy": copy.deepcopy(model),
    }


def trainable_paths(model):
    return [variable.path.partition("/")[2] for variable in model.trainable_variables]


def freeze_encoder(model):
    model.encoder.trainable = False


def freeze_parts(model):
    model.encoder.embeddings.trainable = False
    model.encoder.attention_blocks[0][0].layer_norm.trainable = False


def freeze_all(model):
    model.trainable = False


@pytest.mark.parametrize(("freeze", "count"), [(freeze_encoder, 2), (freeze_parts, 20), (freeze_all, 0)])
def test_a_task_model(freeze, count, tmp_path):
    model = AlbertForSequenceClassification(CONFIG, num_labels=3)
    freeze(model)
    expected = trainable_paths(model)
    assert len(expected) == count
    for way, again in copies(model, tmp_path).items():
        assert trainable_paths(again) == expected, way


def test_an_encoder_in_a_functional_model_and_its_optimizer(tmp_path):
    encoder = AlbertEncoder(CONFIG)
    encoder.trainable = False
    ids = keras.Input((None,), dtype="int32")
    model = keras.Model(ids, keras.layers.Dense(3)(encoder(ids)["pooled_output"]))
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), run_eagerly=True)
    model.fit(INPUTS["input_ids"], LABELS, verbose=0)
    for way, again in copies(model, tmp_path).items():
        assert len(again.trainable_variables) == 2, way
    again = keras.saving.load_model(tmp_path / "model.keras")  # no warning of an optimizer with other variables
    before = encoder.get_weights()
    again.fit(INPUTS["input_ids"], LABELS, verbose=0)
    loaded = next(layer for layer in again.layers if isinstance(layer, AlbertEncoder))
    for values, expected in zip(loaded.get_weights(), before, strict=True):
        np.testing.assert_array_equal(values, expected)


def test_a_block_that_was_frozen_before_and_after_it_was_built():
    for freeze_first in (True, False):
        block = TransformerBlock(CONFIG, trainable=not freeze_first)
        vectors = keras.Input((None, CONFIG.hidden_size))
        model = keras.Model(vectors, keras.layers.Dense(3)(block(vectors)))
        block.trainable = False
        for again in (model, keras.models.clone_model(model)):
            assert len(again.trainable_variables) == 2


@pytest.mark.parametrize("make", [TransformerBlock, AlbertEncoder])
def test_the_argument_of_the_constructor(make):
    part = make(CONFIG, trainable=False)
    vectors = keras.Input((None, CONFIG.hidden_size))
    inputs = keras.Input((None,), dtype="int32") if make is AlbertEncoder else vectors
    outputs = part(inputs)
    outputs = outputs["pooled_output"] if make is AlbertEncoder else outputs
    assert len(keras.Model(inputs, keras.layers.Dense(3)(outputs)).trainable_variables) == 2


def test_made_trainable_again(tmp_path):
    model = AlbertForSequenceClassification(CONFIG, num_labels=3)
    count = len(model.trainable_variables)
    freeze_encoder(model)
    again = keras.models.clone_model(model)
    again.encoder.trainable = True
    assert len(again.trainable_variables) == count
    assert "frozen" not in again.get_config()
