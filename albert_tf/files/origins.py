"""What files and their rows are called in messages, also those made of something else, such as a DataFrame or a URL."""

from pathlib import Path

from albert_tf.files.urls import ORIGINS, without_secrets

IN_MEMORY: set[Path] = set()  # files whose rows are numbered as those of the table in memory that they were made of
_UNITS = {".json": "element", ".parquet": "row"}


def is_in_memory(path: Path) -> bool:
    """Whether the file was made of a table in memory."""
    return path in IN_MEMORY


def name_of(path: Path) -> str:
    """The file as its user calls it, without secrets."""
    return without_secrets(ORIGINS.get(path, str(path)))


def where(path: Path, line: int) -> str:
    """A row for messages: file and line, or the number of a row in memory, from 0."""
    if is_in_memory(path):
        return f"row {line - 1} of {name_of(path)}"
    return f"{name_of(path)}, {unit_of(path)} {line}"


def unit_of(path: Path) -> str:
    """What the rows of a file are counted in."""
    return _UNITS.get(path.suffix.lower(), "line")
