"""Reads `pytorch_model.bin` without PyTorch and without running code in it.

Unpickling calls what a file names. Here it can name only the few functions that make a dictionary of tensors, and use
only the opcodes for them. Both containers are read: zip archives, and the legacy format of PyTorch before 1.6, a
sequence of pickles followed by the tensors' bytes.

References:
    `torch/serialization.py` of PyTorch for the containers; `pickletools` of Python for the opcodes.
"""

import collections
import io
import math
import pathlib
import pickle
import pickletools
import warnings
import zipfile
from collections.abc import Mapping
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from albert_tf.checkpoints.formats.zip_archive import reject_compressed

_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_STORAGE_TYPES = {
    "FloatStorage": np.dtype("<f4"),
    "DoubleStorage": np.dtype("<f8"),
    "HalfStorage": np.dtype("<f2"),
    "BFloat16Storage": np.dtype(ml_dtypes.bfloat16),
    "LongStorage": np.dtype("<i8"),
}
# What a dictionary of tensors needs; some of the others would need any amount of memory.
_OPCODES = {
    *("PROTO", "STOP", "MARK", "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "BINUNICODE"),
    *("SHORT_BINUNICODE", "GLOBAL", "REDUCE", "BUILD", "BINPERSID", "BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET"),
    *("EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_LIST", "APPEND", "APPENDS"),
    *("EMPTY_DICT", "SETITEM", "SETITEMS"),
}
# Of opcodes that make no sense; RuntimeError also where an archive claims to be encrypted.
_DAMAGE = (
    *(pickle.UnpicklingError, zipfile.BadZipFile, ValueError, LookupError, TypeError, AttributeError, OverflowError),
    *(OSError, EOFError, RuntimeError),
)


class _Storage(NamedTuple):
    """An array of bytes that tensors are views of; size counts elements."""

    key: str
    dtype: np.dtype
    size: int


class _Tensor(NamedTuple):
    """A view of a storage; offset and strides count elements."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def read_torch(path: pathlib.Path) -> dict[str, np.ndarray]:
    """Reads a file that holds a dictionary of tensors, as arrays of the same types.

    Raises:
        ValueError: the file is damaged, or contains anything but tensors.
    """
    try:
        # pickletools warns of invalid escape sequences in damaged strings.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            if zipfile.is_zipfile(path):
                with zipfile.ZipFile(path) as archive:
                    return _read_zip(archive)
            return _read_stream(io.BytesIO(path.read_bytes()))
    except _UnsafePickleError as error:
        raise ValueError(
            f"{path} contains {error}, but only tensors are read from PyTorch files; it may run code when PyTorch "
            "loads it, so get the weights as safetensors."
        ) from None
    except _DAMAGE as error:
        raise ValueError(
            f"{path} is not a valid PyTorch file ({error or type(error).__name__}); download it again."
        ) from None


class _UnsafePickleError(Exception):
    """The pickle contains something other than tensors."""


class _Unpickler(pickle.Unpickler):
    """Knows the names in a dictionary of tensors."""

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" and name.endswith("Storage"):
            return name
        match (module, name):
            case ("collections", "OrderedDict"):
                return collections.OrderedDict
            # New functions each time, as a pickle can set attributes of what it finds.
            case ("torch._utils", "_rebuild_tensor_v2"):
                return lambda storage, offset, shape, strides, *_: _Tensor(storage, offset, shape, strides)
            case ("torch._utils", "_rebuild_parameter"):
                return lambda tensor, *_: tensor
        raise _UnsafePickleError(f"a call of {module}.{name}")

    def persistent_load(self, pid: Any) -> _Storage:
        _, kind, key, _, count, *view = pid
        if kind not in _STORAGE_TYPES or any(part is not None for part in view):
            raise _UnsafePickleError(f"a storage of kind torch.{kind}")
        if not isinstance(key, str) or not isinstance(count, int) or count < 0:
            raise ValueError("a storage has no name or size")
        return _Storage(key, _STORAGE_TYPES[kind], count)


def _load(file: io.BytesIO) -> Any:
    """Unpickles the next value, after a look at its opcodes."""
    start = file.tell()
    for number, (opcode, argument, _) in enumerate(pickletools.genops(file)):
        if opcode.name not in _OPCODES:
            raise _UnsafePickleError(f"the opcode {opcode.name}")
        # The index is the number of values stored before; a larger one would need memory up to it.
        if opcode.name == "LONG_BINPUT" and (argument or 0) > number:
            raise ValueError("it refers to values that it does not have")
    file.seek(start)
    return _Unpickler(file).load()


def _read_zip(archive: zipfile.ZipFile) -> dict[str, np.ndarray]:
    reject_compressed(archive, archive.namelist())
    pickles = [name for name in archive.namelist() if name.endswith("/data.pkl")]
    if len(pickles) != 1:
        raise ValueError("it has no data.pkl")
    folder = pickles[0].removesuffix("data.pkl")
    if f"{folder}byteorder" in archive.namelist() and archive.read(f"{folder}byteorder") != b"little":
        raise ValueError("its numbers are big-endian")
    tensors = _check_tensors(_load(io.BytesIO(archive.read(pickles[0]))))
    keys = {tensor.storage.key for tensor in tensors.values()}
    return _arrays(tensors, {key: archive.read(f"{folder}data/{key}") for key in keys})


def _read_stream(file: io.BytesIO) -> dict[str, np.ndarray]:
    if _load(file) != _LEGACY_MAGIC:
        raise ValueError("its magic number is wrong")
    _load(file)  # protocol version
    system = _load(file)
    if not isinstance(system, dict) or system.get("little_endian") is not True:
        raise ValueError("its numbers are not little-endian")
    tensors = _check_tensors(_load(file))
    storages = {tensor.storage.key: tensor.storage for tensor in tensors.values()}
    content = {}
    for key in _load(file):
        count = int.from_bytes(file.read(8), "little")
        content[key] = file.read(count * storages[key].dtype.itemsize)
    return _arrays(tensors, content)


def _check_tensors(value: Any) -> dict[str, _Tensor]:
    if not isinstance(value, dict):
        raise _UnsafePickleError("something other than a dictionary")
    for name, tensor in value.items():
        if not isinstance(name, str):
            raise _UnsafePickleError("a name that is not a string")
        if not isinstance(tensor, _Tensor):
            raise _UnsafePickleError(f"something other than a tensor under {name!r}")
        numbers = (tensor.offset, *tensor.shape, *tensor.strides)
        if not isinstance(tensor.storage, _Storage) or any(not isinstance(one, int) or one < 0 for one in numbers):
            raise _UnsafePickleError("a tensor without a storage")
    return value


def _arrays(tensors: Mapping[str, _Tensor], content: Mapping[str, bytes]) -> dict[str, np.ndarray]:
    storages = {tensor.storage.key: tensor.storage.size for tensor in tensors.values()}
    # Tied weights share a storage; the limit bounds the memory that a damaged file can request.
    if sum(math.prod(tensor.shape) for tensor in tensors.values()) > 2 * sum(storages.values()):
        raise ValueError("its tensors are larger than its storages")
    return {name: _array(name, tensor, content[tensor.storage.key]) for name, tensor in tensors.items()}


def _array(name: str, tensor: _Tensor, content: bytes) -> np.ndarray:
    storage = tensor.storage
    if len(content) != storage.size * storage.dtype.itemsize:
        raise ValueError(f"the values of {name} are truncated")
    last = tensor.offset + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.strides, strict=True))
    if math.prod(tensor.shape) > storage.size or not tensor.offset <= last < storage.size:
        raise ValueError(f"{name} lies outside its storage")
    values = np.frombuffer(content, storage.dtype)[tensor.offset :]
    strides = [stride * values.itemsize for stride in tensor.strides]
    return np.ascontiguousarray(np.lib.stride_tricks.as_strided(values, tensor.shape, strides, writeable=False))
