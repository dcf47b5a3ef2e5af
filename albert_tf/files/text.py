"""Finds text files, plain or gzip-compressed, and reads their lines in bounded memory."""

import contextlib
import glob
import gzip
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, BinaryIO

from albert_tf.files.encodings import likely_encoding
from albert_tf.files.urls import explained, file_infos, is_remote, kind_of, location, opened, without_secrets

MAX_LINE_BYTES = 16 * 2**20
# Text compresses to about 1/3, repetitive logs to 1/100, and a decompression bomb to 1/1000.
MAX_EXPANSION = 500
_SAMPLE_BYTES = 1 << 16
_ENDINGS = ("*.txt", "*.txt.gz")


@dataclass(frozen=True)
class Line:
    """A line of a text file.

    Attributes:
        text: the line without surrounding white space.
        end: offset in the (compressed) file after reading the line, in bytes.
    """

    text: str
    end: int


def find_files(inputs: Iterable[str | Path]) -> list[Path]:
    """Finds the text files that `inputs` name.

    Args:
        inputs: files, URLs, folders (all `*.txt` and `*.txt.gz` below them, sorted) or patterns such as `corpus/*.txt`
            (sorted).

    Returns:
        The files in the order of `inputs`, each once, even if several paths lead to it.

    Raises:
        ValueError: there is no file for one of `inputs`.
    """
    by_target: dict[Path, Path] = {}
    for name in inputs:
        path = location(name)
        if is_remote(path):
            files = _remote_files(path)
        elif path.is_dir():
            files = sorted(match for ending in _ENDINGS for match in path.rglob(ending) if match.is_file())
            if not files:
                raise ValueError(f"The folder {name} holds no .txt or .txt.gz files; correct the path.")
        elif path.is_file():
            files = [path]
        else:
            files = sorted(Path(match) for match in glob.glob(str(path), recursive=True) if Path(match).is_file())
            if not files:
                raise ValueError(f"No file matches {str(name)!r}; correct the path or the pattern.")
        for file in files:
            by_target.setdefault(file.resolve(), file)
    return list(by_target.values())


def _remote_files(path: Any) -> list[Any]:
    """The files behind a URL, in the order of the same files on disk."""
    url = str(path)
    folder, pattern = path, url.partition("://")[2]
    if set("*?[") & set(without_secrets(url)):  # the query of a URL is no pattern
        start = re.split(r"/[^/]*[*?[]", pattern)[0]
        with explained(url):
            matches = [match.lstrip("/").removeprefix(f"{start}/") for match in path.fs.glob(path.path)]
        names, folder = matches, location(f"{url.partition('://')[0]}://{start}")
        problem = f"No file matches {url!r}; correct the URL or the pattern."
    elif path.protocol in ("http", "https") or kind_of(path) == "file":
        with explained(url):
            path.stat()
        return [path]
    else:
        names = [name for name in file_infos(path) if any(fnmatch(name, ending) for ending in _ENDINGS)]
        problem = f"{url} is neither a file nor a folder with .txt or .txt.gz files; correct the URL."
    if not names:
        raise ValueError(without_secrets(problem))
    return [folder / name for name in sorted(names, key=lambda name: name.split("/"))]


def read_lines(
    path: Path, max_bytes: int = MAX_LINE_BYTES, cure: str = "break it into shorter lines"
) -> Iterator[Line]:
    """Yields the lines of a UTF-8 file, decompressed if its name ends in .gz, without a byte-order mark at its start.

    At most one line is in memory.

    Args:
        path: the file.
        max_bytes: maximum length of a line.
        cure: advice at the end of the error message about a longer line.

    Raises:
        ValueError: the file is not UTF-8, is not a complete gzip file or expands more than `MAX_EXPANSION` times, or a
            line is too long; the message names the file and the byte or the line.
    """
    with opened(path) as file:
        if path.suffix != ".gz":
            yield from _decoded(file, path, max_bytes, cure)
            return
        with _unzipped(file, path) as unzipped:
            for line in _decoded(unzipped, path, max_bytes, cure):
                _check_expansion(unzipped, file, path)
                yield Line(line.text, file.tell())


def decompressed(path: Path) -> Iterator[bytes]:
    """The content of a file that gzip compressed, in parts; raises ValueError as `read_lines`."""
    with opened(path) as file, _unzipped(file, path) as unzipped:
        while part := unzipped.read(_SAMPLE_BYTES):
            _check_expansion(unzipped, file, path)
            yield part


@contextlib.contextmanager
def _unzipped(file: BinaryIO, path: Path) -> Iterator[gzip.GzipFile]:
    try:
        yield gzip.GzipFile(fileobj=file)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is not a complete gzip file ({error}); copy it again, or rename it.") from None


def _check_expansion(unzipped: gzip.GzipFile, file: BinaryIO, path: Path) -> None:
    if unzipped.tell() > MAX_LINE_BYTES + MAX_EXPANSION * file.tell():
        raise ValueError(
            f"{path} expands to more than {MAX_EXPANSION} times its size, which is unusual for text; check the file, "
            "or decompress it first."
        )


def _decoded(file: BinaryIO | gzip.GzipFile, path: Path, max_bytes: int, cure: str) -> Iterator[Line]:
    offset = number = 0
    while raw := file.readline(max_bytes + 1):
        number += 1
        if len(raw) > max_bytes:
            raise ValueError(f"{path}, line {number}, is longer than {max_bytes:,} bytes; {cure}.")
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            likely = likely_encoding((raw + file.read(_SAMPLE_BYTES))[:_SAMPLE_BYTES])
            guess = "" if likely is None else f"; it may be {likely}: `iconv -f {likely} -t utf-8 IN > OUT`"
            raise ValueError(
                f"{path} is not UTF-8: byte 0x{raw[error.start]:02x} at byte offset {offset + error.start}. "
                f"Convert the file to UTF-8{guess}."
            ) from None
        text = text.removeprefix("\ufeff") if offset == 0 else text
        offset += len(raw)
        yield Line(text.strip(), offset)
