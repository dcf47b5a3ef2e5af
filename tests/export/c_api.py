"""Runs SavedModels with TensorFlow's C API through ctypes, as a server in another language would; no Python TensorFlow.

    python tests/export/c_api.py '{"classifier": {"folder": "saved_models/task/1", "inputs": {"serving_default_text:0":
        ["a text"]}, "outputs": {"score": "StatefulPartitionedCall:1"}}}'

Prints JSON: by the same names the outputs, and, as base64, serialized OpLists of TensorFlow's operations without
(`core_ops`) and with those of tensorflow-text (`all_ops`).
"""

import base64
import ctypes
import importlib.util
import json
import pathlib
import sys
from ctypes import POINTER, Structure, c_char_p, c_int, c_int64, c_size_t, c_void_p

import numpy as np

# TF_DataType, and the size of a TF_TString.
STRING, INT32, STRING_SIZE = 7, 3, 24
DTYPES = {1: np.float32, INT32: np.int32, 9: np.int64, 10: np.bool_}


class Buffer(Structure):
    """TF_Buffer."""

    _fields_ = [("data", c_void_p), ("length", c_size_t), ("deallocator", c_void_p)]


class Output(Structure):
    """TF_Output: an operation and the number of its output."""

    _fields_ = [("operation", c_void_p), ("index", c_int)]


def package(name: str) -> pathlib.Path:
    """The folder of a package, which is found without being imported."""
    return pathlib.Path(importlib.util.find_spec(name).origin).parent


class CApi:
    """The functions of the C API that return pointers, or take a status as their last argument."""

    POINTERS = (
        *("TF_NewStatus", "TF_NewGraph", "TF_NewSessionOptions", "TF_LoadSessionFromSavedModel", "TF_LoadLibrary"),
        *("TF_GraphOperationByName", "TF_AllocateTensor", "TF_TensorData", "TF_StringGetDataPointer"),
    )

    def __init__(self):
        self.library = ctypes.CDLL(str(package("tensorflow") / "libtensorflow_cc.so.2"), mode=ctypes.RTLD_GLOBAL)
        for name in self.POINTERS:
            self[name].restype = c_void_p
        self["TF_GetAllOpList"].restype = POINTER(Buffer)
        self["TF_Message"].restype = c_char_p
        self["TF_StringGetSize"].restype = c_size_t
        self["TF_Dim"].restype = c_int64
        self.status = c_void_p(self["TF_NewStatus"]())

    def __getitem__(self, name: str):
        return getattr(self.library, name)

    def checked(self, name: str, *arguments):
        """Calls a function whose last argument is a status, which must be OK."""
        result = self[name](*arguments, self.status)
        if self["TF_GetCode"](self.status):
            raise RuntimeError(f"{name}: {self['TF_Message'](self.status).decode()}")
        return result

    def op_list(self) -> str:
        """The registered operations."""
        buffer = self["TF_GetAllOpList"]().contents
        return base64.b64encode(ctypes.string_at(buffer.data, buffer.length)).decode()

    def tensor(self, values: list) -> c_void_p:
        """A tensor of strings or int32."""
        array = np.array(values)
        is_text = array.dtype.kind == "U"
        shape, size = (c_int64 * array.ndim)(*array.shape), array.size * (STRING_SIZE if is_text else 4)
        tensor = c_void_p(self["TF_AllocateTensor"](STRING if is_text else INT32, shape, array.ndim, c_size_t(size)))
        start = self["TF_TensorData"](tensor)
        if not is_text:
            ctypes.memmove(start, array.astype(np.int32).tobytes(), size)
            return tensor
        for index, text in enumerate(array.flat):
            place, content = c_void_p(start + index * STRING_SIZE), text.encode()
            self["TF_StringInit"](place)
            self["TF_StringCopy"](place, content, c_size_t(len(content)))
        return tensor

    def values(self, tensor: c_void_p) -> list:
        """A tensor's values as lists."""
        shape = [self["TF_Dim"](tensor, axis) for axis in range(self["TF_NumDims"](tensor))]
        kind, start, size = self["TF_TensorType"](tensor), self["TF_TensorData"](tensor), int(np.prod(shape))
        if kind != STRING:
            dtype = np.dtype(DTYPES[kind])
            return np.frombuffer(ctypes.string_at(start, size * dtype.itemsize), dtype).reshape(shape).tolist()
        places = [c_void_p(start + index * STRING_SIZE) for index in range(size)]
        texts = [
            ctypes.string_at(self["TF_StringGetDataPointer"](place), self["TF_StringGetSize"](place)).decode()
            for place in places
        ]
        return np.array(texts, dtype=object).reshape(shape).tolist()

    def run(self, folder: str, inputs: dict[str, list], outputs: dict[str, str]) -> dict[str, list]:
        """Loads a SavedModel and runs it once; `outputs` are names of tensors by the names of the results."""
        graph, options = c_void_p(self["TF_NewGraph"]()), c_void_p(self["TF_NewSessionOptions"]())
        tags = (c_char_p * 1)(b"serve")
        session = c_void_p(
            self.checked("TF_LoadSessionFromSavedModel", options, None, folder.encode(), tags, 1, graph, None)
        )

        def output(name: str) -> Output:
            operation, _, index = name.partition(":")
            found = self["TF_GraphOperationByName"](graph, operation.encode())
            if found is None:
                raise ValueError(f"{folder} has no tensor {name}.")
            return Output(found, int(index))

        given = (Output * len(inputs))(*map(output, inputs))
        wanted = (Output * len(outputs))(*map(output, outputs.values()))
        tensors = (c_void_p * len(inputs))(*(self.tensor(values) for values in inputs.values()))
        results = (c_void_p * len(outputs))()
        self.checked(
            "TF_SessionRun", session, None, given, tensors, len(inputs), wanted, results, len(outputs), None, 0, None
        )
        return {name: self.values(c_void_p(tensor)) for name, tensor in zip(outputs, results)}


def main(request: dict[str, dict]) -> dict:
    """The answers to a request."""
    api = CApi()
    core_ops = api.op_list()
    for library in sorted((package("tensorflow_text") / "python" / "ops").glob("*.so")):
        api.checked("TF_LoadLibrary", str(library).encode())
    answers = {name: api.run(**case) for name, case in request.items()}
    if {"tensorflow", "keras", "albert_tf"} & set(sys.modules):
        raise RuntimeError("Python TensorFlow was imported.")
    return {**answers, "core_ops": core_ops, "all_ops": api.op_list()}


if __name__ == "__main__":
    print("ANSWERS" + json.dumps(main(json.loads(sys.argv[1]))))
