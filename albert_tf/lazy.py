"""Names that are imported when they are first used, and what is done when another module is first imported."""

import contextlib
import importlib
import importlib.abc
import importlib.util
import inspect
import re
import sys
import threading
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

# Held while modules are first imported that import Keras or TensorFlow: these do not allow two threads to.
FIRST_IMPORTS = threading.RLock()
# An import for type checkers: the module, and its names in or without parentheses.
_IMPORT = re.compile(r"^    from (\S+) import (?:\(([^)]*)\)|(.+))$", re.MULTILINE)


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package (PEP 562), whose names are those that it imports for type checkers.

    A name must not be that of its module, which would hide it once the module is imported.

    Args:
        package: the package's `__name__`.
    """
    loader: Any = sys.modules[package].__loader__  # of a folder, or of a zip archive
    imports = _IMPORT.findall(loader.get_source(package))
    module_of = {name: module for module, *names in imports for name in re.findall(r"\w+", "".join(names))}

    def get_name(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        # In the middle of an import another thread may wait for this one.
        with contextlib.nullcontext() if _is_importing() else FIRST_IMPORTS:
            if module_of[name] == package:  # a module of the package itself
                return importlib.import_module(f"{package}.{name}")
            return getattr(importlib.import_module(module_of[name]), name)

    return get_name, lambda: sorted(sys.modules[package].__all__)


def _is_importing() -> bool:
    """Whether this thread executes a module for the first time, and so holds its lock."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_name != "_find_and_load":  # of importlib
        frame = frame.f_back
    return frame is not None


class FirstImport(importlib.abc.MetaPathFinder):
    """A finder for `sys.meta_path` that calls a function when a module is imported.

    It stays there: other threads may be going through the list.

    Args:
        name: the module's name.
        execute: called with the module and the function that executes its code, which it has to call.
    """

    def __init__(self, name: str, execute: Callable[[ModuleType, Callable[[ModuleType], None]], None]):
        self._name, self._execute, self._is_used = name, execute, False

    def find_spec(self, fullname, path=None, target=None) -> ModuleSpec | None:
        if fullname != self._name or self._is_used:
            return None
        self._is_used = True
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            loader, run = spec.loader, spec.loader.exec_module
            loader.exec_module = lambda module: self._execute(module, run)
        return spec
