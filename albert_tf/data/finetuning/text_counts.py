"""Counts the texts that were cut or had no tokens, so that whoever asked for predictions is told once."""

import contextlib
import contextvars
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass
class TextCounts:
    """How many texts were encoded.

    Attributes:
        total: number of them.
        cut: number of those of which a part was left out.
        empty: number of those that had no tokens.
        unit: what they are called.
        cause: why some were cut, and what to do.
    """

    total: int = 0
    cut: int = 0
    empty: int = 0
    unit: str = "texts"
    cause: str = ""

    def add(self, other: "TextCounts") -> None:
        """Adds the counts of other texts."""
        self.total, self.cut, self.empty = self.total + other.total, self.cut + other.cut, self.empty + other.empty
        self.unit, self.cause = other.unit, other.cause

    def sentences(self) -> Iterator[str]:
        """What to tell of these texts, if anything."""
        if self.cut:
            yield f"{self.cut:,} of {self.total:,} {self.unit} {self.cause}."
        if self.empty:
            yield (
                f"{self.empty:,} of {self.total:,} {self.unit} had no tokens: they are empty, or the vocabulary leaves "
                "all of their characters out."
            )


_current: contextvars.ContextVar[TextCounts | None] = contextvars.ContextVar("text_counts", default=None)


@contextlib.contextmanager
def count_texts() -> Iterator[TextCounts]:
    """Adds up the counts of all texts that are encoded in the context; nothing warns of them there."""
    counts = TextCounts()
    token = _current.set(counts)
    try:
        yield counts
    finally:
        _current.reset(token)


@contextlib.contextmanager
def report_together() -> Iterator[None]:
    """Reports what is encoded in the context once, at its end."""
    with count_texts() as counts:
        yield
    report(counts)


def report(counts: TextCounts) -> None:
    """Adds counts to those of the context of `count_texts`; without one, warns of them."""
    if (current := _current.get()) is not None:
        current.add(counts)
        return
    for sentence in counts.sentences():
        warnings.warn(sentence, stacklevel=2)


def report_parts(parts: np.ndarray, unit: str = "texts", cause: str = "") -> None:
    """Reports the sums of what `counts_of` returned for parts of the texts, int64 [3 * parts]; see TextCounts."""
    total, cut, empty = parts.reshape(-1, 3).sum(axis=0).tolist()
    report(TextCounts(total, cut, empty, unit, cause))


def counts_of(lengths: np.ndarray, is_cut: Any = False) -> np.ndarray:
    """The numbers of texts, of those cut and of those without tokens, int64 [3].

    Args:
        lengths: number of tokens of each text, int [N].
        is_cut: whether a part of it was left out, bool [N]; or False, if all are read whole.
    """
    return np.array([len(lengths), np.count_nonzero(is_cut), np.count_nonzero(lengths == 0)], np.int64)
