"""Atomic writes of files and folders, checksums, and exclusive locks."""

import contextlib
import fcntl
import glob
import hashlib
import json
import os
import pathlib
import secrets
import shutil
from collections.abc import Iterator
from typing import Any, BinaryIO

from albert_tf.files.urls import is_remote, last_if_metadata, location, opened, process_folder, upload


def atomic_write(path: Any, content: bytes) -> None:
    """Writes a file atomically, see `atomic_open`."""
    with atomic_open(path) as file:
        file.write(content)


def write_json(path: Any, value: Any, *, indent: int = 2, **options: Any) -> None:
    """Writes a value as indented JSON atomically; `options` are those of `json.dumps`."""
    atomic_write(path, (json.dumps(value, indent=indent, **options) + "\n").encode("utf-8", "surrogatepass"))


def check_output(name: str, output: Any, *inputs: Any) -> None:
    """Raises ValueError if a file to write is one of those that are read, also through links; other inputs are none."""
    output = location(output)
    for path in (location(path) for path in inputs if isinstance(path, str | os.PathLike) or is_remote(path)):
        is_local = not (is_remote(output) or is_remote(path)) and output.exists() and path.exists()
        if str(output) == str(path) or (is_local and output.samefile(path)):
            raise ValueError(
                f"`{name}` must not be a file that is read, because it would be lost. Received: {output}, which is "
                f"{path}; give another file."
            )


@contextlib.contextmanager
def atomic_open(path: Any) -> Iterator[BinaryIO]:
    """Opens a file in a temporary folder for writing, which replaces `path`, or is uploaded, once it is synced to disk.

    As for other new files, the umask limits who may read it.

    Raises:
        OSError: the file could not be written; the message names `path`, and an existing file is unchanged.
    """
    path = location(path)
    try:
        if not is_remote(path):
            os.stat(os.path.join(path.parent, ""))  # raises if there is no such folder
        with temporary_folder(path) as folder:
            with (folder / path.name).open("wb", buffering=2**20) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            move(folder / path.name, path)
    except OSError as error:
        raise could_not_write(path, error) from None
    if not is_remote(path):
        descriptor = os.open(path.parent, os.O_RDONLY)
        with contextlib.suppress(OSError):  # some file systems cannot
            os.fsync(descriptor)  # so that the new name survives a power failure
        os.close(descriptor)


@contextlib.contextmanager
def temporary_folder(path: Any) -> Iterator[pathlib.Path]:
    """Creates a folder beside `path`, for the caller to `move` it or files of it, and removes it at the end.

    Temporary folders of killed processes are removed first, and at the end the folder around it if it is new and empty.
    As for other new folders, the umask limits who may read it.
    """
    if is_remote(path):
        path = process_folder() / "folders" / path.name
    is_new = not path.parent.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_temporary(path.with_name(glob.escape(path.name)))
    descriptor, temporary = _locked_folder(path)
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        os.close(descriptor)
        if is_new:
            with contextlib.suppress(OSError):  # it is not empty
                path.parent.rmdir()


def _locked_folder(path: pathlib.Path) -> tuple[int, pathlib.Path]:
    """Creates a folder beside `path` and locks it until it is closed, as a sign that its writer is alive."""
    while True:
        folder = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        folder.mkdir()
        with contextlib.suppress(FileNotFoundError):  # another process removed it before it was locked
            descriptor = os.open(folder, os.O_RDONLY)
            with contextlib.suppress(OSError):  # some network file systems have no locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if folder.exists():
                return descriptor, folder
            os.close(descriptor)


def remove_temporary(path: Any) -> bool:
    """Removes temporary folders of `path`, whose name may be a pattern, if their writers are not alive.

    Returns:
        whether there were any.
    """
    was_there = False
    for temporary in [] if is_remote(path) else path.parent.glob(f".{path.name}.????????"):
        with contextlib.suppress(OSError):  # its writer is alive, another process removed it, or it is no folder
            descriptor = os.open(temporary, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(temporary, ignore_errors=True)
                was_there = True
            finally:
                os.close(descriptor)
    return was_there


def move(source: pathlib.Path, target: Any) -> Any:
    """Renames a file or a folder or, if `target` is behind a URL, uploads it, metadata last; returns `target`."""
    if not is_remote(target):
        return source.rename(target) if source.is_dir() else source.replace(target)
    files = [source] if source.is_file() else [file for file in source.rglob("*") if file.is_file()]
    for file in sorted(files, key=last_if_metadata):
        upload(file, target if file == source else target.joinpath(*file.relative_to(source).parts))
    return target


@contextlib.contextmanager
def tensorflow_writes(path: Any) -> Iterator[None]:
    """Turns TensorFlow's errors in writing `path`, such as a full disk, into an OSError that names it."""
    import tensorflow as tf

    try:
        yield
    except tf.errors.OpError as error:
        raise OSError(f"could not write {path} ({reason_of(error)}); free space or choose another folder") from None


def reason_of(error: Any) -> str:
    """What the system said, such as that no space is left, of an OSError or of TensorFlow's error in writing a file."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return error.message.splitlines()[0].split(" [Op:")[0].rpartition("; ")[2]


def could_not_write(path: Any, error: OSError) -> OSError:
    """Returns an OSError that names the file that was being written."""
    return OSError(error.errno, f"could not write the file ({error.strerror})", str(path))


def sha256(path: Any) -> str:
    """SHA-256 of a file's content, as hexadecimal digits."""
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def exclusive_lock(folder: pathlib.Path) -> Iterator[None]:
    """Holds an exclusive lock on a folder; the operating system releases it when the process exits.

    The folder is created if it does not exist, and then removed if it is empty at the end. On file systems without
    locks, nothing is locked.

    Raises:
        ValueError: another process holds the lock, or `folder` is a file.
    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; give another folder.")
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"{folder} is being written by another process; wait for it, stop it, or give another folder."
            ) from None
        except OSError:  # some network file systems have no locks
            pass
        yield
    finally:
        os.close(descriptor)
        if is_new:
            with contextlib.suppress(OSError):  # it is not empty
                folder.rmdir()
