"""Hangul: composes conjoining jamo to syllables, and warns if a vocabulary would lose Hangul."""

import re
import unicodedata
import warnings
from collections.abc import Callable, Iterable

_SYLLABLE = re.compile("[가-힣]")
# The jamo that Unicode composes: 19 leading consonants, 21 vowels, 27 trailing consonants.
_JOINS = re.compile("[\u1161-\u1175\u11a8-\u11c2]")
_OPEN_SYLLABLES = "".join(map(chr, range(ord("가"), ord("힣") + 1, 28)))
SPELLED_OUT = f"[\u1100-\u1112][\u1161-\u1175][\u11a8-\u11c2]?|[{_OPEN_SYLLABLES}][\u11a8-\u11c2]"
_SPELLED_OUT = re.compile(SPELLED_OUT)
# Dropped by every clean-up.
_NOTHING = "\0"


def compose_syllables(text: str, *, keep_length: bool = True) -> str:
    """Composes conjoining jamo to syllables (The Unicode Standard, 3.12).

    To keep the length of the text, U+0000 replaces all but the first jamo of a syllable.

    >>> compose_syllables("\\u1107\\u1161\\u11b8 cafe\\u0301") == "밥\\0\\0 cafe\\u0301"
    True
    """
    if text.isascii() or not _JOINS.search(text):
        return text

    def compose(match: re.Match[str]) -> str:
        return unicodedata.normalize("NFC", match[0]).ljust(len(match[0]) if keep_length else 0, _NOTHING)

    return _SPELLED_OUT.sub(compose, text)


def joins_loose_letters(pieces: Iterable[str], clean: Callable[[str], str]) -> bool:
    """Whether pieces contain Hangul syllables, and `clean` composes adjacent jamo ("ㅋㅣ") to syllables.

    >>> joins_loose_letters(["▁밥", "을"], str.lower)
    False
    """
    return bool(_SYLLABLE.search("".join(pieces))) and clean("ㅋㅣ").endswith("키")


def warn_of_lost_letters(pieces: Iterable[str], source: str) -> None:
    """Warns if pieces contain conjoining jamo but no syllables, because text is composed to syllables."""
    text = "".join(pieces)
    if _JOINS.search(text) and not _SYLLABLE.search(text):
        warnings.warn(
            "`reference_accents` should be True for a vocabulary of conjoining Hangul jamo. Received: "
            f"reference_accents=False for {source}; jamo are composed to syllables, so Korean text becomes unknown.",
            stacklevel=3,
        )


def warn_of_lost_hangul(pieces: Iterable[str], clean: Callable[[str], str], source: str) -> None:
    """Warns if pieces contain Hangul syllables but cleaned text does not, so that it would be unknown.

    Dropping accents decomposes characters; most SentencePiece models compose syllables again.
    """
    syllable = _SYLLABLE.search("".join(pieces))
    if syllable and syllable[0] not in clean(syllable[0]):
        warnings.warn(
            "`keep_accents` should be True for a vocabulary of Hangul syllables whose normaliser does not compose "
            f"them. Received: keep_accents=False for {source}; nearly all Korean text becomes unknown.",
            stacklevel=3,
        )
