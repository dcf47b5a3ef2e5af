"""Reads `pytorch_model.bin` without PyTorch and without unpickling.

Unpickling can run arbitrary code. This reader interprets only the opcodes that a dictionary of tensors needs, and
rejects all others. It reads both containers: zip archives, and the legacy format of PyTorch before 1.6, a sequence of
pickles followed by the tensors' bytes.

References:
    `torch/serialization.py` of PyTorch for the containers; `pickletools` of Python for the opcodes.
"""

import dataclasses
import io
import math
import pathlib
import pickletools
import warnings
import zipfile
from collections.abc import Callable, Iterable, Mapping
from typing import IO, Any

import ml_dtypes
import numpy as np

from albert_tf.checkpoints.formats.zip_archive import reject_compressed

_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_STORAGE_TYPES = {
    "torch FloatStorage": np.dtype("<f4"),
    "torch DoubleStorage": np.dtype("<f8"),
    "torch HalfStorage": np.dtype("<f2"),
    "torch BFloat16Storage": np.dtype(ml_dtypes.bfloat16),
    "torch LongStorage": np.dtype("<i8"),
}
_LITERALS = {"BININT", "BININT1", "BININT2", "LONG1", "BINUNICODE", "SHORT_BINUNICODE", "GLOBAL"}
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_MARK = object()
# Errors of the interpreter if the opcodes make no sense; RuntimeError if the archive claims to be encrypted.
_DAMAGE = (ValueError, LookupError, TypeError, AttributeError, OverflowError, OSError, EOFError, RuntimeError)


@dataclasses.dataclass(frozen=True)
class _Storage:
    """An array of bytes that tensors are views of."""

    key: str
    dtype: np.dtype
    count: int


@dataclasses.dataclass(frozen=True)
class _Tensor:
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
    except (*_DAMAGE, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} is not a valid PyTorch file ({error or type(error).__name__}); download it again."
        ) from None


class _UnsafePickleError(Exception):
    """The pickle contains something other than tensors."""


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


def _read_stream(file: IO[bytes]) -> dict[str, np.ndarray]:
    if _load(file) != _LEGACY_MAGIC:
        raise ValueError("its magic number is wrong")
    _load(file)  # protocol version
    system = _load(file)
    if not isinstance(system, dict) or system.get("little_endian") is not True:
        raise ValueError("its numbers are not little-endian")
    tensors = _check_tensors(_load(file))
    storages = {tensor.storage.key: tensor.storage for tensor in tensors.values()}
    content = {}
    for key in map(_string, _load(file)):
        count = int.from_bytes(file.read(8), "little")
        content[key] = file.read(count * storages[key].dtype.itemsize)
    return _arrays(tensors, content)


def _check_tensors(value: Any) -> dict[str, _Tensor]:
    if not isinstance(value, dict):
        raise _UnsafePickleError("something other than a dictionary")
    for name, tensor in value.items():
        if not isinstance(tensor, _Tensor):
            raise _UnsafePickleError(f"something other than a tensor under {name!r}")
    return value


def _arrays(tensors: Mapping[str, _Tensor], content: Mapping[str, bytes]) -> dict[str, np.ndarray]:
    storages = {tensor.storage.key: tensor.storage.count for tensor in tensors.values()}
    # Tied weights share a storage; the limit bounds the memory that a damaged file can request.
    if sum(math.prod(tensor.shape) for tensor in tensors.values()) > 2 * sum(storages.values()):
        raise ValueError("its tensors are larger than its storages")
    return {name: _array(name, tensor, content[tensor.storage.key]) for name, tensor in tensors.items()}


