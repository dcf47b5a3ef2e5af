"""Finding text files, plain or gzip-compressed, and reading them line by line."""

import glob
import gzip
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_ENDINGS = ("*.txt", "*.txt.gz")


@dataclass(frozen=True)
class Line:
    """A line without surrounding white space, and the bytes of its file up to its end, as far as is known."""

    text: str
    end: int


def find_files(inputs: Iterable[str | Path]) -> list[Path]:
    """Finds the text files that `inputs` name.

    Args:
        inputs: files, folders (every `*.txt` and `*.txt.gz` below them, sorted) or patterns such as `corpus/*.txt`
            (sorted).

    Returns:
        The files in the order of `inputs`, each once.

    Raises:
        ValueError: one of `inputs` leads to no file.
    """
    found: dict[Path, None] = {}
    for name in inputs:
        path = Path(name)
        if path.is_dir():
            files = sorted(match for ending in _ENDINGS for match in path.rglob(ending) if match.is_file())
        elif path.is_file():
            files = [path]
        else:
            files = sorted(Path(match) for match in glob.glob(str(name), recursive=True) if Path(match).is_file())
        if not files:
            raise ValueError(
                f"Every input must be a file, a folder with .txt or .txt.gz files or a pattern that matches files. "
                f"Received: {str(name)!r}. Correct the path."
            )
        found.update(dict.fromkeys(files))
    return list(found)


def read_lines(path: Path) -> Iterator[Line]:
    """Yields the lines of a UTF-8 file, unpacked where its name ends in .gz; a byte-order mark at its start is dropped.

    Raises:
        ValueError: the file is not UTF-8, and the message names the file and the byte; or it is no whole gzip file.
    """
    with path.open("rb") as packed:
        if path.suffix != ".gz":
            yield from _decoded(packed, path)
            return
        try:
            for line in _decoded(gzip.GzipFile(fileobj=packed), path):
                yield Line(line.text, packed.tell())
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(
                f"A file whose name ends in .gz must be a whole gzip file. Received: {path}, where {error}."
            ) from None


def _decoded(raw_lines: Iterable[bytes], path: Path) -> Iterator[Line]:
    offset = 0
    for raw in raw_lines:
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"Text files must be UTF-8. Received: {path} with byte 0x{raw[error.start]:02x} at byte offset "
                f"{offset + error.start}. Convert the file to UTF-8."
            ) from None
        text = text.removeprefix("\ufeff") if offset == 0 else text
        offset += len(raw)
        yield Line(text.strip(), offset)
