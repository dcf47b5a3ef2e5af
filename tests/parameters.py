"""Parameters of tests: those of `make test`, and objects made when a test first asks for them."""

import fcntl
import itertools
import pathlib
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest


def first_of(values: Iterable, count: int = 1) -> list:
    """Marks all but the first `count` as exhaustive; a tuple is one set of arguments."""
    cases = [value if isinstance(value, tuple) else (value,) for value in values]
    marked = (pytest.param(*case, marks=pytest.mark.exhaustive) for case in cases[count:])
    return [*(pytest.param(*case) for case in cases[:count]), *marked]


def diagonal(*factors: Sequence) -> list[tuple]:
    """Sets of arguments in which each value of each factor occurs, where a full product would show no more.

    >>> diagonal("abc", [1, 2])
    [('a', 1), ('b', 2), ('c', 1)]
    """
    count = max(map(len, factors))
    return list(zip(*(itertools.islice(itertools.cycle(factor), count) for factor in factors)))


class MadeOnce(Mapping):
    """Objects by name, each made by its function when it is first asked for, so that collecting tests stays fast.

    With `shared`, a folder that all test workers see, one of them makes an object and the others read it.
    """

    def __init__(self, functions: Mapping[str, Callable[[], object]], shared: pathlib.Path | None = None) -> None:
        self._functions, self._shared, self._made = dict(functions), shared, {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = self._functions[name]() if self._shared is None else self._read_or_make(name)
        return self._made[name]

    def _read_or_make(self, name: str) -> Any:
        pickled = self._shared / f"{name}.pickle"
        with open(pickled.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not pickled.exists():
                pickled.write_bytes(pickle.dumps(self._functions[name]()))
        return pickle.loads(pickled.read_bytes())

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)
