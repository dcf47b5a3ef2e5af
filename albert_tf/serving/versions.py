"""The versions of models on disk: finds the newest ones, loads them in the background and swaps them.

A request holds the version that answers it; a version that was replaced is released after its last request.
"""

import asyncio
import contextlib
import ctypes
import dataclasses
import gc
import logging
import os
import pathlib
import re
from collections.abc import Callable, Iterator

from albert_tf.serving.batching import Batcher
from albert_tf.serving.engine import Engine

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_VERSION = re.compile(r"[1-9][0-9]{0,17}")
_SCAN_SECONDS = 1.0
_logger = logging.getLogger(__name__)


class NotFoundError(Exception):
    """A model, a version or a signature that is not served."""


@dataclasses.dataclass(frozen=True)
class Version:
    """A complete version on disk.

    Attributes:
        model: name of the model.
        number: version number.
        folder: its folder.
        stamp: changes with the files in it, so that one that was copied too slowly to load at first is tried again.
    """

    model: str
    number: int
    folder: pathlib.Path
    stamp: int


@dataclasses.dataclass(eq=False)
class ServedVersion:
    """A version in memory.

    Attributes:
        version: Version.
        engine: Engine.
        batcher: merges its requests.
        requests: number of requests that hold it.
        replaced: whether another version is served instead; it is released after its last request.
    """

    version: Version
    engine: Engine
    batcher: Batcher
    requests: int = 0
    replaced: bool = False


class ModelRoot:
    """A folder of models, of the versions of one model, or of one version.

    Raises:
        ValueError: the folder does not exist.
    """

    def __init__(self, folder: str | os.PathLike):
        self._folder = pathlib.Path(folder).resolve()
        if not self._folder.is_dir():
            raise ValueError(f"{folder} is not a folder; pass one that `albert-tf export` wrote, such as saved_models.")
        self._reported: set[str] = set()

    def scan(self) -> dict[str, list[Version]]:
        """The complete versions by model, newest first; what is skipped is logged once."""
        if _marker(self._folder) is not None:
            is_numbered = _VERSION.fullmatch(self._folder.name) is not None
            name, number = (self._folder.parent.name, self._folder.name) if is_numbered else (self._folder.name, "1")
            return self._named({name: [(self._folder, number)]})
        children = self._children(self._folder)
        # A number alone may be the name of a model, such as a year.
        is_model = any(_VERSION.fullmatch(child.name) and _marker(child) for child in children)
        models = (
            {self._folder.name: children} if is_model else {child.name: self._children(child) for child in children}
        )
        return self._named(
            {
                name: [(child, child.name) for child in folders if _VERSION.fullmatch(child.name)]
                for name, folders in models.items()
            }
        )

    def check_links(self, folder: pathlib.Path) -> None:
        """Raises ValueError if a link below `folder` leaves the root, or leads to a folder, which might in turn."""
        for parent, folders, files in os.walk(folder):
            for path in (pathlib.Path(parent, name) for name in (*folders, *files)):
                if path.is_symlink() and not (path.is_file() and path.resolve().is_relative_to(self._folder)):
                    raise ValueError(
                        f"{path} is a link to outside {self._folder} or to a folder; copy what it points to."
                    )

    def _named(self, models: dict[str, list[tuple[pathlib.Path, str]]]) -> dict[str, list[Version]]:
        found = {}
        for name, folders in models.items():
            versions = [version for folder, number in folders if (version := self._version(name, folder, number))]
            if versions and not _NAME.fullmatch(name):
                self._report(f"{name!r} is not served: a name must have up to 100 letters, digits, `_`, `.` or `-`.")
            elif versions:
                found[name] = sorted(versions, key=lambda version: -version.number)
        return found

    def _version(self, name: str, folder: pathlib.Path, number: str) -> Version | None:
        if _marker(folder) is None:
            self._report(
                f"{folder} is incomplete and ignored: it has neither saved_model.pb with variables nor model.json with "
                "onnx."
            )
            return None
        files = (os.path.join(parent, file) for parent, _, files in os.walk(folder) for file in files)
        states = ((file, os.lstat(file)) for file in files)
        stamp = hash(frozenset((file, state.st_ino, state.st_size, state.st_mtime_ns) for file, state in states))
        return Version(name, int(number), folder, stamp)

    def _children(self, folder: pathlib.Path) -> list[pathlib.Path]:
        """The folders in `folder`; links that leave the root are skipped."""
        children = [child for child in folder.iterdir() if not child.name.startswith(".") and child.is_dir()]
        inside = [child for child in children if child.resolve().is_relative_to(self._folder)]
        for child in set(children) - set(inside):
            self._report(f"{child} is a link to outside {self._folder} and ignored; copy what it points to.")
        return inside

    def _report(self, message: str) -> None:
        if message not in self._reported:
            self._reported.add(message)
            _logger.warning(message)


