"""The models in a folder: finds the newest version of each, loads it in the background and swaps it.

A request keeps the version that it found; one that was replaced is released when no request can still use it.
"""

import asyncio
import dataclasses
import logging
import os
import pathlib
import re
import time
from collections.abc import Callable, Sequence

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
_logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Version:
    """A complete version on disk."""

    model: str
    number: int
    folder: pathlib.Path
    stamp: int  # changes with the files in it, so that one that was copied too slowly to load at first is tried again


@dataclasses.dataclass(frozen=True, eq=False)
class ServedVersion:
    """A version in memory, and what merges its requests."""

    version: Version
    engine: Engine
    batcher: Batcher


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
        self._reported: set[pathlib.Path] = set()

    def scan(self) -> dict[str, list[Version]]:
        """The complete versions by model, newest first; what is skipped is logged once."""
        if is_remote(self._source) and time.monotonic() - self._copied_at > _COPY_SECONDS:
            self._copied_at = time.monotonic()
            local_copy(self._source)
        root = self._folder
        folders = [root] if _is_complete(root) else sorted([*root.glob("[!.]*"), *root.glob("[!.]*/[!.]*")])
        models: dict[str, list[Version]] = {}
        served = set()
        for folder in filter(_is_complete, folders):
            name, number = folder.parent.name, folder.name
            if folder == root and not _VERSION.fullmatch(number):
                name, number = number, "1"
            if not _VERSION.fullmatch(number):
                self._report(folder, "the folder of a version must be named by its number, such as 1")
            elif not _NAME.fullmatch(name):
                self._report(folder.parent, "a name must have up to 100 letters, digits, `_`, `.` or `-`")
            else:
                models.setdefault(name, []).append(_version(name, folder, int(number)))
                served.add(folder.parent)
        if models:  # without any, `serve` says why
            self._report_others(folders, served)
        # Of two folders of one number the last by name comes first, as in TensorFlow Serving: 1 before 01.
        return {
            name: sorted(versions, key=lambda version: (version.number, version.folder.name), reverse=True)
            for name, versions in models.items()
        }

    def _report_others(self, folders: Sequence[pathlib.Path], served: set[pathlib.Path]) -> None:
        """Logs which folders of models have no version that is complete, and which versions of served ones are not."""
        for folder in folders:
            if _is_complete(folder) or not folder.is_dir():
                continue
            is_version = folder.parent in served and _VERSION.fullmatch(folder.name)
            if is_version or (folder.parent == self._folder and not {folder, folder.parent} & served):
                try:
                    self._report(folder, why_not_served(folder))
                except PermissionError:  # such as of lost+found
                    self._report(folder, "the server may not read it")
                except (OSError, ValueError) as error:  # such as of a link that leads to no file
                    self._report(folder, str(error))

    def _report(self, folder: pathlib.Path, reason: str) -> None:
        if folder not in self._reported:
            self._reported.add(folder)
            _logger.warning("%s is not served: %s.", folder, reason.removesuffix("."))


def _is_complete(folder: pathlib.Path) -> bool:
    parts = ("saved_model.pb", "variables"), ("model.json", "onnx")
    return any(all(os.path.exists(folder / name) for name in names) for names in parts)


def _version(model: str, folder: pathlib.Path, number: int) -> Version:
    states = ((file, file.lstat()) for file in folder.rglob("*"))
    stamp = hash(frozenset((file, state.st_ino, state.st_size, state.st_mtime_ns) for file, state in states))
    return Version(model, number, folder, stamp)


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
    return "it has no complete version of a model: saved_model.pb with variables, or model.json with onnx"


class ServedModels:
    """The newest version of each model that can be loaded.

    Args:
        root: ModelRoot.
        load: makes the Engine of a folder; runs in a thread.
        make_batcher: makes the Batcher of a model's engine.
    """

    def __init__(
        self, root: ModelRoot, load: Callable[[pathlib.Path], Engine], make_batcher: Callable[[str, Engine], Batcher]
    ):
        self._root, self._load, self._make_batcher = root, load, make_batcher
        self.served: dict[str, ServedVersion] = {}
        self.failed: dict[Version, str] = {}
        self._seen: dict[pathlib.Path, Version] = {}  # when it was last looked at

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
            current.batcher.retire()
        return True

    def close(self) -> None:
        """Releases all models; no request may be running."""
        for served in self.served.values():
            served.batcher.close()
        self.served.clear()
