"""Text files in any encoding: UTF-8, UTF-16 by its byte-order mark, and others by their names."""

import codecs
import contextlib
from collections.abc import Iterator
from pathlib import Path

from albert_tf.files.origins import name_of, where

_SAMPLE_BYTES = 1 << 16
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"))
_MARKS += ((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
# What systems and spreadsheets write, which is likelier than others that fit as well.
_COMMON = ("cp949", "cp932", "gb18030", "big5", "cp1252", "cp1251", "cp1250", "cp1253", "cp1254", "cp1255", "cp1256")
# Files that are no text, by their first bytes.
_BINARY = {
    b"PK\x03\x04": "a spreadsheet or another zip archive; save it as CSV",
    b"\x1f\x8b": "compressed; decompress it",
}


def encoding_of(path: Path, encoding: str | None = None) -> str:
    """The encoding to read a file with.

    Args:
        path: the file.
        encoding: name of a codec of Python; None: that of the file's byte-order mark, otherwise UTF-8.

    Raises:
        ValueError: there is no such encoding, or the file is of another one.
    """
    with path.open("rb") as file:
        sample = file.read(_SAMPLE_BYTES)
    marked = next((name for mark, name in _MARKS if sample.startswith(mark)), None)
    if encoding is None:
        if marked is None and (b"\x1b$" in sample or sample.count(0) > len(sample) // 4):
            likely = "iso2022_jp" if b"\x1b$" in sample else "utf-16-le" if sample[:1] != b"\0" else "utf-16-be"
            raise ValueError(f"{name_of(path)} may be {likely}: set `encoding` (--set encoding={likely}).")
        return marked or "utf-8"
    try:
        codec = codecs.lookup(encoding)
        "".encode(encoding)  # codecs such as hex are not of text
    except (LookupError, ValueError):
        raise ValueError(
            f"`encoding` must be the name of an encoding, such as utf-8, utf-16 or cp949. Received: {encoding!r}."
        ) from None
    if codec.name not in ("utf-8", "utf-8-sig", "ascii") and not sample.isascii() and _is_utf8(sample):
        raise ValueError(f"{name_of(path)} is UTF-8, not {encoding}; leave out `encoding` (--set encoding).")
    family = codec.name.removesuffix("-le").removesuffix("-be")
    return marked if marked and marked.removesuffix("-sig") == family else encoding


def text_lines(path: Path, encoding: str | None = None, newline: str = "\n") -> Iterator[str]:
    """Yields the lines of a text file with their ends, one at a time.

    Args:
        path: the file.
        encoding: as for `encoding_of`.
        newline: as in `open`.

    Raises:
        ValueError: the file is of another encoding, as its bytes tell, which the message names, or has NUL characters.
    """
    name = encoding_of(path, encoding)
    try:
        with path.open(encoding=name, newline=newline) as file:
            for number, line in enumerate(file, start=1):
                if "\0" in line:
                    raise ValueError(
                        f"{where(path, number)}, has a NUL character, which texts do not have; correct the file, or "
                        "set `encoding` (--set encoding)."
                    )
                yield line
    except UnicodeError as error:
        raise ValueError(_undecodable(path, name, error)) from None


@contextlib.contextmanager
def utf8_file(path: Path, encoding: str | None = None) -> Iterator[codecs.StreamRecoder]:
    """Opens a text file as one of UTF-8 without a byte-order mark; raises ValueError as `text_lines`."""
    name = encoding_of(path, encoding)
    try:
        with path.open("rb") as file:
            yield codecs.EncodedFile(file, "utf-8", name)
    except UnicodeError as error:
        raise ValueError(_undecodable(path, name, error)) from None


def _is_utf8(sample: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        return False
    return True


def _undecodable(path: Path, name: str, error: UnicodeError) -> str:
    """One sentence on the first line that cannot be decoded, and what encoding it may have."""
    offset, place, sample = 0, "", b""
    with path.open("rb") as file:
        start = file.read(4)
        if what := next((what for magic, what in _BINARY.items() if start.startswith(magic)), None):
            return f"{name_of(path)} is {what}."
        file.seek(0)
        if not name.startswith("utf-8"):
            sample, place = file.read(_SAMPLE_BYTES), f" ({error})"
        while not sample and (line := file.readline()):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as wrong:
                place = f": byte 0x{line[wrong.start]:02x} at byte offset {offset + wrong.start}"
                sample = line + file.read(_SAMPLE_BYTES)
            offset += len(line)
    likely = likely_encoding(sample[: sample.rfind(b"\n") + 1] or sample, name)
    cure = "convert the file to UTF-8"
    if likely:
        line = sample.decode(likely, "replace").strip().split("\n")[0].strip()
        setting = f"`encoding` (--set encoding={likely})"
        cure = f"it may be {likely}, in which the line is {line[:30]!r}: set {setting}, or {cure}"
    return f"{name_of(path)} is not {name.removesuffix('-sig').upper()}{place}; {cure}."


def likely_encoding(sample: bytes, name: str = "utf-8") -> str | None:
    """The encoding that a sample most likely has, other than the one that it was taken for."""
    from charset_normalizer import from_bytes

    groups = [(match.encoding, *match.could_be_from_charset) for match in from_bytes(sample)]  # of equal texts
    excluded = (codecs.lookup(name).name, "ascii")
    encodings = [next((common for common in _COMMON if common in group), group[0]) for group in groups]
    encodings = [encoding for encoding in encodings if encoding not in excluded]
    is_western = sum(byte < 128 for byte in sample) > 0.7 * len(sample)  # letters of one byte among others
    if is_western and encodings and encodings[0] not in _COMMON:
        return "cp1252"
    return next((encoding for encoding in encodings if encoding in _COMMON), encodings[0] if encodings else None)
