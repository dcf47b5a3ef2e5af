"""Where in the original text the pieces of words come from."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from albert_tf.tokenization.characters import CleanUp
from albert_tf.tokenization.piece_model import EncodedWithOffsets

_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class Word:
    """A word of a cleaned text, and where it begins there."""

    text: str
    start: int


@dataclass(frozen=True)
class CleanedText:
    """A text after the clean-up.

    Attributes:
        text: the cleaned text, a space between words.
        origins: for each of its characters, and for its end, the place in the original.
    """

    text: str
    origins: np.ndarray

    @classmethod
    def of(cls, text: str, clean_up: CleanUp) -> "CleanedText":
        """Cleans a text."""
        characters: list[str] = []
        origins: list[int] = []
        rewritten: dict[str, str] = {}
        for place, character in enumerate(text):
            if character not in rewritten:
                rewritten[character] = clean_up.spell(character)
            characters.append(rewritten[character])
            origins += [place] * len(rewritten[character])
        return cls("".join(characters), np.array([*origins, len(text)], np.int64))

    def words(self) -> list[Word]:
        """Returns the words in order."""
        return [Word(match[0], match.start()) for match in _WORD.finditer(self.text)]


def place_pieces(
    cleaned: CleanedText, rows: Sequence[np.ndarray], lengths: Sequence[Sequence[int]], text: str | bytes
) -> EncodedWithOffsets:
    """Gives every id its span.

    Args:
        cleaned: the cleaned text.
        rows: the ids of each of its words.
        lengths: how many characters of the word each id covers.
        text: the original; spans are in bytes where it is bytes.

    Returns:
        Ids and spans. Characters that the clean-up drops belong to the piece in front of them.
    """
    starts = [word.start for word in cleaned.words()]
    ends = [start + np.cumsum(row) for start, row in zip(starts, lengths, strict=True)]
    if not ends:
        return EncodedWithOffsets(np.zeros(0, np.int32), np.zeros((0, 2), np.int32))
    last = np.concatenate(ends)
    taken = np.concatenate([np.array(row) for row in lengths])
    origins = cleaned.origins
    # What became several characters is covered by every id with a part of it: an id ends where the next origin begins.
    following = origins[np.searchsorted(origins, origins[:-1], side="right")]
    spans = np.stack([origins[last - taken], following[np.maximum(last - 1, 0)]], axis=1)
    # A piece that only marks the end of a word takes nothing.
    spans[taken == 0, 0] = spans[taken == 0, 1]
    if isinstance(text, bytes):
        characters = text.decode("utf-8", "surrogateescape")
        spans = np.cumsum([0, *(len(one.encode("utf-8", "surrogateescape")) for one in characters)])[spans]
    return EncodedWithOffsets(np.concatenate(rows), spans.astype(np.int32))
