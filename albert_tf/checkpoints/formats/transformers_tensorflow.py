"""Weights that TensorFlow classes of transformers 4 wrote: `tf_model.h5`, or safetensors with TensorFlow's names."""

import pathlib
import re
from collections.abc import Mapping

import numpy as np

_SUFFIX = ":0"
_BIAS, _USED_BIAS = "predictions.bias", "predictions.decoder.bias"
_LEAVES = {"kernel": "weight", "gamma": "weight", "embeddings": "weight", "beta": "bias"}


def read_tf_model(path: pathlib.Path) -> dict[str, np.ndarray]:
    """Reads `tf_model.h5`; the tensors have the names and axes that they have in PyTorch.

    Raises:
        ValueError: the file is damaged, or copies of a tensor differ.
    """
    from albert_tf.checkpoints.formats.hdf5 import read_hdf5  # servers have no h5py

    try:
        arrays = read_hdf5(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is not a file of Keras, or is damaged ({error}); download it again.") from None
    tensors: dict[str, np.ndarray] = {}
    for written, array in arrays.items():
        name = written.split("/", 2)[-1]  # after the layer and the model
        if not np.array_equal(tensors.setdefault(name, array), array, equal_nan=True):
            raise ValueError(f"{path} has different values for the copies of `{name}`; save it again.")
    return as_in_pytorch(tensors)


def as_in_pytorch(tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Tensors with the names and axes that they have in PyTorch; others than TensorFlow's stay as they are."""
    if not any(name.endswith(_SUFFIX) for name in tensors):
        return dict(tensors)
    renamed = dict(_in_pytorch(name, array) for name, array in tensors.items())
    if _USED_BIAS in renamed:  # of two that are not tied there
        renamed[_BIAS] = renamed.pop(_USED_BIAS)
    return renamed


def _in_pytorch(name: str, array: np.ndarray) -> tuple[str, np.ndarray]:
    # albert/encoder/albert_layer_groups_._0/albert_layers_._0/ffn/kernel:0
    parts = re.split("/|_._", name.removesuffix(_SUFFIX))
    is_kernel, parts[-1] = parts[-1] == "kernel", _LEAVES.get(parts[-1], parts[-1])
    return ".".join(parts), array.T if is_kernel else array
