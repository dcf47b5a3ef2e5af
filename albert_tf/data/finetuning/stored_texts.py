"""Texts and their ids on disk, so that any number of rows needs little memory."""

import array
import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, overload

import numpy as np

from albert_tf.atomic_files import could_not_write, temporary_folder
from albert_tf.data.finetuning.encoded import EncodedTexts, encode_texts, encoded_parts

if TYPE_CHECKING:
    from albert_tf.tokenization import AlbertTokenizer

# Files of numbers, in the order of `encoded_parts`.
_FILES = {"ids": np.int32, "token_types": np.int8, "lengths": np.int32}


class StoredTexts(Sequence[str]):
    """Texts in a temporary file, which is removed with the object; each takes 8 bytes of memory.

    The file is in the system's folder for temporary files, which the environment variable TMPDIR sets. Threads must not
    read at the same time.

    Args:
        texts: the first texts.

    Example:

    >>> texts = StoredTexts(["one", "two"])
    >>> texts.append("three")
    >>> len(texts), texts[-1], texts[:2]
    (3, 'three', ['one', 'two'])
    """

    def __init__(self, texts: Iterable[str] = ()):
        # Without a buffer, a full disk is an error of `append`.
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 (it is closed with the object)
        self._ends = array.array("q", [0])
        weakref.finalize(self, self._file.close)
        for text in texts:
            self.append(text)

    def append(self, text: str) -> None:
        """Adds a text at the end; raises OSError if the disk is full."""
        content = text.encode("utf-8", "surrogatepass")
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
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        rows = range(len(self))[index]
        return self._read(rows) if isinstance(rows, int) else [self._read(row) for row in rows]

    def _read(self, row: int) -> str:
        self._file.seek(self._ends[row])
        return self._file.read(self._ends[row + 1] - self._ends[row]).decode("utf-8", "surrogatepass")

    def digest(self) -> str:
        """A hash of all texts."""
        self._file.seek(0)
        content = hashlib.file_digest(self._file, "sha256")
        content.update(self._ends.tobytes())
        return content.hexdigest()


def encode_on_disk(
    tokenizer: "AlbertTokenizer",
    texts: StoredTexts,
    pairs: StoredTexts | None,
    max_length: int,
    folder: Path | None,
) -> EncodedTexts:
    """As `encode_texts`, but keeps the ids in files below `folder`, or in memory if it is None.

    Texts are tokenized once: the files are read again where texts, vocabulary and `max_length` are the same.

    Raises:
        OSError: the disk is full.
    """
    if folder is None:
        return encode_texts(tokenizer, texts, pairs, max_length)
    key = [texts.digest(), None if pairs is None else pairs.digest(), tokenizer.vocab_hash, max_length]
    path = folder / hashlib.sha256(json.dumps(key).encode()).hexdigest()
    if _read(path, len(texts)) is None:
        shutil.rmtree(path, ignore_errors=True)  # it is incomplete
        _write(path, encoded_parts(tokenizer, texts, pairs, max_length))
    stored = _read(path, len(texts))
    if stored is None:
        raise OSError(f"{path} is incomplete; free space on its disk.")
    ids, types, lengths = stored
    offsets = np.append(0, np.cumsum(lengths, dtype=np.int64))
    return EncodedTexts(ids, types, offsets, max_length, tokenizer.pad_token_id)


def _write(path: Path, parts: Iterable[tuple[np.ndarray, ...]]) -> None:
    """Writes the files to a new folder."""
    with temporary_folder(path) as folder:
        try:
            with contextlib.ExitStack() as opened:
                files = [opened.enter_context((folder / name).open("wb")) for name in _FILES]
                for arrays in parts:
                    for file, numbers in zip(files, arrays):
                        file.write(numbers.tobytes())
                for file in files:
                    file.flush()
                    os.fsync(file.fileno())
        except OSError as error:
            raise could_not_write(path, error) from None
        try:
            folder.rename(path)
        except OSError as error:
            if not path.is_dir():  # else another worker has just written it
                raise could_not_write(path, error) from None


def _read(path: Path, num_texts: int) -> list[np.ndarray] | None:
    """Memory-maps the files; None if they are missing or incomplete."""
    try:
        stored = [np.asarray(np.memmap(path / name, dtype, "r")) for name, dtype in _FILES.items()]
    except (OSError, ValueError):  # missing, empty or cut within a number
        return None
    total = int(stored[2].sum())
    return stored if [len(numbers) for numbers in stored] == [total, total, num_texts] else None
