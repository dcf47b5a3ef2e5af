"""Texts and other rows on disk, so that any number of them needs little memory."""

import array
import dataclasses
import hashlib
import pickle
import tempfile
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

from albert_tf.files.atomic import could_not_write

Row = TypeVar("Row")


class StoredRows(Sequence[Row], Generic[Row]):
    """Rows in a temporary file, which is removed with the object; each takes 8 bytes of memory.

    The file is in the system's folder for temporary files, which the environment variable TMPDIR sets. Threads must not
    read at the same time.

    Args:
        rows: the first rows, objects that can be pickled.

    Example:

    >>> rows = StoredRows(["one", 2])
    >>> rows.append((3, "three"))
    >>> len(rows), rows[-1], rows[:2]
    (3, (3, 'three'), ['one', 2])
    """

    def __init__(self, rows: Iterable[Row] = ()):
        # Without a buffer, a full disk is an error of `append`.
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 (it is closed with the object)
        self._ends = array.array("q", [0])
        weakref.finalize(self, self._file.close)
        for row in rows:
            self.append(row)

    def append(self, row: Row) -> None:
        """Adds a row at the end; raises OSError if the disk is full."""
        content = self._encode(row)
        left = content
        try:
            self._file.seek(self._ends[-1])
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            self._file.truncate(self._ends[-1])
            raise could_not_write(Path(tempfile.gettempdir()), error) from None
        self._ends.append(self._ends[-1] + len(content))

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...

    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        places = range(len(self))[index]
        return self._read(places) if isinstance(places, int) else [self._read(place) for place in places]

    def _read(self, place: int) -> Row:
        self._file.seek(self._ends[place])
        return self._decode(self._file.read(self._ends[place + 1] - self._ends[place]))

    def _encode(self, row: Row) -> bytes:
        return pickle.dumps(row, pickle.HIGHEST_PROTOCOL)

    def _decode(self, content: bytes) -> Row:
        return pickle.loads(content)


class StoredTexts(StoredRows[str]):
    """StoredRows of texts, which take the space of a text file."""

    def digest(self) -> str:
        """A hash of all texts."""
        self._file.seek(0)
        content = hashlib.file_digest(self._file, "sha256")
        content.update(self._ends.tobytes())
        return content.hexdigest()

    def _encode(self, row: str) -> bytes:
        return row.encode("utf-8", "surrogatepass")

    def _decode(self, content: bytes) -> str:
        return content.decode("utf-8", "surrogatepass")


class RowsOfPassages(StoredRows[Row]):
    """StoredRows of dataclasses with a passage, `context`, which is stored once for rows that follow each other.

    Args:
        rows: as for StoredRows.
    """

    def __init__(self, rows: Iterable[Row] = ()):
        self._passages = StoredTexts()
        self._last: tuple[int, str] | None = None  # number and text of the passage that was last written or read
        super().__init__(rows)

    def _encode(self, row: Any) -> bytes:
        if self._last is None or self._last[1] != row.context:
            self._passages.append(row.context)
            self._last = len(self._passages) - 1, row.context
        return pickle.dumps((self._last[0], dataclasses.replace(row, context="")), pickle.HIGHEST_PROTOCOL)

    def _decode(self, content: bytes) -> Any:
        number, row = pickle.loads(content)
        if self._last is None or self._last[0] != number:
            self._last = number, self._passages[number]
        object.__setattr__(row, "context", self._last[1])  # `replace` takes ten times as long
        return row
