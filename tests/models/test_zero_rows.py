"""Proves that no rows give outputs without rows, with the other axes as they are."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertEncoder, AlbertForSentenceEmbedding

from .test_keras_conventions import ALL
from .test_keras_conventions import CONFIG as TWO_LAYERS

CONFIG = TWO_LAYERS.replace(num_hidden_layers=1)
CASES = {
    **{name: (kind, arguments, inputs) for name, (kind, arguments, inputs, _) in ALL.items()},
    "encoder": (AlbertEncoder, {}, ALL["texts"][2]),
    "embedding": (AlbertForSentenceEmbedding, {}, ALL["texts"][2]),
}


def shapes(outputs):
    return {name: tuple(value.shape) for name, value in outputs.items()}


@pytest.mark.parametrize("name", CASES)
def test_every_model(name):
    kind, arguments, inputs = CASES[name]
    model = kind(CONFIG, **arguments)
    none = {name: array[:0] for name, array in inputs.items()}
    expected = {name: (0, *shape[1:]) for name, shape in shapes(model(inputs)).items()}
    specs = [tf.TensorSpec([None, *array.shape[1:]], tf.int32) for array in inputs.values()]
    in_graph = tf.function(lambda *arrays: model(dict(zip(inputs, arrays))), input_signature=specs)
    assert shapes(model(none)) == expected
    assert shapes(in_graph(*none.values())) == expected
    for predict in (model.predict_on_batch, lambda data: model.predict(data, verbose=0)):
        outputs = predict(none)
        assert shapes(outputs) == expected
        assert all(isinstance(output, np.ndarray) for output in outputs.values())


def test_the_forms_of_training():
    kind, arguments, inputs, labels = ALL["texts"]
    model = kind(CONFIG, **arguments)
    model.compile(keras.optimizers.SGD(0.1))
    before = model.get_weights()
    loss = model.train_on_batch({name: array[:0] for name, array in inputs.items()}, labels[:0])
    assert np.all(np.asarray(loss) == 0)
    for values, expected in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(values, expected)
