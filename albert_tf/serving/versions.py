"""The models in a folder: finds the newest version of each, loads it in the background and swaps it.

A request holds the version that answers it; a version that was replaced is released after its last request.
"""

import asyncio
import contextlib
import dataclasses
import gc
import logging
import os
import pathlib
import re
import time
from collections.abc import Callable, Iterator

from albert_tf.checkpoints.reading import holds_weights
from albert_tf.files.exports import why_not_run
from albert_tf.files.urls import is_remote, local_copy, location
from albert_tf.serving.batching import Batcher
from albert_tf.serving.engine import Engine
from albert_tf.serving.errors import NotFoundError

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_VERSION = re.compile(r"[0-9]{1,18}")  # also "01", as TensorFlow Serving
_SCAN_SECONDS = 1.0
_COPY_SECONDS = 15.0  # of models behind a URL, where each look costs
_UNNUMBERED = "{} is not served: the folder of a version must be named by its number, such as 1."
_logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Version:
    """A complete version on disk."""

    model: str
    number: int
    folder: pathlib.Path
    stamp: int  # changes with the files in it, so that one that was copied too slowly to load at first is tried again


@dataclasses.dataclass(eq=False)
class ServedVersion:
    """A version in memory."""

    version: Version
    engine: Engine
    batcher: Batcher  # merges its requests
    requests: int = 0  # that hold it
    replaced: bool = False  # by another version; it is released after its last request


class ModelRoot:
    """A folder of models, of the versions of one model, or of one version; of a URL, a copy that is kept up to date.

    Raises:
        ValueError: the folder does not exist.
    """

    def __init__(self, folder: str | os.PathLike):
        self._source, self._copied_at = location(folder), time.monotonic()
        self._folder = local_copy(self._source).resolve()
        if not self._folder.is_dir():
            raise ValueError(f"{folder} is not a folder; pass one that `albert-tf export` wrote, such as saved_models.")
        self._reported: set[str] = set()

    def scan(self) -> dict[str, list[Version]]:
        """The complete versions by model, newest first; what is skipped is logged once."""
        if is_remote(self._source) and time.monotonic() - self._copied_at > _COPY_SECONDS:
            self._copied_at = time.monotonic()
            local_copy(self._source)
        root = self._folder
        if _is_complete(root):
            name, number = (root.parent.name, root.name) if _VERSION.fullmatch(root.name) else (root.name, "1")
            models = {name: [_version(name, root, number)]}
        else:
            children = self._children(root)
            # A number alone may be the name of a model, such as a year.
            is_model = any(_VERSION.fullmatch(child.name) and _is_complete(child) for child in children)
            models = {model.name: self._versions(model) for model in ([root] if is_model else children)}
        for name, versions in models.items():
            if versions and not _NAME.fullmatch(name):
                self._report(f"{name!r} is not served: a name must have up to 100 letters, digits, `_`, `.` or `-`.")
            elif (
                not versions and not _is_complete(root / name) and any(models.values())
            ):  # without any, `serve` says why
                self._report(f"{root / name} is not served: {why_not_served(root / name).removesuffix('.')}.")
        return {name: versions for name, versions in models.items() if versions and _NAME.fullmatch(name)}

    def _versions(self, model: pathlib.Path) -> list[Version]:
        if _is_complete(model):
            self._report(_UNNUMBERED.format(model))
        versions = []
        for child in self._children(model):
            is_numbered, is_complete = _VERSION.fullmatch(child.name) is not None, _is_complete(child)
            if is_numbered and is_complete:
                versions.append(_version(model.name, child, child.name))
            elif is_numbered:
                missing = "it has neither saved_model.pb with variables nor model.json with onnx."
                self._report(why_not_run(child) or f"{child} is incomplete and ignored: {missing}")
            elif is_complete:
                self._report(_UNNUMBERED.format(child))
        # Of two folders of one number the last by name comes first, as in TensorFlow Serving: 1 before 01.
        return sorted(versions, key=lambda version: (version.number, version.folder.name), reverse=True)

    def _children(self, folder: pathlib.Path) -> list[pathlib.Path]:
        """The folders in `folder`; what cannot be read, such as lost+found, is skipped."""
        folders = [child for child in folder.iterdir() if child.is_dir() and not child.name.startswith(".")]
        readable = [child for child in folders if os.access(child, os.R_OK | os.X_OK)]
        for child in set(folders) - set(readable):
            self._report(f"{child} is ignored: the server may not read it.")
        return readable

    def _report(self, message: str) -> None:
        if message not in self._reported:
            self._reported.add(message)
            _logger.warning(message)


