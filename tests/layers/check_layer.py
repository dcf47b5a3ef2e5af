"""What every layer must be able to do, checked in one place."""

import json
import pathlib

import keras
import numpy as np
import tensorflow as tf


def check_layer(layer, inputs, folder: pathlib.Path, output_dtype: str, bfloat16_atol: float, atol: float = 1e-5):
    """Builds a layer, runs it in every way that users do, and compares.

    Args:
        layer: a float32 layer that is not built yet.
        inputs: list of arrays, the layer's positional arguments.
        folder: an empty folder to save in.
        output_dtype: what the first output is in under mixed_bfloat16.
        bfloat16_atol: how far the outputs of mixed_bfloat16 may be from those of float32.
        atol: how far eager, graph and XLA may be apart, and their gradients relative to the largest entry.

    Returns:
        The outputs, as a list of arrays.
    """
    _check_build(layer, inputs)
    results = [_outputs_and_gradients(layer, inputs, way) for way in ("eager", "graph", "xla")]
    for outputs, gradients in results[1:]:
        _assert_close(outputs, results[0][0], atol)
        _assert_close(gradients, results[0][1], atol, relative=True)
    expected = results[0][0]
    _check_config(layer, inputs, expected)
    _check_mixed_precision(layer, inputs, expected, output_dtype, bfloat16_atol)
    _check_saving(layer, inputs, expected, folder)
    return expected


def randomize(layer, seed: int = 0) -> None:
    """Gives every variable values that are nowhere 0 or 1 by default, so that none can be forgotten unnoticed."""
    generator = np.random.default_rng(seed)
    for variable in layer.weights:
        if "seed_generator" not in variable.path:
            centre = 1.0 if variable.path.endswith("gamma") else 0.0
            variable.assign(generator.normal(centre, 0.1, variable.shape))


def _check_build(layer, inputs):
    assert not layer.built
    layer.build(None)
    paths = [variable.path for variable in layer.weights]
    assert len(set(paths)) == len(paths)
    randomize(layer)
    layer(*inputs)
    assert [variable.path for variable in layer.weights] == paths, "the first call made variables"


def _outputs_and_gradients(layer, inputs, way: str):
    def run(*tensors):
        with tf.GradientTape() as tape:
            outputs = keras.tree.flatten(layer(*tensors))
            loss = tf.add_n([_uneven_sum(output) for output in outputs])
        gradients = tape.gradient(loss, layer.trainable_variables)
        return outputs, [tf.convert_to_tensor(gradient) for gradient in gradients]

    if way != "eager":
        run = tf.function(run, jit_compile=way == "xla")
    return keras.tree.map_structure(np.asarray, run(*[tf.constant(array) for array in inputs]))


def _uneven_sum(tensor):
    """A sum in which each entry has another weight: a plain one is constant after a normalisation."""
    flat = tf.reshape(tensor, (-1,))
    return tf.reduce_sum(tf.sin(tf.range(tf.size(flat), dtype=tf.float32)) * flat)


def _check_config(layer, inputs, expected):
    config = json.loads(json.dumps(layer.get_config()))
    again = type(layer).from_config(config)
    assert again.get_config() == layer.get_config()
    again.build(None)
    again.set_weights(layer.get_weights())
    for found, array in zip(keras.tree.flatten(again(*inputs)), expected, strict=True):
        np.testing.assert_array_equal(found, array)


def _check_mixed_precision(layer, inputs, expected, output_dtype: str, atol: float):
    mixed = type(layer).from_config({**layer.get_config(), "dtype": "mixed_bfloat16"})
    mixed.build(None)
    assert {variable.dtype for variable in mixed.trainable_variables} == {"float32"}
    mixed.set_weights(layer.get_weights())
    half = [array.astype(tf.bfloat16.as_numpy_dtype) if array.dtype == "float32" else array for array in inputs]
    outputs = keras.tree.flatten(mixed(*half))
    assert outputs[0].dtype == output_dtype
    errors = [np.max(np.abs(np.asarray(o, "float32") - e)) for o, e in zip(outputs, expected, strict=True)]
    assert 0 < max(errors) <= atol


def _check_saving(layer, inputs, expected, folder):
    rows = len(inputs[0])
    shapes = [(None if len(array) == rows else len(array), *array.shape[1:]) for array in inputs]
    symbols = [keras.Input(batch_shape=shape, dtype=a.dtype.name) for shape, a in zip(shapes, inputs, strict=True)]
    model = keras.Model(symbols, keras.tree.flatten(layer(*symbols)))
    model.save(folder / "model.keras")
    again = keras.saving.load_model(folder / "model.keras")
    for found, array in zip(keras.tree.flatten(again(inputs)), expected, strict=True):
        np.testing.assert_array_equal(found, array)


def _assert_close(found, expected, atol, relative=False):
    for one, other in zip(found, expected, strict=True):
        scale = max(1.0, float(np.max(np.abs(other)))) if relative else 1.0
        np.testing.assert_allclose(one, other, atol=atol * scale, rtol=0)
