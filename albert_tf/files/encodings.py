"""Text files in any encoding: UTF-8, UTF-16 by its byte-order mark, and others by their names."""

import codecs
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

_SAMPLE_BYTES = 1 << 16
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"))
_MARKS += ((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def encoding_of(path: Path, encoding: str | None = None) -> str:
    """The encoding to read a file with.

    Args:
        path: the file.
        encoding: name of a codec of Python; None: that of the file's byte-order mark, otherwise UTF-8.

    Raises:
        ValueError: there is no such encoding, or the file is UTF-8 although another one is given.
    """
    with path.open("rb") as file:
        sample = file.read(_SAMPLE_BYTES)
    if encoding is None:
        return next((name for mark, name in _MARKS if sample.startswith(mark)), "utf-8")
    try:
        codec = codecs.lookup(encoding)
        "".encode(encoding)  # codecs such as hex are not of text
    except LookupError:
        raise ValueError(
            f"`encoding` must be the name of an encoding, such as utf-8, utf-16 or cp949. Received: {encoding!r}."
        ) from None
    if codec.name not in ("utf-8", "utf-8-sig", "ascii") and not sample.isascii() and _is_utf8(sample):
        raise ValueError(f"{path} is UTF-8, not {encoding}; leave out `encoding` (--encoding).")
    return encoding


def text_lines(path: Path, encoding: str | None = None, newline: str = "\n") -> Iterator[str]:
    """Yields the lines of a text file with their ends, one at a time.

    Args:
        path: the file.
        encoding: as for `encoding_of`.
        newline: as in `open`.

    Raises:
        ValueError: the file is of another encoding; the message names the byte, and the encoding that it may be.
    """
    name = encoding_of(path, encoding)
    try:
        with path.open(encoding=name, newline=newline) as file:
            yield from file
    except UnicodeError as error:
        raise ValueError(_undecodable(path, name, error)) from None


@contextlib.contextmanager
def utf8_file(path: Path, encoding: str | None = None) -> Iterator["Utf8Reader"]:
    """Opens a text file as one of UTF-8 without a byte-order mark; raises ValueError as `text_lines`."""
    name = encoding_of(path, encoding)
    try:
        with path.open(encoding=name) as file:
            yield Utf8Reader(file)
    except UnicodeError as error:
        raise ValueError(_undecodable(path, name, error)) from None


class Utf8Reader:
    """A text file as bytes.

    Args:
        file: the file.
    """

    def __init__(self, file: TextIO):
        self._file = file

    def read(self, size: int = -1) -> bytes:
        """The next characters."""
        return self._file.read(size).encode("utf-8", "surrogatepass")


def _is_utf8(sample: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        return False
    return True


def _undecodable(path: Path, name: str, error: UnicodeError) -> str:
    """One sentence on the first line that cannot be decoded, and what encoding it may have."""
    offset, where, sample = 0, "", b""
    with path.open("rb") as file:
        if not name.startswith("utf-8"):
            sample, where = file.read(_SAMPLE_BYTES), f" ({error})"
        while not sample and (line := file.readline()):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as wrong:
                where = f": byte 0x{line[wrong.start]:02x} at byte offset {offset + wrong.start}"
                sample = line + file.read(_SAMPLE_BYTES)
            offset += len(line)
    likely = _likely(sample[: sample.rfind(b"\n") + 1] or sample, name)
    cure = f"it may be {' or '.join(likely)}: set `encoding` (--encoding {likely[0]}), or c" if likely else "c"
    return f"{path} is not {name.removesuffix('-sig').upper()}{where}; {cure}onvert the file to UTF-8."


def _likely(sample: bytes, name: str) -> list[str]:
    """The encodings that a sample may have, the most likely one first."""
    from charset_normalizer import from_bytes

    found = [match.encoding for match in from_bytes(sample)]
    return [encoding for encoding in found if encoding not in (codecs.lookup(name).name, "ascii")][:2]
