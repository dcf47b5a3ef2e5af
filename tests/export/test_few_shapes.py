"""Proves that any request reaches the function that XLA compiles in one of few shapes, and gets its outputs alone."""

import itertools

import numpy as np
import tensorflow as tf

from albert_tf.export.few_shapes import in_few_shapes

PAD = 9


def test_shapes_are_few_and_outputs_are_those_of_the_rows():
    shapes = set()

    def network(inputs):
        shape = [tf.shape(array) for array in inputs.values()]
        seen = tf.numpy_function(
            lambda *given: shapes.add(tuple(map(tuple, given))) or np.float32(0), shape, tf.float32
        )
        seen.set_shape([])
        ids, mask, positions = (tf.cast(array, tf.float32) for array in inputs.values())
        picked = tf.gather(ids, inputs["masked_lm_positions"], batch_dims=1)
        return {"of_rows": tf.reduce_sum(mask, 1)[:, None] + seen, "of_positions": (picked + 0 * positions)[..., None]}

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None, None], tf.int32)] * 2)
    def call(ids, positions):
        inputs = {"input_ids": ids, "attention_mask": tf.ones_like(ids), "masked_lm_positions": positions}
        return in_few_shapes(network, inputs, [16, 20, 32, 60], PAD)

    for rows, length, count in itertools.product((1, 2, 3, 7, 9), (3, 16, 17, 20, 21, 40, 60), (1, 3)):
        ids = np.arange(rows * length, dtype=np.int32).reshape(rows, length)
        positions = np.tile(np.arange(count, dtype=np.int32), (rows, 1))
        outputs = call(ids, positions)
        np.testing.assert_array_equal(outputs["of_rows"], np.full((rows, 1), length))
        np.testing.assert_array_equal(outputs["of_positions"][..., 0], ids[:, :count])
    sizes = itertools.product((1, 2, 4, 8, 16), (16, 20, 32, 60), (1, 4))
    assert shapes == {((rows, length), (rows, length), (rows, count)) for rows, length, count in sizes}


def test_outputs_of_tokens_are_cut_and_choices_are_not():
    def network(inputs):
        ids = tf.cast(inputs["input_ids"], tf.float32)
        return {"of_tokens": ids, "of_all": tf.reduce_sum(ids, -1)}

    for axes, names in ((2, {"of_tokens": (3, 5), "of_all": (3,)}), (3, {"of_all": (3, 2)})):
        spec = tf.TensorSpec([None] * axes, tf.int32)
        call = tf.function(lambda ids: in_few_shapes(network, {"input_ids": ids}, [64], 0), input_signature=[spec])
        outputs = call(np.ones((3, 2, 5)[:: 1 if axes == 3 else 2], np.int32))
        assert {name: outputs[name].shape for name in names} == names
