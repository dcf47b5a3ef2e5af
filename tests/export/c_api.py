"""Runs SavedModels with TensorFlow's C library, as a server in another language would; no Python TensorFlow.

    python tests/export/c_api.py '{"classifier": {"folder": "saved_models/task/1", "signature": "serving_default",
        "inputs": {"text": ["a text"]}}}'

Prints JSON: by the same names the outputs, and, as base64, serialized OpLists of TensorFlow's operations without
(`core_ops`) and with those of tensorflow-text (`all_ops`).
"""

import base64
import ctypes
import importlib.util
import json
import pathlib
import sys

import numpy as np

from albert_tf.serving.tensorflow_engine import load


class Buffer(ctypes.Structure):
    """TF_Buffer."""

    _fields_ = [("data", ctypes.c_void_p), ("length", ctypes.c_size_t), ("deallocator", ctypes.c_void_p)]


def op_list() -> str:
    """The registered operations."""
    folder = pathlib.Path(importlib.util.find_spec("tensorflow").origin).parent
    library = ctypes.CDLL(str(folder / "libtensorflow_cc.so.2"))
    library.TF_GetAllOpList.restype = ctypes.POINTER(Buffer)
    buffer = library.TF_GetAllOpList().contents
    return base64.b64encode(ctypes.string_at(buffer.data, buffer.length)).decode()


def run(folder: str, signature: str, inputs: dict[str, list]) -> dict[str, list]:
    """Loads a SavedModel and runs it once."""
    arrays = {name: np.array(values) for name, values in inputs.items()}
    encoded = {
        name: np.vectorize(str.encode, [object])(array) if array.dtype.kind == "U" else array
        for name, array in arrays.items()
    }
    outputs = load(pathlib.Path(folder)).run(signature, encoded)
    return {
        name: (np.vectorize(bytes.decode, [object])(array) if array.dtype == object and array.size else array).tolist()
        for name, array in outputs.items()
    }


def main(request: dict[str, dict]) -> dict:
    """The answers to a request."""
    core_ops = op_list()
    answers = {name: run(**case) for name, case in request.items()}
    if {"tensorflow", "keras"} & set(sys.modules):
        raise RuntimeError("Python TensorFlow was imported.")
    return {**answers, "core_ops": core_ops, "all_ops": op_list()}


if __name__ == "__main__":
    print("ANSWERS" + json.dumps(main(json.loads(sys.argv[1]))))
