"""Reads `pytorch_model.bin` without PyTorch and without unpickling.

Such a file is a pickle, a program, and unpickling would run whatever it says. Here its instructions are read one by
one: those that a dictionary of tensors needs are followed, and any other is refused. Both containers are known: the
zip archive, and the stream of pickles with the tensors' bytes behind it that releases before 1.6 wrote.

References:
    `torch/serialization.py` of PyTorch for the containers; `pickletools` of Python for the instructions.
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
_NUMBERS_AND_TEXT = {
    *("BININT", "BININT1", "BININT2", "LONG1", "BINUNICODE", "SHORT_BINUNICODE", "GLOBAL"),
}
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_MARK = object()


@dataclasses.dataclass(frozen=True)
class _Storage:
    """Bytes that tensors are cut from."""

    key: str
    dtype: np.dtype
    count: int


@dataclasses.dataclass(frozen=True)
class _Tensor:
    """Where a tensor lies in its storage, counted in elements."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def read_torch(path: pathlib.Path) -> dict[str, np.ndarray]:
    """Returns the tensors of a file that holds a dictionary of them, and nothing else.

    Args:
        path: the file.

    Returns:
        Array by name, in the type that the file has.

    Raises:
        ValueError: where the file is damaged, or holds anything but tensors.
    """
    try:
        # pickletools warns of escapes in damaged text, as if it were source code.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            if zipfile.is_zipfile(path):
                with zipfile.ZipFile(path) as archive:
                    return _read_zip(archive)
            return _read_stream(io.BytesIO(path.read_bytes()))
    except _RefusedError as error:
        raise ValueError(
            f"A PyTorch file must hold tensors and nothing else. Received: {path} with {error}; it may run code when "
            "PyTorch opens it: get the weights as safetensors."
        ) from None
    except (*_DAMAGE, zipfile.BadZipFile) as error:
        raise ValueError(
            f"The weights must be a whole PyTorch file. Received: {path} ({error or type(error).__name__}); download "
            "it again."
        ) from None


# What following instructions that make no sense can come to; RuntimeError where an archive says it is encrypted.
_DAMAGE = (ValueError, LookupError, TypeError, AttributeError, OverflowError, OSError, EOFError, RuntimeError)


class _RefusedError(Exception):
    """The file asks for something other than tensors."""


def _read_zip(archive: zipfile.ZipFile) -> dict[str, np.ndarray]:
    reject_compressed(archive, archive.namelist())
    pickles = [name for name in archive.namelist() if name.endswith("/data.pkl")]
    if len(pickles) != 1:
        raise ValueError("no data.pkl in it")
    folder = pickles[0].removesuffix("data.pkl")
    if f"{folder}byteorder" in archive.namelist() and archive.read(f"{folder}byteorder") != b"little":
        raise ValueError("its numbers are big-endian")
    tensors = _tensors_of(_follow(io.BytesIO(archive.read(pickles[0]))))
    keys = {tensor.storage.key for tensor in tensors.values()}
    return _arrays(tensors, {key: archive.read(f"{folder}data/{key}") for key in keys})


def _read_stream(file: IO[bytes]) -> dict[str, np.ndarray]:
    if _follow(file) != _LEGACY_MAGIC:
        raise ValueError("it does not begin as one")
    _follow(file)  # the version of the protocol
    system = _follow(file)
    if not isinstance(system, dict) or system.get("little_endian") is not True:
        raise ValueError("its numbers are not little-endian")
    tensors = _tensors_of(_follow(file))
    storages = {tensor.storage.key: tensor.storage for tensor in tensors.values()}
    content = {}
    for key in map(_text, _follow(file)):
        count = int.from_bytes(file.read(8), "little")
        content[key] = file.read(count * storages[key].dtype.itemsize)
    return _arrays(tensors, content)


def _tensors_of(value: Any) -> dict[str, _Tensor]:
    if not isinstance(value, dict):
        raise _RefusedError("something other than a dictionary")
    for name, tensor in value.items():
        if not isinstance(tensor, _Tensor):
            raise _RefusedError(f"something other than a tensor under {name!r}")
    return value


def _arrays(tensors: Mapping[str, _Tensor], content: Mapping[str, bytes]) -> dict[str, np.ndarray]:
    storages = {tensor.storage.key: tensor.storage.count for tensor in tensors.values()}
    # Tied weights share a storage, so that more than one tensor may be cut from it; but not any number.
    if sum(math.prod(tensor.shape) for tensor in tensors.values()) > 2 * sum(storages.values()):
        raise ValueError("its tensors are larger than its storages")
    return {name: _cut(name, tensor, content[tensor.storage.key]) for name, tensor in tensors.items()}


