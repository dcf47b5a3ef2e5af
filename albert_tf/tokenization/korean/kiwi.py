"""Morphemes of Korean: where Kiwi, a morphological analyser, sees borders inside words.

Korean glues particles and endings to its words: "밥을" is "밥" (rice) and "을" (object). A segmenter puts the character
`BORDER` at each such border, and changes nothing else. In the vocabulary `BORDER` is a piece of its own, so no other
piece crosses it, in training as in use; its ids are then dropped (see `segmented_model`). A space would not do
instead: the spaces that the writer put would be lost among those of the analyser.
"""

import functools
import importlib
import itertools
import re
import unicodedata
import warnings
from collections.abc import Sequence
from typing import Any

from albert_tf.tokenization.hangul import SPELLED_OUT

# Code points that Unicode keeps free for marks inside a program: no text holds them.
BORDER, _UNKNOWN = "\ufdd0", "\ufdd1"
SEGMENTERS = ("kiwi",)

# Kiwi takes time quadratic in the length of a text; most texts are far shorter than this.
_CHUNK = re.compile(r"(?s).{1,500}(?=\s|\Z)|.{1,500}")
_UNIT = re.compile(f"(?s){SPELLED_OUT}|.")
_UNREADABLE = re.compile(f"[\ud800-\udfff{BORDER}]")


def load_segmenter(name: str, recorded_version: str | None = None) -> "KiwiSegmenter":
    """Returns the segmenter of this name; warns if a vocabulary was trained with another version of it.

    Raises:
        ValueError: if there is no segmenter of this name, or its package is not installed.
    """
    if name not in SEGMENTERS:
        raise ValueError(f"`segmenter` must be one of {', '.join(SEGMENTERS)}. Received: segmenter={name!r}.")
    segmenter = KiwiSegmenter()
    if recorded_version not in (None, segmenter.version):
        warnings.warn(
            f"kiwipiepy should have the version that the vocabulary was trained with, as others may see other "
            f"borders of morphemes. Received: {segmenter.version}; `pip install kiwipiepy=={recorded_version}`.",
            stacklevel=2,
        )
    return segmenter


class KiwiSegmenter:
    """Marks borders inside words, where Kiwi sees them; ValueError if kiwipiepy is not installed."""

    name = "kiwi"

    def __init__(self):
        self.version: str = _kiwipiepy().__version__

    def mark(self, texts: Sequence[str]) -> list[str]:
        """Returns the texts with `BORDER` put in; lone surrogates, and `BORDER` itself, become an unknown character."""
        texts = [_UNREADABLE.sub(_UNKNOWN, text) for text in texts]
        chunks = [_CHUNK.findall(text) for text in texts]
        analysed = iter(_kiwi().tokenize(_composed(chunk) for chunk in itertools.chain(*chunks)))
        return ["".join(_cut(chunk, {m.start for m in next(analysed)}) for chunk in parts) for parts in chunks]


def _cut(chunk: str, starts: set[int]) -> str:
    """Puts `BORDER` in front of the syllables at `starts`, but for those that begin a word or belong to the one before.

    >>> _cut("밥을 먹었다", {0, 1, 3, 4, 5}).replace(BORDER, "|")
    '밥|을 먹|었|다'
    """
    units = _UNIT.findall(chunk)
    marked = units[:1]
    for position, (before, unit) in enumerate(itertools.pairwise(units), start=1):
        inside = not (before.isspace() or unit.isspace() or unicodedata.combining(unit[0]))
        marked.append(BORDER + unit if inside and position in starts else unit)
    return "".join(marked)


def _composed(chunk: str) -> str:
    """Makes one character of each syllable that is written in conjoining letters, which Kiwi does not know.

    >>> _composed("\u1107\u1161\u11b8 cafe\u0301") == "밥 cafe\u0301"
    True
    """
    return _UNIT.sub(lambda match: unicodedata.normalize("NFC", match[0]) if len(match[0]) > 1 else match[0], chunk)


@functools.cache
def _kiwi() -> Any:
    # Loading takes about a second and 100 MB: once in a process, and only where text comes.
    return _kiwipiepy().Kiwi()


def _kiwipiepy() -> Any:
    try:
        return importlib.import_module("kiwipiepy")
    except ImportError as error:
        raise ValueError(
            "segmenter='kiwi' must have its package. Received: an environment without kiwipiepy; "
            "`pip install albert_tf[korean]`."
        ) from error
