"""Folders behind URLs that are written on disk and uploaded, such as those of runs."""

import contextlib
import pathlib
import secrets
import shutil
import threading
import warnings
from collections.abc import Iterator
from typing import Any

from albert_tf.files.atomic import last_if_metadata
from albert_tf.files.origins import ORIGINS, without_secrets
from albert_tf.files.urls import (
    MIRRORS,
    explained,
    fetch,
    file_infos,
    is_remote,
    location,
    make_folder,
    place_of_copy,
    upload,
    with_urls,
)

_mirrors: dict[pathlib.Path, "_Mirror"] = {}


class _Mirror:
    """A folder on disk with the content of one behind a URL; hidden files are on one side alone.

    Args:
        remote: the folder behind the URL.
        is_writer: whether it is written, not only read.
    """

    def __init__(self, remote: Any, is_writer: bool):
        self.remote, self._is_writer, self._uploading = remote, is_writer, threading.Lock()
        self.folder = place_of_copy(remote, f"{MIRRORS}/{secrets.token_hex(4)}")
        self.folder.mkdir(parents=True)
        fetch(remote, [name for name in file_infos(remote) if not _is_hidden(name)], self.folder)
        self._uploaded = self._states()

    def upload(self) -> None:
        """Uploads what has changed, metadata last, then removes what is gone; raises ValueError if it cannot."""
        if not self._is_writer:
            return
        with self._uploading:
            now = self._states()
            changed = [self.folder / name for name, state in now.items() if self._uploaded.get(name) != state]
            for file in sorted(filter(pathlib.Path.exists, changed), key=last_if_metadata):
                name = file.relative_to(self.folder).as_posix()
                upload(file, self.remote / name)
                self._uploaded[name] = now[name]
            for name in sorted(self._uploaded.keys() - now.keys(), key=lambda name: not name.endswith(".json")):
                with explained(self.remote, "be written"), contextlib.suppress(FileNotFoundError):
                    self.remote.fs.rm_file((self.remote / name).path)
                del self._uploaded[name]

    def _states(self) -> dict[str, tuple[int, int, int]]:
        states = {}
        for file in sorted(self.folder.rglob("*")):
            name = file.relative_to(self.folder).as_posix()
            with contextlib.suppress(FileNotFoundError):  # an old checkpoint
                if not _is_hidden(name) and file.is_file():
                    state = file.stat()
                    states[name] = (state.st_ino, state.st_size, state.st_mtime_ns)
        return states


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/"))


@contextlib.contextmanager
def mirrored(folder: Any, is_writer: bool = True) -> Iterator[pathlib.Path]:
    """A folder on disk that is like one behind a URL, which is like it at the end; of paths, the folder itself.

    Args:
        folder: path or URL.
        is_writer: whether this process writes; others read alone.

    Raises:
        ValueError: the URL cannot be read or written.
    """
    remote = location(folder)
    if not is_remote(remote):
        yield remote
        return
    if is_writer:
        make_folder(remote)  # raises if it is a file
    mirror = _Mirror(remote, is_writer)
    _mirrors[mirror.folder], ORIGINS[mirror.folder] = mirror, without_secrets(str(remote))
    try:
        yield mirror.folder
    except Exception as error:
        error.args = tuple(with_urls(item) if isinstance(item, str) else item for item in error.args)
        if isinstance(error, OSError) and isinstance(error.filename, str):
            error.filename = with_urls(error.filename)
        try:
            mirror.upload()  # logs
        except ValueError as second:
            if str(second) != str(error):
                warnings.warn(str(second), stacklevel=3)
        raise
    else:
        mirror.upload()
    finally:
        del _mirrors[mirror.folder]
        shutil.rmtree(mirror.folder, ignore_errors=True)


def upload_changes(path: pathlib.Path) -> None:
    """Uploads what has changed in the mirror that a path is in, if it is in one; raises ValueError as `mirrored`."""
    for folder, mirror in list(_mirrors.items()):
        if path.is_relative_to(folder):
            mirror.upload()
