"""Parameters of which `make test` takes the first alone; the others run with the exhaustive tests."""

from collections.abc import Iterable

import pytest


def first_of(values: Iterable) -> list:
    """Marks all but the first one as exhaustive; a tuple is one set of arguments."""
    first, *others = [value if isinstance(value, tuple) else (value,) for value in values]
    return [pytest.param(*first), *(pytest.param(*other, marks=pytest.mark.exhaustive) for other in others)]
