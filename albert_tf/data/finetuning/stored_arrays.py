"""Arrays that are made part by part, and kept on disk so that any number of rows needs little memory."""

import contextlib
import hashlib
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np

from albert_tf.data.finetuning.stored_rows import StoredTexts
from albert_tf.files.atomic import could_not_write, temporary_folder

Arrays = Mapping[str, np.ndarray]

_INDEX = "index.json"


def gather(
    parts: Iterable[Arrays], folder: Path | None, rows: Sequence[Iterable[Any]], settings: Sequence[Any]
) -> dict[str, np.ndarray]:
    """Concatenates the arrays of parts by name, in files below `folder`, or in memory if it is None.

    Arrays are made once: the files are read again where rows and settings are the same.

    Args:
        parts: what to concatenate, along the first axis; not iterated over if the files exist.
        folder: for the files.
        rows: what the arrays are made of: texts, or tuples of texts and numbers.
        settings: JSON values of everything else that changes the arrays.

    Raises:
        OSError: the disk is full.
    """
    if folder is None:
        found = list(parts)
        return {name: np.concatenate([part[name] for part in found]) for name in found[0]}
    key = [*map(_digest, rows), *settings]
    path = folder / hashlib.sha256(json.dumps(key).encode()).hexdigest()
    arrays = _read(path)
    if arrays is None:
        _write(path, parts)
        arrays = _read(path)
    if arrays is None:
        raise OSError(f"{path} could not be written; free space on its disk.")
    return arrays


def _digest(rows: Iterable[Any]) -> str:
    if isinstance(rows, StoredTexts):
        return rows.digest()
    content = hashlib.sha256()
    for row in rows:
        content.update(repr(row).encode("utf-8", "surrogatepass"))
    return content.hexdigest()


def _write(path: Path, parts: Iterable[Arrays]) -> None:
    """Writes a file for each array, and an index of data types and shapes, to a new folder."""
    with temporary_folder(path) as temporary:
        try:
            folder = temporary / "new"
            folder.mkdir()
            with contextlib.ExitStack() as opened:
                files, index = {}, {}
                for part in parts:
                    for name, numbers in part.items():
                        if name not in files:
                            files[name] = opened.enter_context((folder / name).open("wb"))
                            index[name] = [numbers.dtype.str, 0, *numbers.shape[1:]]
                        files[name].write(np.ascontiguousarray(numbers).data)
                        index[name][1] += len(numbers)
                files[_INDEX] = opened.enter_context((folder / _INDEX).open("wb"))
                files[_INDEX].write(json.dumps(index).encode())
                for file in files.values():
                    file.flush()
                    os.fsync(file.fileno())
        except OSError as error:
            raise could_not_write(path, error) from None
        with contextlib.suppress(OSError):
            folder.rename(path)
            return
        if _read(path) is None:  # it is damaged; otherwise another worker has just written it
            with contextlib.suppress(OSError):
                path.rename(temporary / "damaged")
                folder.rename(path)


def _read(path: Path) -> dict[str, np.ndarray] | None:
    """Memory-maps the files; None if they are missing or incomplete."""
    try:
        index = json.loads((path / _INDEX).read_bytes())
        return {name: _mapped(path / name, *layout) for name, layout in index.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def _mapped(file: Path, dtype: str, *shape: int) -> np.ndarray:
    if file.stat().st_size != np.dtype(dtype).itemsize * math.prod(shape):
        raise ValueError(f"{file} is incomplete.")
    # An empty file cannot be mapped.
    return np.asarray(np.memmap(file, dtype, "r", shape=shape)) if math.prod(shape) else np.empty(shape, dtype)


@dataclass(frozen=True)
class Ragged(Sequence[np.ndarray]):
    """N arrays of different lengths, which are parts of one.

    Attributes:
        values: all of them, concatenated.
        starts, ends: int64 [N]; array n is `values[starts[n] : ends[n]]`.

    Example:

    >>> Ragged.of(np.arange(5), np.array([2, 0, 3]))[2].tolist()
    [2, 3, 4]
    """

    values: np.ndarray
    starts: np.ndarray
    ends: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, lengths: np.ndarray) -> "Ragged":
        """From the lengths, int [N], of arrays that follow each other."""
        ends = np.cumsum(lengths, dtype=np.int64)
        return cls(values, ends - lengths, ends)

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, index: int) -> np.ndarray: ...

    @overload
    def __getitem__(self, index: slice) -> list[np.ndarray]: ...

    def __getitem__(self, index: int | slice) -> np.ndarray | list[np.ndarray]:
        places = range(len(self))[index]
        if isinstance(places, int):
            return self.values[self.starts[places] : self.ends[places]]
        return [self[place] for place in places]
