"""Answers of a SavedModel, computed by TensorFlow's C library.

TensorFlow's Python package is not imported, which would take most of the time until a first answer, and 400 MB.

References:
    `tensorflow/c/c_api.h` and `tensorflow/core/protobuf/meta_graph.proto` of TensorFlow.
"""

import contextlib
import ctypes
import functools
import importlib.util
import pathlib
import weakref
from collections.abc import Iterator, Mapping
from ctypes import POINTER, Structure, c_char_p, c_int, c_int64, c_size_t, c_void_p

import numpy as np

from albert_tf.protobuf import fields, integer_field, last_payload, read_integer
from albert_tf.serving.engine import Signature, TensorSpec
from albert_tf.tensorflow_errors import reason_of_refusal

# TF_DataType, TF_Code and the size of a TF_TString.
_DTYPES = {1: "float32", 3: "int32", 7: "string"}
_FLOAT, _INT32, _STRING = _DTYPES
_INVALID_ARGUMENT, _STRING_SIZE = 3, 24
# Field numbers of MetaGraphDef, SignatureDef, TensorInfo, TensorShapeProto and ConfigProto; a map has entries of two.
_SIGNATURES, (_INPUTS, _OUTPUTS), (_NAME, _DTYPE, _SHAPE), (_DIM, _SIZE), _THREADS = 5, (1, 2), (1, 2, 3), (2, 1), 2
_KEY, _VALUE = 1, 2
_INIT_OP = "__saved_model_init_op"


class _Buffer(Structure):
    """TF_Buffer."""

    _fields_ = [("data", c_void_p), ("length", c_size_t), ("deallocator", c_void_p)]


class _Output(Structure):
    """TF_Output: an operation and the number of its output."""

    _fields_ = [("operation", c_void_p), ("index", c_int)]


_POINTERS = (
    *("TF_NewStatus", "TF_NewGraph", "TF_NewSessionOptions", "TF_NewSession", "TF_LoadSessionFromSavedModel"),
    *("TF_LoadLibrary", "TF_GraphOperationByName", "TF_AllocateTensor", "TF_TensorData", "TF_StringGetDataPointer"),
)


@functools.cache
def _library() -> ctypes.CDLL:
    """TensorFlow's C library, with the operations of tensorflow-text."""
    files = [*_folder("tensorflow").glob("libtensorflow_cc.*2*")]
    if not files:
        raise ModuleNotFoundError("TensorFlow was installed without its C library", name="libtensorflow_cc")
    library = ctypes.CDLL(str(files[0]))
    for name in _POINTERS:
        getattr(library, name).restype = c_void_p
    library.TF_NewBuffer.restype = POINTER(_Buffer)
    library.TF_Message.restype = c_char_p
    library.TF_StringGetSize.restype, library.TF_Dim.restype = c_size_t, c_int64
    for operations in sorted((_folder("tensorflow_text") / "python" / "ops").glob("*.so")):
        _call(library, "TF_LoadLibrary", str(operations).encode())
    return library


def find_devices() -> None:
    """Loads TensorFlow, and lets it find the devices of this machine and log what it finds."""
    library = _library()
    graph, options = c_void_p(library.TF_NewGraph()), c_void_p(library.TF_NewSessionOptions())
    _close(library, c_void_p(_call(library, "TF_NewSession", graph, options)), graph)
    library.TF_DeleteSessionOptions(options)


def _folder(package: str) -> pathlib.Path:
    """The folder of a package, which is found without being imported."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)
    return pathlib.Path(found.origin).parent


class _StatusError(RuntimeError):
    """TensorFlow's message, with its code."""

    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code = code


def _call(library: ctypes.CDLL, name: str, *arguments):
    """Calls a function whose last argument is a status; raises _StatusError unless it is OK."""
    status = c_void_p(library.TF_NewStatus())
    try:
        result = getattr(library, name)(*arguments, status)
        if code := library.TF_GetCode(status):
            raise _StatusError(code, library.TF_Message(status).decode(errors="replace"))
        return result
    finally:
        library.TF_DeleteStatus(status)


