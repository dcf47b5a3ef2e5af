"""Arrays that are made part by part; those of many rows are on disk, so that they need little memory."""

import contextlib
import itertools
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from albert_tf.data.finetuning.stored_rows import full_disk_named

Arrays = Mapping[str, np.ndarray]

_IN_MEMORY = 1 << 24  # bytes


def gather(parts: Iterable[Arrays]) -> dict[str, np.ndarray]:
    """The arrays of all parts by name, one after the other.

    More than 16 MiB are mapped from temporary files (see `StoredRows`), which are removed with the arrays.

    Args:
        parts: at least one dict of arrays with one axis.

    Raises:
        OSError: the disk is full.
    """
    parts, first, size = iter(parts), [], 0
    for part in parts:
        first.append(part)
        size += sum(array.nbytes for array in part.values())
        if size > _IN_MEMORY:
            break
    else:
        return {name: np.concatenate([part[name] for part in first]) for name in first[0]}
    types = {name: array.dtype for name, array in first[0].items()}
    with contextlib.ExitStack() as stack, full_disk_named():
        files = {name: stack.enter_context(tempfile.TemporaryFile()) for name in types}
        for part in itertools.chain(first, parts):
            for name, file in files.items():
                file.write(part[name].tobytes())
        return {
            name: np.asarray(np.memmap(file, types[name], "r")) if file.tell() else np.zeros(0, types[name])
            for name, file in files.items()
        }


@dataclass(frozen=True)
class Ragged:
    """N arrays of different lengths, which are parts of one.

    Attributes:
        values: the whole, [T, ...].
        starts: where each begins, int64 [N].
        lengths: of each, int [N].

    Example:

    >>> Ragged.of(np.arange(7), np.array([2, 0, 3, 2]))[2].tolist()
    [2, 3, 4]
    """

    values: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, lengths: np.ndarray) -> "Ragged":
        """From the lengths, int [N], of arrays that follow each other."""
        return cls(values, np.cumsum(lengths, dtype=np.int64) - lengths, lengths)

    def __len__(self) -> int:
        return len(self.starts)

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: int) -> np.ndarray:
        start = int(self.starts[index])
        return self.values[start : start + int(self.lengths[index])]
