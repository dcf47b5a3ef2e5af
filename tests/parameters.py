"""Parameters of tests: those of `make test`, and objects made when a test first asks for them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pytest


def first_of(values: Iterable) -> list:
    """Marks all but the first one as exhaustive; a tuple is one set of arguments."""
    first, *others = [value if isinstance(value, tuple) else (value,) for value in values]
    return [pytest.param(*first), *(pytest.param(*other, marks=pytest.mark.exhaustive) for other in others)]


class MadeOnce(Mapping):
    """Objects by name, each made by its function when it is first asked for, so that collecting tests stays fast."""

    def __init__(self, functions: Mapping[str, Callable[[], object]]) -> None:
        self._functions, self._made = dict(functions), {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = self._functions[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)
