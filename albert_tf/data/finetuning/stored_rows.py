"""Texts and other rows on disk, so that any number of them needs little memory."""

import array
import contextlib
import functools
import json
import mmap
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

from albert_tf.files.atomic import could_not_write

_Row = TypeVar("_Row")
_ENCODER = json.JSONEncoder(ensure_ascii=False, default=lambda row: list(vars(row).values()))


class StoredRows(Sequence[_Row], Generic[_Row]):
    """Rows in a temporary file, which is removed with the object.

    The file is in the system's folder for temporary files, which the environment variable TMPDIR sets.

    Args:
        rows: the first rows: strings, or objects of one dataclass whose fields are strings, integers, None and tuples
            of these; they are stored as JSON.

    Example:

    >>> rows = StoredRows(["one", "two"])
    >>> rows.append("three")
    >>> len(rows), rows[-1], rows[:2]
    (3, 'three', ['one', 'two'])
    """

    def __init__(self, rows: Iterable[_Row] = ()):
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (it is closed when it is mapped)
        self._edges = array.array("q", [0])
        weakref.finalize(self, _close, self._file)  # if no row is ever read, as after an error
        for row in rows:
            self.append(row)

    def append(self, row: _Row) -> None:
        """Adds a row at the end, before any is read; raises OSError if the disk is full."""
        self._kind = type(row)
        content = _ENCODER.encode(row).encode("utf-8", "surrogatepass")
        with full_disk_named():
            self._file.write(content)
        self._edges.append(self._edges[-1] + len(content))

    @functools.cached_property
    def _content(self) -> Any:
        """The mapped file, after which no row can be added."""
        with full_disk_named():
            self._file.flush()
        with self._file:
            return mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)

    def __len__(self) -> int:
        return len(self._edges) - 1

    @overload
    def __getitem__(self, index: int) -> _Row: ...

    @overload
    def __getitem__(self, index: slice) -> list[_Row]: ...

    def __getitem__(self, index: int | slice) -> _Row | list[_Row]:
        if isinstance(index, slice):
            return [self[number] for number in range(len(self))[index]]
        number = range(len(self))[index]
        row = json.loads(self._content[self._edges[number] : self._edges[number + 1]])
        return self._kind(*_tuples(row)) if isinstance(row, list) else row


def _tuples(value: Any) -> Any:
    """A value with tuples for its lists."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


@contextlib.contextmanager
def full_disk_named() -> Iterator[None]:
    """Turns errors in writing temporary files into an OSError that names their folder."""
    try:
        yield
    except OSError as error:
        raise could_not_write(Path(tempfile.gettempdir()), error) from None


def _close(file: Any) -> None:
    with contextlib.suppress(OSError):  # the disk is full
        file.close()
