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

    Args:
        text: a text.

    Returns:
        A text of the same length: the syllable stands in the first letter's position, U+0000 in that of the others.

    Example:

    >>> compose_syllables("\\u1107\\u1161\\u11b8 cafe\\u0301") == "밥\\0\\0 cafe\\u0301"
    True

    References:
        The Unicode Standard, 3.12, "Conjoining Jamo Behavior".
    """
    if text.isascii() or not _JOINS.search(text):
        return text
    return _SPELLED_OUT.sub(lambda match: unicodedata.normalize("NFC", match[0]).ljust(len(match[0]), _NOTHING), text)


def joins_loose_letters(pieces: Iterable[str], clean: Callable[[str], str]) -> bool:
    """Tells whether pieces hold syllables of Hangul, and the clean-up makes such of loose letters that meet ("ㅋㅣ").

    Args:
        pieces: the vocabulary.
        clean: the clean-up, with the model's own rules after it.

    Example:

    >>> joins_loose_letters(["▁밥", "을"], str.lower)
    False
    """
    return bool(_SYLLABLE.search("".join(pieces))) and clean("ㅋㅣ").endswith("키")


def warn_of_lost_letters(pieces: Iterable[str], source: str) -> None:
    """Warns of pieces that write Hangul in conjoining letters where none holds a syllable, as text then does.

    Args:
        pieces: the vocabulary.
        source: where the vocabulary came from.

    Example:

    >>> warn_of_lost_letters(["밥", "##을"], "vocab.txt")
    """
    text = "".join(pieces)
    if _JOINS.search(text) and not _SYLLABLE.search(text):
        warnings.warn(
            "`reference_accents` should be True for a vocabulary of conjoining letters of Hangul. Received: "
            f"reference_accents=False for {source}; letters are put together, and Korean text becomes unknown.",
            stacklevel=3,
        )


def warn_of_lost_hangul(pieces: Iterable[str], clean: Callable[[str], str], source: str) -> None:
    """Warns where pieces hold syllables of Hangul, and cleaned text never does: nearly all of it would be unknown.

    Dropping accents decomposes characters; most SentencePiece models put syllables together again afterwards.

    Args:
        pieces: the vocabulary.
        clean: the clean-up, with the model's own rules after it.
        source: where the vocabulary came from.

    Example:

    >>> warn_of_lost_hangul(["▁밥", "을"], str.lower, "spiece.model")
    """
    found = _SYLLABLE.search("".join(pieces))
    if found and found[0] not in clean(found[0]):
        warnings.warn(
            "`keep_accents` should be True for a vocabulary of complete syllables of Hangul that does not compose them "
            f"together itself. Received: keep_accents=False for {source}; nearly all Korean text becomes unknown.",
            stacklevel=3,
        )
