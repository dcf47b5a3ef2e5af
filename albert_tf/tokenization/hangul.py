"""Syllables of Hangul: composed where they are written in conjoining letters; a warning where they would get lost."""

import re
import unicodedata
import warnings
from collections.abc import Callable, Iterable

_SYLLABLE = re.compile("[가-힣]")
# Unicode composes these alone: 19 leading letters, 21 vowels, 27 trailing letters.
_JOINS = re.compile("[\u1161-\u1175\u11a8-\u11c2]")
_OPEN_SYLLABLES = "".join(map(chr, range(ord("가"), ord("힣") + 1, 28)))
SPELLED_OUT = f"[\u1100-\u1112][\u1161-\u1175][\u11a8-\u11c2]?|[{_OPEN_SYLLABLES}][\u11a8-\u11c2]"
_SPELLED_OUT = re.compile(SPELLED_OUT)
# Every clean-up drops it.
_NOTHING = "\0"


def compose_syllables(text: str) -> str:
    """Makes one character of each syllable of Hangul that is written in conjoining letters.

    The length stays: the syllable replaces its first letter, U+0000 the others (The Unicode Standard, 3.12).

    >>> compose_syllables("\\u1107\\u1161\\u11b8 cafe\\u0301") == "밥\\0\\0 cafe\\u0301"
    True
    """
    if text.isascii() or not _JOINS.search(text):
        return text
    return _SPELLED_OUT.sub(lambda match: unicodedata.normalize("NFC", match[0]).ljust(len(match[0]), _NOTHING), text)


def joins_loose_letters(pieces: Iterable[str], clean: Callable[[str], str]) -> bool:
    """Tells whether pieces hold syllables of Hangul, and `clean` composes such of loose letters that meet ("ㅋㅣ").

    >>> joins_loose_letters(["▁밥", "을"], str.lower)
    False
    """
    return bool(_SYLLABLE.search("".join(pieces))) and clean("ㅋㅣ").endswith("키")


def warn_of_lost_letters(pieces: Iterable[str], source: str) -> None:
    """Warns of pieces that write Hangul in conjoining letters where none holds a syllable, as text then does."""
    text = "".join(pieces)
    if _JOINS.search(text) and not _SYLLABLE.search(text):
        warnings.warn(
            "`reference_accents` should be True for a vocabulary of conjoining letters of Hangul. Received: "
            f"reference_accents=False for {source}; letters are put together, and Korean text becomes unknown.",
            stacklevel=3,
        )


def warn_of_lost_hangul(pieces: Iterable[str], clean: Callable[[str], str], source: str) -> None:
    """Warns where pieces hold syllables of Hangul, and cleaned text never does: nearly all of it would be unknown.

    Dropping accents decomposes characters; most SentencePiece models compose syllables again afterwards.
    """
    found = _SYLLABLE.search("".join(pieces))
    if found and found[0] not in clean(found[0]):
        warnings.warn(
            "`keep_accents` should be True for a vocabulary of complete syllables of Hangul that does not compose them "
            f"together itself. Received: keep_accents=False for {source}; nearly all Korean text becomes unknown.",
            stacklevel=3,
        )
