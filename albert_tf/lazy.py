"""Packages whose names are imported when they are first used, so that importing the package itself costs nothing."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(package: str, module_of: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package (PEP 562).

    A name must not be that of its module, which would hide it once the module is imported.

    Args:
        package: the package's `__name__`.
        module_of: for each name the module below the package that defines it.
    """

    def get_name(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{module_of[name]}"), name)

    return get_name, lambda: sorted(module_of)
