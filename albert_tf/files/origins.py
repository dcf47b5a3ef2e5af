"""Files that were made of something else, such as a DataFrame or a URL, and what they are called in messages."""

import functools
import re
import tempfile
from pathlib import Path

# By the path of the file.
ORIGINS: dict[Path, str] = {}
STANDARD_INPUT = "standard input"
# User and password of a URL, and its query, which may be a signature; pathlib makes one slash of two.
_USER = re.compile(r"\b([a-z][a-z0-9+.-]+:/{1,2})[^/\s@'\"]*(?::[^/\s@'\"]*)?@(?=[^/\s])", re.IGNORECASE)
_QUERY = re.compile(r"\b([a-z][a-z0-9+.-]+:/{1,2}[^\s?'\"<>]+)\?[^\s'\"<>]*[^\s'\"<>,;:.)]", re.IGNORECASE)
_UNITS = {".json": "element", ".parquet": "row"}


@functools.cache
def _folder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="albert_tf-", ignore_cleanup_errors=True)


def process_folder() -> Path:
    """A folder for such files, which is removed when Python ends."""
    return Path(_folder().name)


def is_in_memory(path: Path) -> bool:
    """Whether the file was made of a table in memory."""
    return path in ORIGINS and "://" not in ORIGINS[path] and ORIGINS[path] != STANDARD_INPUT


def name_of(path: Path) -> str:
    """The file as its user calls it, without secrets."""
    return without_secrets(ORIGINS.get(path, str(path)))


def without_secrets(text: str) -> str:
    """A text whose URLs have neither user and password nor a query, which may sign them.

    Example:

    >>> without_secrets("s3://b/k and https://me:pw@host/a.csv?X-Amz-Signature=1f could not be read")
    's3://b/k and https://host/a.csv?... could not be read'
    """
    return _QUERY.sub(r"\1?...", _USER.sub(r"\1", text))


def where(path: Path, line: int) -> str:
    """A row for messages: file and line, or the number of a row in memory, from 0."""
    if is_in_memory(path):
        return f"row {line - 1} of {name_of(path)}"
    return f"{name_of(path)}, {unit_of(path)} {line}"


def unit_of(path: Path) -> str:
    """What the rows of a file are counted in."""
    return _UNITS.get(path.suffix.lower(), "line")