def _marker(folder: pathlib.Path) -> pathlib.Path | None:
    """The file that a complete version has."""
    if (folder / "saved_model.pb").is_file() and (folder / "variables").is_dir():
        return folder / "saved_model.pb"
    manifest = folder / "model.json"
    return manifest if manifest.is_file() and (folder / "onnx").is_dir() else None


class ServedModels:
    """The newest version of each model.

    Args:
        root: ModelRoot.
        load: makes the Engine of a folder; runs in a thread.
        make_batcher: makes the Batcher of a model's engine.
    """

    def __init__(
        self,
        root: ModelRoot,
        load: Callable[[pathlib.Path], Engine],
        make_batcher: Callable[[str, Engine], Batcher],
    ):
        self._root, self._load, self._make_batcher = root, load, make_batcher
        self.served: dict[str, ServedVersion] = {}
        self.failed: dict[Version, str] = {}

    @contextlib.contextmanager
    def hold(self, name: str, version: str | int | None = None) -> Iterator[ServedVersion]:
        """Keeps a model in memory during a request.

        Args:
            name: name of the model.
            version: its number. None: the one that is served.

        Raises:
            NotFoundError: it is not served.
        """
        served = self.find(name, version)
        served.requests += 1
        try:
            yield served
        finally:
            served.requests -= 1
            _release_if_unused(served)

    def find(self, name: str, version: str | int | None = None) -> ServedVersion:
        """The model that `hold` holds."""
        served = self.served.get(name)
        if served is None:
            raise NotFoundError(f"Could not find any versions of model {name[:100]}; /v1/models lists the models.")
        if version is not None and str(version) != str(served.version.number):
            raise NotFoundError(
                f"Could not find version {str(version)[:20]} of {name}; version {served.version.number} is served."
            )
        return served

    async def watch(self) -> None:
        """Looks for new versions every second, until it is cancelled."""
        while True:
            await asyncio.sleep(_SCAN_SECONDS)
            try:
                await self.refresh()
            except OSError as error:
                _logger.warning("The folder of models could not be read (%s); the loaded versions stay.", error)

    async def refresh(self) -> None:
        """Loads what is newer on disk than in memory."""
        for name, versions in (await asyncio.to_thread(self._root.scan)).items():
            current = self.served.get(name)
            for version in versions:
                if (current is not None and version == current.version) or await self._replace(version, current):
                    break

    async def _replace(self, version: Version, current: ServedVersion | None) -> bool:
        """Loads a version and serves it instead of the current one; False if it cannot be loaded."""
        if version in self.failed:
            return False
        try:
            engine = await asyncio.to_thread(self._load_checked, version.folder)
        except Exception as error:
            self.failed[version] = str(error) or type(error).__name__
            stays = f"; version {current.version.number} stays" if current else ""
            _logger.error("Version %d of %s could not be loaded%s: %s", version.number, version.model, stays, error)
            return False
        self.served[version.model] = ServedVersion(version, engine, self._make_batcher(version.model, engine))
        _logger.info("%s %d is served by %s.", version.model, version.number, engine.name)
        if current is not None:
            current.replaced = True
            _release_if_unused(current)
        return True

    def close(self) -> None:
        """Releases all models; no request may be running."""
        for served in self.served.values():
            served.batcher.close()
        self.served.clear()

    def _load_checked(self, folder: pathlib.Path) -> Engine:
        self._root.check_links(folder)
        return self._load(folder)


def _release_if_unused(served: ServedVersion) -> None:
    if served.replaced and not served.requests:
        served.batcher.close()
        # A SavedModel is freed with the cycles of its functions, later, when no frame holds it.
        asyncio.get_running_loop().call_later(_SCAN_SECONDS, _free_memory)


def _free_memory() -> None:
    """Frees what nothing refers to any more, and gives the memory back to the system where the C library can."""
    gc.collect()
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
