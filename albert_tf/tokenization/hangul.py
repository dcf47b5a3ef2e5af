"""A warning for vocabularies of Korean syllables behind a clean-up that takes syllables apart."""

import re
import warnings
from collections.abc import Callable, Iterable

_SYLLABLE = re.compile("[가-힣]")


def warn_of_lost_hangul(pieces: Iterable[str], clean: Callable[[str], str], source: str) -> None:
    """Warns where pieces hold syllables of Hangul, and cleaned text never does: nearly all of it would be unknown.

    Dropping accents decomposes characters; most SentencePiece models put syllables together again afterwards.

    Args:
        pieces: the vocabulary.
        clean: the clean-up, with the model's own rules behind it.
        source: where the vocabulary came from.

    Example:

    >>> warn_of_lost_hangul(["▁밥", "을"], str.lower, "spiece.model")
    """
    found = _SYLLABLE.search("".join(pieces))
    if found and found[0] not in clean(found[0]):
        warnings.warn(
            "`keep_accents` should be True for a vocabulary of whole syllables of Hangul that does not put them "
            f"together itself. Received: keep_accents=False for {source}; nearly all Korean text becomes unknown.",
            stacklevel=3,
        )