def _is_complete(folder: pathlib.Path) -> bool:
    is_saved_model = (folder / "saved_model.pb").is_file() and (folder / "variables").is_dir()
    return is_saved_model or ((folder / "model.json").is_file() and (folder / "onnx").is_dir())


def _version(model: str, folder: pathlib.Path, number: str) -> Version:
    states = ((file, file.lstat()) for file in folder.rglob("*"))
    stamp = hash(frozenset((file, state.st_ino, state.st_size, state.st_mtime_ns) for file, state in states))
    return Version(model, int(number), folder, stamp)


def why_not_served(folder: str | os.PathLike) -> str:
    """Why a folder has no model to serve, and what to do about it."""
    local = local_copy(location(folder)).resolve()
    if why := why_not_run(local):
        return why
    if holds_weights(local):
        return f"it holds weights; export it first: albert-tf export {folder} --name {local.name}"
    if not any(local.iterdir()):
        return "it is empty; export a model into it with `albert-tf export`"
    if child := next(filter(holds_weights, sorted(local.iterdir())), None):
        path = f"{folder}/{child.name}"
        return f"{path} holds weights; export it first: albert-tf export {path} --name {child.name}"
    return "it has no complete version of a model"


class ServedModels:
    """The newest version of each model that can be loaded.

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
        self._seen: dict[pathlib.Path, Version] = {}  # when it was last looked at

    @contextlib.contextmanager
    def hold(self, name: str, version: str | None = None) -> Iterator[ServedVersion]:
        """Keeps a model in memory during a request, see `find`."""
        served = self.find(name, version)
        served.requests += 1
        try:
            yield served
        finally:
            served.requests -= 1
            _release_if_unused(served)

    def find(self, name: str, version: str | None = None) -> ServedVersion:
        """The version of a model that is served; raises NotFoundError if it is none, or another than `version`."""
        served = self.served.get(name)
        if served is None:
            raise NotFoundError(f"Could not find any versions of model {name[:100]}; /v1/models lists the models.")
        if version not in (None, str(served.version.number)):
            raise NotFoundError(
                f"Could not find version {version[:20]} of {name}; version {served.version.number} is served."
            )
        return served

    async def watch(self) -> None:
        """Looks for new versions every second, until it is cancelled."""
        while True:
            await asyncio.sleep(_SCAN_SECONDS)
            try:
                await self.refresh()
            except (OSError, ValueError) as error:
                _logger.warning("The folder of models could not be read (%s); the loaded versions stay.", error)

    async def refresh(self) -> None:
        """Loads what is newer on disk than in memory."""
        for name, versions in (await asyncio.to_thread(self._root.scan)).items():
            current = self.served.get(name)
            for version in versions:
                if (current is not None and version == current.version) or await self._replace(version, current):
                    break
                if current is not None and version.folder == current.version.folder:
                    break  # its files have changed: the one in memory stays, not an older one

    async def _replace(self, version: Version, current: ServedVersion | None) -> bool:
        """Loads a version and serves it instead of the current one; False if it cannot be loaded.

        One whose files have changed is loaded when they have not for a second: it may still be copied.
        """
        seen, self._seen[version.folder] = self._seen.get(version.folder, version), version
        if version in self.failed or version != seen:
            return False
        try:
            engine = await asyncio.to_thread(self._load, version.folder)
        except Exception as error:
            reason = self.failed[version] = str(error) or type(error).__name__
            stays = f"; version {current.version.number} stays" if current else ""
            _logger.error("Version %d of %s could not be loaded%s: %s", version.number, version.model, stays, reason)
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


def _release_if_unused(served: ServedVersion) -> None:
    if served.replaced and not served.requests:
        served.batcher.close()
        # A SavedModel is freed with the cycles of its functions, later, when no frame holds it.
        asyncio.get_running_loop().call_later(_SCAN_SECONDS, gc.collect)
