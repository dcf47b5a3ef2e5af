"""Comparisons of weights and outputs, and changes of files of weights."""

import numpy as np
import safetensors.numpy


def assert_close(found, expected):
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=0)


def assert_same(found, expected):
    """Arrays by name."""
    assert set(found) == set(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name, strict=True)


def tensors_in(folder):
    return safetensors.numpy.load_file(folder / "model.safetensors")


def change_tensors(folder, edit):
    """Calls `edit` with the tensors of a folder by name, and writes them again."""
    tensors = tensors_in(folder)
    edit(tensors)
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
