"""What exports are compared on with their Keras models, and checks of their options."""

from typing import Any

import numpy as np

# Texts on which an export is compared with its Keras model.
SAMPLES = ("A first text.", "", "Another text, longer than the first, with 1,000 words: 둘.", "word " * 600)


def check_length(name: str, length: Any, longest: int) -> None:
    """Raises ValueError unless a model with `longest` positions can take `length` tokens, of which two are special."""
    if type(length) is not int or not 3 <= length <= longest:
        raise ValueError(f"`{name}` must be an integer from 3 to {longest}. Received: {name}={length!r}.")


def without_none(**options: Any) -> dict[str, Any]:
    """The options that are given."""
    return {name: value for name, value in options.items() if value is not None}


def relative_difference(name: str, computed: np.ndarray, expected: np.ndarray) -> float:
    """Maximum absolute difference of an output called `name`, in units of the largest number if that is above 1."""
    if "_top_" in name:  # starts with almost the same score may change places, and so may their ends
        computed, expected = np.sort(computed), np.sort(expected)
    return float(np.abs(computed - expected).max() / max(1.0, np.abs(expected).max()))
