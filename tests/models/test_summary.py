"""Proves that `summary` shows shapes."""

import re

import keras
import numpy as np
import pytest

from albert_tf import models
from tests.toy_task import CONFIG

WIDTH = CONFIG.hidden_size
TASK_MODELS = {
    "AlbertForSequenceClassification": ({"num_labels": 3}, "(None, 3)"),
    "AlbertForTokenClassification": ({"num_labels": 3}, "(None, None, 3)"),
    "AlbertForPreTraining": ({}, f"(None, None, {CONFIG.vocab_size})"),
    "AlbertForMultipleChoice": ({}, "(None, 1)"),
    "AlbertForSentenceEmbedding": ({}, f"(None, None, {WIDTH})"),
    "AlbertForQuestionAnswering": ({"head": "beam"}, "start_top_index: (None, 5)"),
}


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "600")


def summary_of(model, **options):
    lines = []
    model.summary(line_length=550, print_fn=lines.append, **options)
    return "\n".join(lines)


@pytest.mark.parametrize("name", TASK_MODELS)
def test_every_layer_has_its_shape(name):
    arguments, shape = TASK_MODELS[name]
    model = getattr(models, name)(CONFIG, **arguments)
    printed = summary_of(model, expand_nested=True)
    assert "?" not in printed
    assert shape in printed
    assert re.search(rf"block_0 \(TransformerBlock\) *│ \(None, None, {WIDTH}\) ", printed)


def test_blocks_are_the_layers_of_an_encoder():
    for changes, blocks in (({}, 1), ({"num_hidden_groups": 2}, 2), ({"share": "attention"}, 2)):
        encoder = models.AlbertEncoder(CONFIG.replace(num_hidden_layers=2, **changes))
        names = [layer.name for layer in encoder.layers]
        assert names == ["embeddings", "projection", *(f"block_{index}" for index in range(blocks)), "pooler"]
        assert list(dict.fromkeys(encoder.transformer_blocks)) == encoder.layers[2:-1]


def test_parts_of_an_encoder_can_be_replaced():
    model = models.AlbertForSequenceClassification(CONFIG, num_labels=3)
    model.encoder.pooler = keras.layers.Dense(WIDTH, name="wider")
    assert model({"input_ids": np.array([[2, 5, 3]])})["logits"].shape == (1, 3)


def test_a_called_model_is_summarised_too():
    model = models.AlbertForSequenceClassification(CONFIG, num_labels=3)
    logits = model({"input_ids": np.array([[2, 5, 3]])})["logits"]
    printed = summary_of(model)
    assert "sequence_output: (None, None" in printed
    assert "?" not in printed
    np.testing.assert_array_equal(model({"input_ids": np.array([[2, 5, 3]])})["logits"], logits)
