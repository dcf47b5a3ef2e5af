"""Arrays that are made part by part, and kept in a memory-mapped Arrow file so that many rows need little memory."""

import bisect
import contextlib
import functools
import hashlib
import itertools
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np

from albert_tf.files.atomic import could_not_write, temporary_folder

Arrays = Mapping[str, np.ndarray]

_FILE = "arrays.arrow"


def gather(
    parts: Iterable[Arrays], folder: Path | None, rows: Sequence[Iterable[Any]], settings: Sequence[Any]
) -> dict[str, list[np.ndarray]]:
    """The arrays of all parts by name, in a file below `folder`, or in memory if it is None.

    Arrays are made once: the file is read again where rows and settings are the same.

    Args:
        parts: dicts of arrays with one axis; not iterated over if the file exists.
        folder: for the file.
        rows: what the arrays are made of: texts, or tuples of texts and numbers.
        settings: JSON values of everything else that changes the arrays.

    Raises:
        OSError: the disk is full.
    """
    if folder is None:
        stored = list(parts)
        return {name: [part[name] for part in stored] for name in stored[0]}
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
    content = hashlib.sha256()
    for row in rows:
        content.update(repr(row).encode("utf-8", "surrogatepass"))
    return content.hexdigest()


def _write(path: Path, parts: Iterable[Arrays]) -> None:
    """Writes an Arrow file of one row for each part, whose columns are lists, to a new folder."""
    import pyarrow as pa

    with temporary_folder(path) as temporary:
        try:
            folder = temporary / "new"
            folder.mkdir()
            rows = (
                {name: pa.LargeListArray.from_arrays([0, len(array)], pa.array(array)) for name, array in part.items()}
                for part in parts
            )
            first = pa.record_batch(next(rows))
            with (folder / _FILE).open("wb") as file:
                with pa.ipc.new_file(file, first.schema) as writer:
                    writer.write(first)
                    for row in rows:
                        writer.write(pa.record_batch(row))
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


def _read(path: Path) -> dict[str, list[np.ndarray]] | None:
    """Memory-maps a file; None if it is missing or incomplete."""
    import pyarrow as pa

    try:
        reader = pa.ipc.open_file(pa.memory_map(str(path / _FILE)))
        batches = [reader.get_batch(number) for number in range(reader.num_record_batches)]
        return {name: [batch[name].flatten().to_numpy() for batch in batches] for name in reader.schema.names}
    except (OSError, pa.ArrowException):
        return None


@dataclass(frozen=True)
class Ragged(Sequence[np.ndarray]):
    """N arrays of different lengths.

    Attributes:
        parts: long arrays; each of the N is within one of them.
        starts: where each begins in the parts one after the other, int64 [N].
        lengths: of each, int [N].

    Example:

    >>> Ragged.of([np.arange(2), np.arange(5)], np.array([2, 0, 3, 2]))[2].tolist()
    [0, 1, 2]
    """

    parts: Sequence[np.ndarray]
    starts: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, parts: Sequence[np.ndarray], lengths: np.ndarray) -> "Ragged":
        """From the lengths, int [N], of arrays that follow each other."""
        return cls(parts, np.cumsum(lengths, dtype=np.int64) - lengths, lengths)

    @functools.cached_property
    def _edges(self) -> list[int]:
        """Where each part begins."""
        return [0, *itertools.accumulate(map(len, self.parts))][: len(self.parts)]

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, index: int) -> np.ndarray: ...

    @overload
    def __getitem__(self, index: slice) -> list[np.ndarray]: ...

    def __getitem__(self, index: int | slice) -> np.ndarray | list[np.ndarray]:
        if isinstance(index, slice):
            return [self[number] for number in range(len(self))[index]]
        start = int(self.starts[index])
        part = bisect.bisect_right(self._edges, start) - 1
        start -= self._edges[part]
        return self.parts[part][start : start + int(self.lengths[index])]
