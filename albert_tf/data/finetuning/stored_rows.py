"""Texts and other rows on disk, so that any number of them needs little memory."""

import contextlib
import functools
import mmap
import pickle
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

from albert_tf.files.atomic import could_not_write

_Row = TypeVar("_Row")

_ROWS_AT_ONCE, _BYTES_AT_ONCE = 256, 1 << 20


class StoredRows(Sequence[_Row], Generic[_Row]):
    """Rows in a temporary Arrow file, which is removed with the object.

    The file is in the system's folder for temporary files, which the environment variable TMPDIR sets.

    Args:
        rows: the first rows, objects that can be pickled.

    Example:

    >>> rows = StoredRows(["one", 2])
    >>> rows.append((3, "three"))
    >>> len(rows), rows[-1], rows[:2]
    (3, (3, 'three'), ['one', 2])
    """

    def __init__(self, rows: Iterable[_Row] = ()):
        import pyarrow as pa

        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (it is closed when it is mapped)
        self._writer = pa.ipc.new_stream(self._file, pa.schema([("row", pa.binary())]))
        self._unwritten: list[bytes] = []
        self._size = 0
        weakref.finalize(self, _close, self._file)  # if no row is ever read, as after an error
        for row in rows:
            self.append(row)

    def append(self, row: _Row) -> None:
        """Adds a row at the end, before any is read; raises OSError if the disk is full."""
        content = pickle.dumps(row, pickle.HIGHEST_PROTOCOL)
        self._unwritten.append(content)
        self._size += len(content)
        if len(self._unwritten) == _ROWS_AT_ONCE or self._size > _BYTES_AT_ONCE:
            self._write()

    def _write(self) -> None:
        import pyarrow as pa

        try:
            self._writer.write_batch(pa.record_batch({"row": pa.array(self._unwritten, pa.binary())}))
            self._file.flush()
        except OSError as error:
            raise could_not_write(Path(tempfile.gettempdir()), error) from None
        self._unwritten, self._size = [], 0

    @functools.cached_property
    def _rows(self) -> Any:
        """All rows, in the mapped file."""
        import pyarrow as pa

        self._write()
        del self._unwritten  # no row can be added
        with self._file:
            mapped = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        return pa.ipc.open_stream(pa.py_buffer(mapped)).read_all()["row"]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[_Row]:
        for start in range(0, len(self), _ROWS_AT_ONCE):
            yield from self[start : start + _ROWS_AT_ONCE]

    @overload
    def __getitem__(self, index: int) -> _Row: ...

    @overload
    def __getitem__(self, index: slice) -> list[_Row]: ...

    def __getitem__(self, index: int | slice) -> _Row | list[_Row]:
        if isinstance(index, slice):
            return [pickle.loads(content) for content in self._rows[index].to_pylist()]
        return pickle.loads(self._rows[index].as_py())


def _close(file: Any) -> None:
    with contextlib.suppress(OSError):  # the disk is full
        file.close()
