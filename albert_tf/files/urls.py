"""Files and folders behind URLs, through fsspec and universal-pathlib, which are imported for a URL alone.

`location` turns what a user passes into a path: a `pathlib.Path`, or for a URL a `UPath`, which has the same methods.
What needs a file on disk takes a copy: `local_copy` for the life of the process, `borrowed` for a block, `mirrored` for
a folder that is written, such as that of a run. Copies lie under the same names, `.../s3/bucket/key` for
`s3://bucket/key`, so that messages about them can be given as URLs.
"""

import contextlib
import functools
import io
import logging
import pathlib
import re
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from albert_tf.files.installation import install_command

# pathlib makes one slash of two.
_IN_A_PATH = re.compile(r"([a-z][a-z0-9+.-]+):/([^/].*)", re.DOTALL)
# A password may have a slash, unless it looks like the port of a host.
_USERINFO = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+:/{1,2})(?:[^/\s]*|[^/\s:@\[]+:(?!\d*/)[^\s?#@]*)@")
_END = r"(?=[.,;:)\]}>'\"]*(?:\s|$))"
# Patterns such as `s3://bucket/part-?.txt` have no secrets.
_QUERY = re.compile(rf"(https?:/[^\s?#]*)[?#]\S*?{_END}|[?#]&*(?=[\w.%~-]+=)\S*?{_END}")
# Without a URL around them, as in messages of libraries.
_NAMED = re.compile(
    r"\b(X-Amz-(?:Signature|Credential|Security-Token)|Authorization: Bearer)[= ][^&\s'\"]+", re.IGNORECASE
)
# botocore waits 45 seconds on average, 91 at most, so that a server may be away for ten; other libraries do by default.
_RETRIES = {"retries": {"mode": "standard", "max_attempts": 8}, "connect_timeout": 10}
# Listings are not kept, because other processes write too.
_OPTIONS: dict[str, dict[str, Any]] = {
    "s3": {"use_listings_cache": False, "config_kwargs": _RETRIES},
    "gs": {"use_listings_cache": False},
}
_READ_ONLY, _SECONDS_TO_SAY = ("http", "https"), 5
_COMPLETING = (".json", ".pb", ".index")  # metadata, which make a folder complete
# What files in the process's folder were made of, such as a URL or a DataFrame, for messages.
ORIGINS: dict[pathlib.Path, str] = {}
_known_roots: set[str] = set()
_copies: dict[pathlib.Path, dict[str, Any]] = {}  # what was known of a file when it was copied
_copying = threading.RLock()
_mirrors: dict[pathlib.Path, "_Mirror"] = {}
# gcsfs raises the errors whose tracebacks it logs.
logging.getLogger("gcsfs").addHandler(logging.NullHandler())


@functools.cache
def _folder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="albert_tf-", ignore_cleanup_errors=True)


def process_folder() -> pathlib.Path:
    """A folder for copies and what is made of objects in memory, which is removed when Python ends."""
    return pathlib.Path(_folder().name)


def without_secrets(text: str) -> str:
    """A text whose URLs have neither user names and passwords nor queries, which may be signatures or keys.

    Example:

    >>> without_secrets("s3://b/k and https://me:pw@host/a.csv?X-Amz-Signature=1f could not be read")
    's3://b/k and https://host/a.csv could not be read'
    """
    text = _QUERY.sub(r"\1", _USERINFO.sub(r"\1", text)) if ":/" in text or "=" in text else text
    return _NAMED.sub(r"\1 ...", text)


def as_url(path: Any) -> str | None:
    """The URL that this is, such as `s3://bucket/key`, also as a path of one slash; else None."""
    if isinstance(path, pathlib.PurePath):
        match = _IN_A_PATH.fullmatch(path.as_posix())
        return f"{match[1]}://{match[2]}" if match else None
    text = path if isinstance(path, str) else str(path) if is_remote(path) else ""
    return text if "://" in text else None


def is_url(path: Any) -> bool:
    """Whether this is a URL, as a string, as a path or as a UPath."""
    return as_url(path) is not None


def is_remote(path: Any) -> bool:
    """Whether this is a UPath of another machine, as `location` returns for URLs."""
    return hasattr(path, "storage_options") and not isinstance(path, pathlib.PurePath)


def location(path: Any) -> pathlib.Path:
    """A path as pathlib's or, for a URL, as a UPath, which is used alike; of `file://`, the path.

    Raises:
        ValueError: the bucket or repository does not exist or cannot be reached, or a library is not installed.
    """
    url = as_url(path)
    if url is None:
        return pathlib.Path(path)
    if url.startswith("file:"):
        return pathlib.Path("/" + url.removeprefix("file:").lstrip("/"))
    if is_remote(path):
        return path
    with explained(url):
        from upath import UPath

        remote: Any = UPath(url, **_OPTIONS.get(url.partition(":")[0], {}))
        _check_root(remote)
    return remote


def _check_root(remote: Any) -> None:
    """Raises an error unless the bucket exists and may be looked into, before any work begins."""
    root = f"{remote.protocol}://{remote.path.lstrip('/').partition('/')[0]}"
    if remote.protocol in _READ_ONLY or root in _known_roots:
        return
    try:
        remote.fs.info(remote.path)
    except FileNotFoundError as error:
        if "bucket does not exist" in str(error) or (remote.protocol == "gs" and not remote.fs.exists(root)):
            raise ValueError(f"{remote}: there is no {root}; create it, or check the URL.") from None
    _known_roots.add(root)


@contextlib.contextmanager
def explained(url: Any, doing: str = "be read") -> Iterator[None]:
    """Turns the errors of all libraries into a ValueError of one sentence, which says how long it took."""
    start = time.monotonic()
    try:
        yield
    except Exception as error:  # of many kinds, by protocol
        name, text = without_secrets(str(url)), without_secrets(str(error))
        is_explained = isinstance(error, ValueError) and name in text
        seconds = time.monotonic() - start
        tried = f" It was tried for {seconds:.0f} seconds." if seconds >= _SECONDS_TO_SAY else ""
        raise ValueError(text if is_explained else without_secrets(_sentence(name, error, doing) + tried)) from None


def kind_of(path: Any) -> str | None:
    """`"file"`, `"directory"`, or `"other"`; None: there is no such path.

    Raises:
        ValueError: it is behind a URL, and the server refused to answer, or failed.
    """
    if not is_remote(path):
        return "file" if path.is_file() else "directory" if path.is_dir() else "other" if path.exists() else None
    with explained(path):
        try:
            return path.fs.info(path.path)["type"]
        except FileNotFoundError as error:
            if _cause(error) is not error:
                raise
    return None


def _cause(error: BaseException) -> BaseException:
    """What went wrong where a server refused or failed, which fsspec calls a missing file for http."""
    cause = error.__cause__
    is_other = isinstance(cause, OSError) or getattr(cause, "status", None) not in (None, 404, 410)
    return cause if cause is not None and isinstance(error, FileNotFoundError) and is_other else error


def _sentence(url: str, error: BaseException, doing: str) -> str:
    error = _cause(error)
    reason = (without_secrets(str(error)).splitlines() or [""])[0][:200].rstrip(".") or type(error).__name__
    names = {kind.__name__ for kind in type(error).__mro__}
    if isinstance(error, ImportError):
        return f"{url} needs another library ({reason}); {install_command('cloud')}."
    if "Credential" in type(error).__name__ or "Unable to locate credentials" in reason:
        return f"{url} needs credentials, and none were found ({reason}); log in, or set those of this storage."
    if (
        isinstance(error, PermissionError)
        or getattr(error, "status", None) in (401, 403)
        or {"GatedRepoError", "LocalTokenNotFoundError"} & names
    ):
        return f"{url} could not {doing}, because access was refused ({reason}); check the key and its rights."
    if isinstance(error, FileNotFoundError) or {"RepositoryNotFoundError", "EntryNotFoundError"} & names:
        return f"{url} does not exist{'' if reason in url else f' ({reason})'}; check the URL."
    return f"{url} could not {doing} ({type(error).__name__}: {reason}); check the URL and the connection."


def of_a_library(error: Exception) -> str | None:
    """One sentence about an error of a library for URLs that nothing has explained; None for others."""
    package = type(error).__module__.partition(".")[0]
    known = ("botocore", "aiobotocore", "aiohttp", "gcsfs", "fsspec", "huggingface_hub", "s3fs", "google", "httpx")
    return without_secrets(_sentence("A URL", error, "be read or written")) if package in known else None


def with_urls(text: str) -> str:
    """A message with the URLs of copies instead of their paths, and without secrets."""
    if _copies or _known_roots:
        text = re.sub(rf"{re.escape(str(process_folder()))}/(?:urls|mirror-\w+)/(\w+)/", r"\1://", text)
    return without_secrets(re.sub(r"\b(s3|gs|hf|https?):/(?=[^/\s])", r"\1://", text))


def _place_of_copy(remote: Any, folder: str) -> pathlib.Path:
    """Where the copy of a file or folder lies; see `with_urls`."""
    parts = [remote.protocol, *re.sub(r"^\w+://", "", without_secrets(remote.path)).split("/")]
    return process_folder().joinpath(folder, *(part for part in parts if part.strip(".")))


def local_copy(path: Any, wanted: Callable[[str], bool] = lambda name: True) -> pathlib.Path:
    """Downloads a file or folder unless the copy that this process made is still like it; local paths as they are.

    Copies are removed when Python ends.

    Args:
        path: a path or URL.
        wanted: which files of a folder are needed, by their names below it.

    Raises:
        ValueError: it does not exist, has no files, or cannot be read, or a library is not installed.
    """
    remote: Any = location(path)
    if not is_remote(remote):
        return remote
    with _copying, explained(remote):
        copy, info = _place_of_copy(remote, "urls"), remote.fs.info(remote.path)
        is_folder = info["type"] == "directory" and remote.protocol not in _READ_ONLY  # which has no folders
        infos = file_infos(remote) if is_folder else {"": info}
        names = [name for name in infos if not name or wanted(name)]
        if not names:
            needed = " that are needed" if infos else ""
            raise ValueError(f"{without_secrets(str(remote))} has no files{needed}; check the URL.")
        stale = [name for name in names if _copies.get(copy / name) != infos[name] or not (copy / name).is_file()]
        fetch(remote, stale, copy)
        _copies.update({copy / name: infos[name] for name in stale})
        for gone in [file for file in _copies if copy in file.parents and _name(file, copy) not in infos]:
            gone.unlink(missing_ok=True)
            del _copies[gone]
    ORIGINS[copy] = without_secrets(str(remote))
    return copy


def _name(file: pathlib.Path, folder: pathlib.Path) -> str:
    return file.relative_to(folder).as_posix()


def file_infos(folder: Any) -> dict[str, dict[str, Any]]:
    """What is known of all files below a remote folder, by name, in one listing; names that lead out are left out."""
    start = folder.path.strip("/").removeprefix(f"{folder.protocol}://") + "/"
    with explained(folder):
        folder.fs.invalidate_cache()
        try:
            infos = folder.fs.find(folder.path, detail=True)
        except FileNotFoundError:
            return {}
    names = {path.lstrip("/").removeprefix(start): info for path, info in infos.items()}
    return {name: info for name, info in names.items() if name and not {"", ".", ".."} & set(name.split("/"))}


def fetch(remote: Any, names: Iterable[str], copy: pathlib.Path) -> None:
    """Downloads files below a folder, or a file of the name ""; raises ValueError if they cannot be read."""
    files = {(remote / name if name else remote).path: copy / name for name in names}
    for folder in {file.parent for file in files.values()}:
        folder.mkdir(parents=True, exist_ok=True)
    with explained(remote):
        remote.fs.get(list(files), [*map(str, files.values())])


@contextlib.contextmanager
def borrowed(path: Any) -> Iterator[pathlib.Path]:
    """A file on disk with the content of a file, for the time of the block; raises ValueError if it cannot be read."""
    if not is_remote(path):
        yield path
        return
    with tempfile.TemporaryDirectory(dir=process_folder()) as folder:
        copy = pathlib.Path(folder, path.name)
        fetch(path, [""], copy)
        yield copy


@contextlib.contextmanager
def opened(path: Any) -> Iterator[io.BufferedReader]:
    """A file, also a remote one, open for reading."""
    with borrowed(path) as local, local.open("rb") as file:
        yield file


def upload(file: pathlib.Path, remote: Any) -> None:
    """Copies a file, which is there in full or as it was before; raises ValueError if it cannot be written."""
    with explained(remote, "be written"):
        remote.fs.put_file(str(file), remote.path)


def make_folder(folder: Any) -> None:
    """Makes a folder with those above it; remote storage has none, and its buckets are never made.

    Raises:
        ValueError: there is a remote file of this name, or nothing can be written there.
    """
    if not is_remote(folder):
        folder.mkdir(parents=True, exist_ok=True)
    elif folder.protocol in _READ_ONLY:
        name = without_secrets(str(folder))
        raise ValueError(f"{name} can only be read; give a folder, or a URL such as s3://bucket/folder.")
    elif folder.fs.isfile(folder.path):
        raise ValueError(f"{without_secrets(str(folder))} is a file; give another folder.")


def remove_tree(folder: Any) -> None:
    """Removes a folder with all that is in it, if it exists."""
    if not is_remote(folder):
        shutil.rmtree(folder, ignore_errors=True)
        return
    with explained(folder, "be written"), contextlib.suppress(FileNotFoundError):
        folder.fs.rm(folder.path, recursive=True)


class _Mirror(NamedTuple):
    """The folder behind the URL, and the state of each file on disk when both were last alike."""

    remote: Any
    uploaded: dict[str, tuple[int, int, int]]
    lock: threading.Lock


@contextlib.contextmanager
def mirrored(folder: Any, is_writer: bool = True) -> Iterator[pathlib.Path]:
    """A folder on disk that is like one behind a URL, which is like it at the end; of paths, the folder itself.

    Hidden files are on one side alone.

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
    copy = _place_of_copy(remote, f"mirror-{secrets.token_hex(4)}")
    copy.mkdir(parents=True)
    fetch(remote, [name for name in file_infos(remote) if not _is_hidden(name)], copy)
    ORIGINS[copy] = without_secrets(str(remote))
    if is_writer:
        _mirrors[copy] = _Mirror(remote, _states(copy), threading.Lock())
    try:
        yield copy
    finally:  # logs are uploaded after an error, too
        try:
            upload_changes(copy)
        finally:
            _mirrors.pop(copy, None)
            shutil.rmtree(copy, ignore_errors=True)


def upload_changes(path: pathlib.Path) -> None:
    """Uploads what has changed in the mirror that a path is in, metadata last, and removes what is gone there.

    Other paths are left alone.

    Raises:
        ValueError: the URL cannot be written.
    """
    for copy, (remote, uploaded, lock) in list(_mirrors.items()):
        if not path.is_relative_to(copy):
            continue
        with lock:
            now = _states(copy)
            changed = [copy / name for name, state in now.items() if uploaded.get(name) != state]
            for file in sorted(filter(pathlib.Path.exists, changed), key=last_if_metadata):
                upload(file, remote / _name(file, copy))
                uploaded[_name(file, copy)] = now[_name(file, copy)]
            for name in sorted(uploaded.keys() - now.keys(), key=lambda name: not name.endswith(_COMPLETING)):
                with explained(remote, "be written"), contextlib.suppress(FileNotFoundError):
                    remote.fs.rm_file((remote / name).path)
                del uploaded[name]


def last_if_metadata(file: pathlib.Path) -> tuple[bool, int]:
    """Sorts files by when they were written, but after the others those that make a folder complete."""
    return file.suffix in _COMPLETING, file.stat().st_mtime_ns


def _states(folder: pathlib.Path) -> dict[str, tuple[int, int, int]]:
    """What changes with the content of each file."""
    states = {}
    for file in sorted(folder.rglob("*")):
        with contextlib.suppress(FileNotFoundError):  # an old checkpoint
            if not _is_hidden(name := _name(file, folder)) and file.is_file():
                state = file.stat()
                states[name] = (state.st_ino, state.st_size, state.st_mtime_ns)
    return states


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/"))
