"""Files that tests compare, change and damage, and a full disk."""

import contextlib
import json
import pathlib
import resource
from collections.abc import Iterator


@contextlib.contextmanager
def full_disk(limit: int) -> Iterator[None]:
    """No file may grow beyond so many bytes: the system refuses to write more, as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def contents(folder: pathlib.Path) -> dict[str, bytes]:
    """All files below a folder by path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def change_json(path: pathlib.Path, **changes) -> None:
    """Sets values at the top of a JSON file."""
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **changes}))


def flip_bit(path: pathlib.Path, place: int | None = None) -> None:
    """Flips the lowest bit of the byte at this place, or of the one in the middle."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2 if place is None else place] ^= 1
    path.write_bytes(content)
