"""Seeds of weights and of dropout."""

import random
import threading

import keras
import numpy as np
import pytest

import albert_tf
from albert_tf.layers.seeds import seeded
from albert_tf.trainer.adapters import add_adapters

CONFIG = albert_tf.AlbertConfig.from_preset("tiny").replace(vocab_size=100, classifier_dropout_prob=0.1)
MODELS = {
    "AlbertForPreTraining": {},
    "AlbertForSequenceClassification": {"num_labels": 3},
    "AlbertForSentenceEmbedding": {"dense_size": 8},
}


@pytest.mark.parametrize("name", MODELS)
def test_weights_do_not_depend_on_what_else_draws(name):
    """As libraries for buckets do in their threads, when a server is busy."""

    def made():
        model = getattr(albert_tf, name)(CONFIG, **MODELS[name])
        add_adapters(model, 2)
        return [np.asarray(weight) for weight in model.variables]

    keras.utils.set_random_seed(7)
    expected, over = made(), threading.Event()
    drawing = threading.Thread(target=lambda: [random.random() for _ in iter(over.is_set, True)])
    drawing.start()
    with seeded(7):
        weights = made()
    over.set()
    drawing.join()
    for weight, other in zip(weights, expected, strict=True):
        np.testing.assert_array_equal(weight, other)
    state = random.getstate()
    with seeded(7):
        made()
    assert random.getstate() == state
    assert not np.array_equal(made()[0], expected[0]), "the generator of a block is used after it"
