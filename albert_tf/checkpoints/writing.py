"""Files that appear whole or not at all."""

import os
import pathlib
import tempfile


def write_whole(path: pathlib.Path, content: bytes) -> None:
    """Writes a file under a temporary name beside its own and renames it, so that no half file is ever seen."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        pathlib.Path(temporary).unlink(missing_ok=True)
        raise
