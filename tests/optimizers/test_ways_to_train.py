"""Proves that the step is the same eagerly, in a graph, under XLA and in `model.fit`."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_tf.optimizers import AdamW, Lamb, WarmupSchedule
from tests.parameters import first_of


def make_model():
    keras.utils.set_random_seed(3)
    layers = [
        keras.layers.Embedding(17, 4, name="word_embeddings"),
        keras.layers.LayerNormalization(name="layer_norm"),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(3, name="head"),
    ]
    model = keras.Sequential(layers)
    model.build((None, 5))
    return model


def make_batch():
    generator = np.random.default_rng(1)
    return generator.integers(0, 17, (8, 5)).astype("int32"), generator.integers(0, 3, (8,)).astype("int32")


def make_optimizer(kind):
    schedule = WarmupSchedule(0.1, num_train_steps=10, num_warmup_steps=2)
    return kind(schedule, weight_decay=0.1, global_clipnorm=0.5)


def train_by_hand(kind, jit_compile, graph=True, steps=5):
    model, optimizer = make_model(), make_optimizer(kind)
    optimizer.build(model.trainable_variables)
    inputs, labels = (tf.constant(array) for array in make_batch())

    def step():
        with tf.GradientTape() as tape:
            logits = model(inputs, training=True)
            loss = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True))
        optimizer.apply(tape.gradient(loss, model.trainable_variables))

    run = tf.function(step, jit_compile=jit_compile) if graph else step
    for _ in range(steps):
        run()
    return model.get_weights()


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", first_of([AdamW, Lamb]))
def test_eager_graph_and_xla_agree(kind):
    eager = train_by_hand(kind, jit_compile=False, graph=False)
    assert max(np.max(np.abs(a - b)) for a, b in zip(eager, make_model().get_weights(), strict=True)) > 0.01
    for jit_compile in (False, True):
        for found, expected in zip(train_by_hand(kind, jit_compile), eager, strict=True):
            np.testing.assert_allclose(found, expected, atol=2e-6, rtol=0)


# Keras reads TensorFlow's variables with `np.array`, and TensorFlow 2.21 does not know NumPy 2's copy argument.
@pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy:DeprecationWarning")
def test_a_compiled_model_survives_saving(tmp_path):
    model = make_model()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(make_optimizer(Lamb), loss)
    model.fit(*make_batch(), batch_size=8, epochs=2, shuffle=False, verbose=0)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    for one in (model, again):
        one.fit(*make_batch(), batch_size=8, epochs=2, shuffle=False, verbose=0)
    for found, expected in zip(again.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(found, expected)
