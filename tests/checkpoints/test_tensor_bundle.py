"""Proves that TensorFlow's checkpoint files are read to the bit as TensorFlow reads them, whatever is in them."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.checkpoints.formats.tensor_bundle import read_bundle

DTYPES = ("float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool")


def everything(name):
    return True


def save(prefix, tensors):
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=list(tensors),
        shape_and_slices=[""] * len(tensors),
        tensors=[tf.constant(tensor) for tensor in tensors.values()],
    )
    return prefix


def random_tensors(names, seed=0):
    chance = np.random.default_rng(seed)
    return {name: chance.standard_normal((2, 3)).astype("float32") for name in names}


def assert_as_tensorflow(prefix, count):
    reader, found = tf.train.load_checkpoint(str(prefix)), read_bundle(prefix, everything)
    assert len(found) == count
    assert set(found) == set(reader.get_variable_to_shape_map())
    for name, array in found.items():
        expected = reader.get_tensor(name)
        assert array.dtype == expected.dtype, name
        np.testing.assert_array_equal(array, expected, err_msg=name, strict=True)


def test_every_type_and_shape(tmp_path):
    tensors = {
        f"{dtype}/{shape}": tf.cast(tf.random.stateless_uniform(shape, [1, 2], 0, 100, "int32"), dtype)
        for dtype in DTYPES
        for shape in ((), (1,), (0,), (3, 0, 2), (2, 3, 4))
    }
    assert_as_tensorflow(save(tmp_path / "model.ckpt", tensors), 50)


def test_an_index_of_many_blocks(tmp_path):
    names = [f"{'a/long/name' * 20}/{number * 7919 % 10007}" for number in range(3000)]
    prefix = save(tmp_path / "model.ckpt", random_tensors(names))
    assert_as_tensorflow(prefix, 3000)


def test_data_in_several_files(tmp_path):
    parts = [save(tmp_path / f"part{i}", random_tensors([f"{i}/a", f"{i}/b"], seed=i)) for i in range(3)]
    prefix = tmp_path / "model.ckpt"
    tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=[str(part) for part in parts], destination_prefix=str(prefix))
    assert len(list(tmp_path.glob("model.ckpt.data-*-of-00003"))) == 3
    assert_as_tensorflow(prefix, 6)


def test_only_what_is_wanted(tmp_path):
    prefix = save(tmp_path / "model.ckpt", {"text": np.array([b"a"]), **random_tensors(["number"])})
    assert list(read_bundle(prefix, lambda name: name != "text")) == ["number"]
    with pytest.raises(ValueError, match="text has an unknown type or is sliced"):
        read_bundle(prefix, everything)


def test_slices_are_refused(tmp_path):
    prefix = tmp_path / "model.ckpt"
    tf.raw_ops.SaveV2(
        prefix=str(prefix), tensor_names=["a"], shape_and_slices=["4 2 0,2:-"], tensors=[tf.zeros((2, 2))]
    )
    with pytest.raises(ValueError, match="a has an unknown type or is sliced"):
        read_bundle(prefix, lambda name: name == "a")
