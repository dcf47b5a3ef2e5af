"""Finding text files, plain or gzip-compressed, and reading them line by line in bounded memory."""

import glob
import gzip
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

MAX_LINE_BYTES = 16 * 2**20
# Text compresses to about a third, repetitive logs to a hundredth; a file made to fill a disk, to a thousandth.
MAX_EXPANSION = 500
_ENDINGS = ("*.txt", "*.txt.gz")


@dataclass(frozen=True)
class Line:
    """A line of a text file.

    Attributes:
        text: the line without surrounding white space.
        end: bytes of the file (compressed ones for .gz) read up to the end of the line.
    """

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
            if not files:
                raise ValueError(f"The folder {name} holds no .txt or .txt.gz files; correct the path.")
        elif path.is_file():
            files = [path]
        else:
            files = sorted(Path(match) for match in glob.glob(str(name), recursive=True) if Path(match).is_file())
            if not files:
                raise ValueError(f"No file matches {str(name)!r}; correct the path or the pattern.")
        found.update(dict.fromkeys(files))
    return list(found)


def read_lines(
    path: Path, max_bytes: int = MAX_LINE_BYTES, cure: str = "break it into shorter lines"
) -> Iterator[Line]:
    """Yields the lines of a UTF-8 file, decompressed if its name ends in .gz, without a byte-order mark at its start.

    At most one line of `max_bytes` is in memory, whatever the file holds.

    Args:
        path: the file.
        max_bytes: the longest line that is accepted.
        cure: what to do about a longer one; it ends the error message.

    Raises:
        ValueError: the file is not UTF-8, is not a complete gzip file or expands more than `MAX_EXPANSION` times, or a
            line is too long; the message names the file and the byte or the line.
    """
    with path.open("rb") as packed:
        if path.suffix != ".gz":
            yield from _decoded(packed, path, max_bytes, cure)
            return
        unpacked = gzip.GzipFile(fileobj=packed)
        try:
            for line in _decoded(unpacked, path, max_bytes, cure):
                if unpacked.tell() > MAX_LINE_BYTES + MAX_EXPANSION * packed.tell():
                    raise ValueError(
                        f"{path} expands to more than {MAX_EXPANSION} times its size, as no text does; check the file, "
                        f"or decompress it first."
                    )
                yield Line(line.text, packed.tell())
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(f"{path} is not a complete gzip file ({error}); copy it again, or rename it.") from None


def _decoded(file: BinaryIO | gzip.GzipFile, path: Path, max_bytes: int, cure: str) -> Iterator[Line]:
    offset = number = 0
    while raw := file.readline(max_bytes + 1):
        number += 1
        if len(raw) > max_bytes:
            raise ValueError(f"{path}, line {number}, is longer than {max_bytes:,} bytes; {cure}.")
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path} is not UTF-8: byte 0x{raw[error.start]:02x} at byte offset {offset + error.start}. "
                f"Convert the file to UTF-8."
            ) from None
        text = text.removeprefix("\ufeff") if offset == 0 else text
        offset += len(raw)
        yield Line(text.strip(), offset)