class TensorFlowEngine:
    """A SavedModel in memory, see `Engine`."""

    name = "tensorflow"

    def __init__(self, folder: pathlib.Path, threads: int | None = None):
        self._library = library = _library()
        graph, options = c_void_p(library.TF_NewGraph()), c_void_p(library.TF_NewSessionOptions())
        config, meta_graph = integer_field(_THREADS, threads or 0), library.TF_NewBuffer()
        self._session = None
        try:
            _call(library, "TF_SetConfig", options, config, c_size_t(len(config)))
            given = options, None, str(folder).encode(), (c_char_p * 1)(b"serve"), 1, graph, meta_graph
            self._session = c_void_p(_call(library, "TF_LoadSessionFromSavedModel", *given))
            content = ctypes.string_at(meta_graph.contents.data, meta_graph.contents.length)
        finally:
            library.TF_DeleteSessionOptions(options)
            library.TF_DeleteBuffer(meta_graph)
            weakref.finalize(self, _close, library, self._session, graph)
        self.signatures: dict[str, Signature] = {}
        self._tensors: dict[str, tuple[dict[str, _Output], dict[str, _Output]]] = {}
        for name, signature in _map(content, _SIGNATURES).items():
            if name != _INIT_OP:
                infos = _map(signature, _INPUTS), _map(signature, _OUTPUTS)
                self.signatures[name] = Signature(*({key: _spec(info) for key, info in by.items()} for by in infos))
                feeds, fetches = ({key: self._output(graph, info) for key, info in by.items()} for by in infos)
                self._tensors[name] = feeds, fetches

    def run(self, signature: str, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Calls a signature, see `Engine.run`."""
        specs, (feeds, fetches) = self.signatures[signature].inputs, self._tensors[signature]
        if set(inputs) != set(feeds):
            raise ValueError(f"{signature} takes {', '.join(feeds) or 'nothing'}. Received: {', '.join(inputs)}.")
        library, results = self._library, (c_void_p * len(fetches))()
        with contextlib.ExitStack() as at_end:
            at_end.callback(_delete, library, results)
            tensors = [at_end.enter_context(_tensor(library, inputs[name], specs[name].dtype)) for name in feeds]
            given = (_Output * len(feeds))(*feeds.values()), (c_void_p * len(feeds))(*tensors), len(feeds)
            wanted = (_Output * len(fetches))(*fetches.values()), results, len(fetches)
            try:
                _call(library, "TF_SessionRun", self._session, None, *given, *wanted, None, 0, None)
            except _StatusError as error:
                if error.code == _INVALID_ARGUMENT:
                    raise ValueError(reason_of_refusal(str(error))) from None
                raise
            return {name: _array(library, c_void_p(tensor)) for name, tensor in zip(fetches, results)}

    def _output(self, graph: c_void_p, info: bytes) -> _Output:
        operation, _, index = last_payload(info, _NAME).decode().partition(":")
        found = self._library.TF_GraphOperationByName(graph, operation.encode())
        if found is None:
            raise ValueError(f"its graph has no operation {operation}")
        return _Output(found, int(index))


def load(folder: pathlib.Path, threads: int | None = None, precision: str = "auto") -> TensorFlowEngine:
    """Loads a SavedModel.

    Args:
        folder: the folder of a version.
        threads: number of threads of an operation. None: one per core. That of the first model of a process counts.
        precision: must be `"auto"`: that of the export.

    Raises:
        ValueError: the SavedModel is damaged, or was written by something that this TensorFlow cannot read; or another
            precision is given.
    """
    if precision != "auto":
        raise ValueError(
            f"{folder} is a SavedModel, whose precision was chosen when it was exported. Received: "
            f"precision={precision!r}; leave it out."
        )
    try:
        return TensorFlowEngine(folder, threads)
    except (ValueError, _StatusError) as error:
        raise ValueError(f"{folder} could not be loaded as a SavedModel ({error}); export the model again.") from None


def _close(library: ctypes.CDLL, session: c_void_p | None, graph: c_void_p) -> None:
    if session is not None:
        with contextlib.suppress(_StatusError):
            _call(library, "TF_CloseSession", session)
            _call(library, "TF_DeleteSession", session)
    library.TF_DeleteGraph(graph)


def _delete(library: ctypes.CDLL, tensors: ctypes.Array) -> None:
    for tensor in filter(None, tensors):
        library.TF_DeleteTensor(c_void_p(tensor))


@contextlib.contextmanager
def _tensor(library: ctypes.CDLL, array: np.ndarray, dtype: str) -> Iterator[c_void_p]:
    """A tensor with the values of an array."""
    is_text = dtype == _DTYPES[_STRING]
    array = np.ascontiguousarray(array, object if is_text else dtype)
    kind = next(code for code, name in _DTYPES.items() if name == dtype)
    size, shape = array.size * _STRING_SIZE if is_text else array.nbytes, (c_int64 * array.ndim)(*array.shape)
    tensor = c_void_p(library.TF_AllocateTensor(kind, shape, array.ndim, c_size_t(size)))
    start = library.TF_TensorData(tensor)
    strings = [c_void_p(start + index * _STRING_SIZE) for index in range(array.size)] if is_text else []
    for string, text in zip(strings, array.flat):
        library.TF_StringInit(string)
        library.TF_StringCopy(string, text, c_size_t(len(text)))
    if not is_text and size:
        ctypes.memmove(start, array.ctypes.data, size)
    try:
        yield tensor
    finally:
        for string in strings:
            library.TF_StringDealloc(string)
        library.TF_DeleteTensor(tensor)


def _array(library: ctypes.CDLL, tensor: c_void_p) -> np.ndarray:
    """The values of a tensor; strings as an object array of bytes."""
    shape = [library.TF_Dim(tensor, axis) for axis in range(library.TF_NumDims(tensor))]
    kind, start, size = library.TF_TensorType(tensor), library.TF_TensorData(tensor), int(np.prod(shape))
    if kind != _STRING:
        dtype = np.dtype(_DTYPES[kind])
        content = ctypes.string_at(start, size * dtype.itemsize) if size else b""
        return np.frombuffer(content, dtype).reshape(shape).copy()
    strings = (c_void_p(start + index * _STRING_SIZE) for index in range(size))
    texts = np.empty(size, object)
    for index, string in enumerate(strings):
        texts[index] = ctypes.string_at(library.TF_StringGetDataPointer(string), library.TF_StringGetSize(string))
    return texts.reshape(shape)


def _map(message: bytes, field: int) -> dict[str, bytes]:
    """A map of a message, by its keys."""
    entries = (found.payload for found in fields(message) if found.number == field)
    return {last_payload(entry, _KEY).decode(): last_payload(entry, _VALUE) for entry in entries}


def _spec(info: bytes) -> TensorSpec:
    kind, dims = read_integer(info, _DTYPE), last_payload(info, _SHAPE)
    sizes = [read_integer(dim.payload, _SIZE) for dim in fields(dims) if dim.number == _DIM]
    if kind not in _DTYPES or not sizes:
        raise ValueError(f"it has the tensor {last_payload(info, _NAME).decode()}, which this server does not know")
    return TensorSpec(_DTYPES[kind], tuple(None if size >= 1 << 63 else size for size in sizes))  # -1 is any size