def _cut(name: str, tensor: _Tensor, content: bytes) -> np.ndarray:
    storage = tensor.storage
    if len(content) != storage.count * storage.dtype.itemsize:
        raise ValueError(f"the numbers of {name} are not whole")
    last = tensor.offset + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.strides, strict=True))
    if math.prod(tensor.shape) > storage.count or not tensor.offset <= last < storage.count:
        raise ValueError(f"{name} lies outside its storage")
    numbers = np.frombuffer(content, storage.dtype)[tensor.offset :]
    strides = [stride * numbers.itemsize for stride in tensor.strides]
    return np.ascontiguousarray(np.lib.stride_tricks.as_strided(numbers, tensor.shape, strides, writeable=False))


def _follow(file: IO[bytes]) -> Any:
    """Follows the instructions of one pickle and returns what it describes."""
    stack: list[Any] = []
    memory: dict[Any, Any] = {}
    instructions: Iterable[tuple[Any, Any, int | None]] = pickletools.genops(file)
    for code, argument, _ in instructions:
        name = code.name
        if name in _NUMBERS_AND_TEXT:
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in ("BINPUT", "LONG_BINPUT"):
            memory[argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memory[argument])
        elif name in ("EMPTY_DICT", "EMPTY_LIST"):
            stack.append({} if name == "EMPTY_DICT" else [])
        elif name == "MARK":
            stack.append(_MARK)
        elif name in _STEPS:
            _STEPS[name](stack)
        elif name in _TUPLES:
            items = tuple(stack[-_TUPLES[name] :])
            stack[-len(items) :] = [items]
        elif name not in ("PROTO", "STOP"):
            raise _RefusedError(f"the instruction {name}")
    return stack.pop()


def _since_mark(stack: list[Any]) -> list[Any]:
    items = []
    while (item := stack.pop()) is not _MARK:
        items.append(item)
    return items[::-1]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _RefusedError("a name that is no text")
    return value


def _make_tuple(stack: list[Any]) -> None:
    items = tuple(_since_mark(stack))
    stack.append(items)


def _set_item(stack: list[Any]) -> None:
    value, key = stack.pop(), stack.pop()
    stack[-1][_text(key)] = value


def _set_items(stack: list[Any]) -> None:
    items = _since_mark(stack)
    stack[-1].update(zip(map(_text, items[::2]), items[1::2], strict=True))


def _append(stack: list[Any]) -> None:
    item = stack.pop()
    stack[-1].append(item)


def _append_items(stack: list[Any]) -> None:
    items = _since_mark(stack)
    stack[-1].extend(items)


def _set_state(stack: list[Any]) -> None:
    # PyTorch notes versions of its modules on the dictionary; nothing here needs them.
    stack.pop()
    if not isinstance(stack[-1], dict):
        raise _RefusedError("an object that has a state")


def _call(stack: list[Any]) -> None:
    arguments, function = stack.pop(), _text(stack.pop())
    if function == "collections OrderedDict" and arguments == ():
        stack.append({})
    elif function == "torch._utils _rebuild_tensor_v2":
        storage, offset, shape, strides = arguments[:4]
        numbers = (offset, *shape, *strides)
        if not isinstance(storage, _Storage) or not all(isinstance(number, int) and number >= 0 for number in numbers):
            raise _RefusedError("a tensor without a storage")
        stack.append(_Tensor(storage, offset, shape, strides))
    elif function == "torch._utils _rebuild_parameter" and isinstance(arguments[0], _Tensor):
        stack.append(arguments[0])
    else:
        raise _RefusedError(f"a call of {function.replace(' ', '.')}")


def _open_storage(stack: list[Any]) -> None:
    _, kind, key, _, count, *view = stack.pop()
    if _text(kind) not in _STORAGE_TYPES or any(part is not None for part in view):
        raise _RefusedError(f"a storage of kind {kind.replace(' ', '.')}")
    if not isinstance(count, int) or count < 0:
        raise ValueError("a storage has no size")
    stack.append(_Storage(_text(key), _STORAGE_TYPES[kind], count))


_STEPS: dict[str, Callable[[list[Any]], None]] = {
    "TUPLE": _make_tuple,
    "SETITEM": _set_item,
    "SETITEMS": _set_items,
    "APPEND": _append,
    "APPENDS": _append_items,
    "BUILD": _set_state,
    "REDUCE": _call,
    "BINPERSID": _open_storage,
}