def _array(name: str, tensor: _Tensor, content: bytes) -> np.ndarray:
    storage = tensor.storage
    if len(content) != storage.count * storage.dtype.itemsize:
        raise ValueError(f"the values of {name} are truncated")
    last = tensor.offset + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.strides, strict=True))
    if math.prod(tensor.shape) > storage.count or not tensor.offset <= last < storage.count:
        raise ValueError(f"{name} lies outside its storage")
    values = np.frombuffer(content, storage.dtype)[tensor.offset :]
    strides = [stride * values.itemsize for stride in tensor.strides]
    return np.ascontiguousarray(np.lib.stride_tricks.as_strided(values, tensor.shape, strides, writeable=False))


def _load(file: IO[bytes]) -> Any:
    """Interprets the opcodes of one pickle and returns its value."""
    stack: list[Any] = []
    memo: dict[Any, Any] = {}
    opcodes: Iterable[tuple[Any, Any, int | None]] = pickletools.genops(file)
    for opcode, argument, _ in opcodes:
        name = opcode.name
        if name in _LITERALS:
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif name in ("EMPTY_DICT", "EMPTY_LIST"):
            stack.append({} if name == "EMPTY_DICT" else [])
        elif name == "MARK":
            stack.append(_MARK)
        elif name in _HANDLERS:
            _HANDLERS[name](stack)
        elif name in _TUPLES:
            items = tuple(stack[-_TUPLES[name] :])
            stack[-len(items) :] = [items]
        elif name not in ("PROTO", "STOP"):
            raise _UnsafePickleError(f"the opcode {name}")
    return stack.pop()


def _pop_to_mark(stack: list[Any]) -> list[Any]:
    items = []
    while (item := stack.pop()) is not _MARK:
        items.append(item)
    return items[::-1]


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise _UnsafePickleError("a name that is not a string")
    return value


def _set_item(stack: list[Any]) -> None:
    value, key = stack.pop(), stack.pop()
    stack[-1][_string(key)] = value


def _set_items(stack: list[Any]) -> None:
    items = _pop_to_mark(stack)
    stack[-1].update(zip(map(_string, items[::2]), items[1::2], strict=True))


def _append_items(stack: list[Any]) -> None:
    items = _pop_to_mark(stack)
    stack[-1].extend(items)


def _set_state(stack: list[Any]) -> None:
    # PyTorch sets versions of its modules on the dictionary; they are not used.
    stack.pop()
    if not isinstance(stack[-1], dict):
        raise _UnsafePickleError("an object with a state")


def _call(stack: list[Any]) -> None:
    arguments, function = stack.pop(), _string(stack.pop())
    if function == "collections OrderedDict" and arguments == ():
        stack.append({})
    elif function == "torch._utils _rebuild_tensor_v2":
        storage, offset, shape, strides = arguments[:4]
        numbers = (offset, *shape, *strides)
        if not isinstance(storage, _Storage) or not all(isinstance(number, int) and number >= 0 for number in numbers):
            raise _UnsafePickleError("a tensor without a storage")
        stack.append(_Tensor(storage, offset, shape, strides))
    elif function == "torch._utils _rebuild_parameter" and isinstance(arguments[0], _Tensor):
        stack.append(arguments[0])
    else:
        raise _UnsafePickleError(f"a call of {function.replace(' ', '.')}")


def _open_storage(stack: list[Any]) -> None:
    _, kind, key, _, count, *view = stack.pop()
    if _string(kind) not in _STORAGE_TYPES or any(part is not None for part in view):
        raise _UnsafePickleError(f"a storage of kind {kind.replace(' ', '.')}")
    if not isinstance(count, int) or count < 0:
        raise ValueError("a storage has no size")
    stack.append(_Storage(_string(key), _STORAGE_TYPES[kind], count))


_HANDLERS: dict[str, Callable[[list[Any]], None]] = {
    "TUPLE": lambda stack: stack.append(tuple(_pop_to_mark(stack))),
    "SETITEM": _set_item,
    "SETITEMS": _set_items,
    "APPEND": lambda stack: stack[-2].append(stack.pop()),
    "APPENDS": _append_items,
    "BUILD": _set_state,
    "REDUCE": _call,
    "BINPERSID": _open_storage,
}
