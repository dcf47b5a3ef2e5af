"""Marks boundaries of Korean morphemes with Kiwi, a morphological analyser.

Korean attaches particles and endings to words: "밥을" is "밥" (rice) and "을" (object). A segmenter inserts the
character `BORDER` at such boundaries, and changes nothing else. `BORDER` is a separate piece of the vocabulary, so no
other piece crosses it, and its ids are dropped (see `segmented_model`). Unlike a space, it cannot be confused with the
text's own.
"""

import functools
import importlib
import itertools
import re
import unicodedata
import warnings
from collections.abc import Sequence
from typing import Any

from albert_tf.files.installation import install_command
from albert_tf.tokenization.hangul import SPELLED_OUT, compose_syllables
from albert_tf.tokenization.interface import UNREADABLE

# A noncharacter, which Unicode reserves for internal use.
BORDER = "\ufdd0"
SEGMENTER = "kiwi"

# Kiwi's time is quadratic in the length of a text, so long texts are processed in chunks.
_CHUNK = re.compile(r"(?s).{1,500}(?=\s|\Z)|.{1,500}")
_UNIT = re.compile(f"(?s){SPELLED_OUT}|.")
_UNREADABLE = re.compile(f"[\ud800-\udfff{BORDER}]")


def check_segmenter(name: Any, recorded_version: str | None = None) -> None:
    """Warns if a vocabulary was trained with another version of its segmenter.

    Raises:
        ValueError: there is no segmenter of this name, or its package is not installed.
    """
    if name != SEGMENTER:
        raise ValueError(f"`segmenter` must be {SEGMENTER!r}. Received: segmenter={name!r}.")
    if recorded_version not in (None, segmenter_version()):
        warnings.warn(
            f"The vocabulary was trained with kiwipiepy {recorded_version}, but {segmenter_version()} is installed and "
            f"may segment differently; `pip install kiwipiepy=={recorded_version}`.",
            stacklevel=2,
        )


def segmenter_version() -> str:
    """The version of kiwipiepy; raises ValueError if it is not installed."""
    return _kiwipiepy().__version__


def mark_borders(texts: Sequence[str]) -> list[str]:
    """Inserts `BORDER` into texts; lone surrogates, and `BORDER` itself, become an unknown character."""
    texts = [_UNREADABLE.sub(UNREADABLE, text) for text in texts]
    chunks = [_CHUNK.findall(text) for text in texts]
    # Kiwi does not support conjoining jamo.
    composed = (compose_syllables(chunk, keep_length=False) for chunk in itertools.chain(*chunks))
    analysed = iter(_kiwi().tokenize(composed))
    return ["".join(_cut(chunk, {m.start for m in next(analysed)}) for chunk in parts) for parts in chunks]


def _cut(chunk: str, starts: set[int]) -> str:
    """Inserts `BORDER` before the syllables at `starts`, except at the beginning of words and before combining marks.

    >>> _cut("밥을 먹었다", {0, 1, 3, 4, 5}).replace(BORDER, "|")
    '밥|을 먹|었|다'
    """
    units = _UNIT.findall(chunk)
    marked = units[:1]
    for position, (before, unit) in enumerate(itertools.pairwise(units), start=1):
        inside = not (before.isspace() or unit.isspace() or unicodedata.combining(unit[0]))
        marked.append(BORDER + unit if inside and position in starts else unit)
    return "".join(marked)


@functools.cache
def _kiwi() -> Any:
    # Loading takes about a second and 100 MB.
    return _kiwipiepy().Kiwi()


def _kiwipiepy() -> Any:
    try:
        return importlib.import_module("kiwipiepy")
    except ImportError as error:
        raise ValueError(f"segmenter='kiwi' needs the package kiwipiepy; {install_command('korean')}.") from error
