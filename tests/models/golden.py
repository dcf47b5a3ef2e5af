"""Golden cases of models on every backend: where their weights are, their inputs, and comparisons with them."""

import keras
import numpy as np
from keras import ops

from albert_tf.checkpoints.names import rows
from tests.backends.convert_weights import GOLDEN, WEIGHTS

# Checkpoints of the reference are read by TensorFlow; `make test-backends` converts them first.
WEIGHTS_OF = GOLDEN if keras.backend.backend() == "tensorflow" else WEIGHTS
CASES = ("M1_small", "M2_groups", "M4_xlargeish")
UNREACHED = {"bert/pooler/dense/kernel", "bert/pooler/dense/bias"}


def reference_inputs(arrays, *names):
    inputs = {"input_ids": arrays["input_ids"], "attention_mask": arrays["input_mask"]}
    return {**inputs, "token_type_ids": arrays["segment_ids"], **{name: arrays[name] for name in names}}


def assert_close(found, expected, name, mask=None, atol=2e-5):
    """At `atol`; at 1e-4 in rows that are all padding, and relatively where the mask of the beam head stands."""
    found = ops.convert_to_numpy(found)
    assert found.shape == expected.shape, name
    if mask is not None:
        padded = ~np.any(mask, axis=1)
        np.testing.assert_allclose(found[padded], expected[padded], atol=1e-4, rtol=0, err_msg=name)
        found, expected = found[~padded], expected[~padded]
    masked = expected < -1e29
    np.testing.assert_allclose(found[~masked], expected[~masked], atol=atol, rtol=0, err_msg=name)
    np.testing.assert_allclose(found[masked], expected[masked], rtol=1e-5, err_msg=name)


def assert_loss(model, labels, outputs, expected, atol=2e-5):
    loss = ops.convert_to_numpy(model.compute_loss(y=labels, y_pred=outputs))
    np.testing.assert_allclose(loss, expected, atol=atol, rtol=0)


def assert_gradients(model, inputs, labels, arrays, count):
    """Every gradient; of what the loss does not reach the reference has zeros, and our model has none."""
    google_name = {row.path: row.google for row in rows(model.config)}
    expected = {key.removeprefix("grad:"): arrays[key] for key in arrays if key.startswith("grad:")}
    assert len(expected) == count
    for path, gradient in gradients_of(model, inputs, labels).items():
        wanted = expected.pop(google_name[path])
        wanted = wanted.T if google_name[path].endswith("output_weights") else wanted
        np.testing.assert_allclose(gradient, wanted, atol=2e-6, rtol=1e-4, err_msg=path)
    assert set(expected) <= UNREACHED
    assert not any(np.any(array) for array in expected.values())


def gradients_of(model, inputs, labels):
    """Gradients by path, without dropout, which the reference's were recorded without."""
    config = model.config.replace(classifier_dropout_prob=0.0)
    plain = type(model).from_config({**model.get_config(), "config": config.to_dict()})
    plain.set_weights(model.get_weights())
    variables = plain.variables_by_path()
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            loss = plain.compute_loss(y=labels, y_pred=plain(inputs, training=True))
        gradients = tape.gradient(loss, plain.trainable_variables)
        return {path: np.asarray(tf.convert_to_tensor(array)) for path, array in zip(variables, gradients, strict=True)}
    # One step of descent at rate 1 moves every variable by its gradient, whatever the backend's own way is.
    before = {path: ops.convert_to_numpy(variable).astype("float64") for path, variable in variables.items()}
    plain.compile(keras.optimizers.SGD(1.0))
    plain.train_on_batch(inputs, labels)
    return {path: before[path] - ops.convert_to_numpy(variable) for path, variable in variables.items()}
