"""The clean-up of text for vocabulary files: BERT's rules, as a table from characters to their replacements.

Rules apply to single characters, so that they are the same in Python, in TensorFlow graphs and for offsets. As a
consequence, a capital sigma at the end of a Greek word becomes "σ" instead of "ς". With `recompose`, conjoining Hangul
jamo are composed to syllables before.
"""

import unicodedata
from dataclasses import dataclass

import numpy as np

from albert_tf.tokenization.hangul import compose_syllables

CODE_POINTS = 0x110000
SPACE = 0x20
# As in the reference: Han characters, without Japanese kana and Korean Hangul.
_CHINESE = (
    *(range(0x4E00, 0xA000), range(0x3400, 0x4DC0), range(0x20000, 0x2A6E0), range(0x2A700, 0x2B740)),
    *(range(0x2B740, 0x2B820), range(0x2B820, 0x2CEB0), range(0xF900, 0xFB00), range(0x2F800, 0x2FA20)),
)
_ASCII_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


@dataclass(frozen=True)
class Part:
    """A character of a replacement."""

    character: str  # a space separates words
    alone: bool = False  # whether it is a separate word

    @property
    def code(self) -> int:
        """Both fields as one number: twice the code point, plus one for a separate word."""
        return 2 * ord(self.character) + self.alone


@dataclass(frozen=True)
class CleanUp:
    """The clean-up rules.

    Attributes:
        do_lower_case: lower-case characters.
        strip_accents: drop accents and other non-spacing marks.
        recompose: compose characters again after dropping accents, and compose conjoining Hangul jamo to syllables. The
            reference does not, so Korean words become unknown there.
        split_punctuation: make punctuation characters separate words.
        split_chinese: make Chinese characters separate words.

    Example:

    >>> clean = CleanUp(True, True, True, split_punctuation=True, split_chinese=True)
    >>> "".join(map(clean.apply, "É각\\u200b!"))
    'e각 ! '

    References:
        `BasicTokenizer` in google-research/albert, tokenization.py.
    """

    do_lower_case: bool
    strip_accents: bool
    recompose: bool
    split_punctuation: bool
    split_chinese: bool

    def prepare(self, text: str) -> str:
        """Composes jamo, if required, before characters are rewritten; the length of the text stays the same."""
        return compose_syllables(text) if self.recompose else text

    def rewrite(self, character: str) -> tuple[Part, ...]:
        """The replacement of a character: nothing, a space, or characters."""
        if _is_dropped(character):
            return ()
        if character.isspace():
            return (Part(" "),)
        alone = self.split_chinese and _is_chinese(character)
        parts = self._change(character)
        return tuple(Part(part, alone or (self.split_punctuation and _is_punctuation(part))) for part in parts)

    def apply(self, character: str) -> str:
        """The replacement of a character, with spaces around separate words."""
        return "".join(f" {part.character} " if part.alone else part.character for part in self.rewrite(character))

    def keeps(self, block: str) -> bool:
        """Whether no character of a Unicode block is changed; fast, but may return False for such blocks too."""
        if any(map(_is_dropped, block)) or any(map(str.isspace, block)) or any(map(_is_punctuation, block)):
            return False
        return not _is_chinese(block[0]) and self._change(block) == block

    def _change(self, text: str) -> str:
        text = text.lower() if self.do_lower_case else text
        if self.strip_accents:
            text = _without_accents(text)
            text = unicodedata.normalize("NFC", text) if self.recompose else text
        return text


class CharacterTable(dict):
    """A lazily filled table of replacements for `str.translate`, with spaces around separate words."""

    def __init__(self, clean_up: CleanUp):
        super().__init__()
        self.clean_up = clean_up

    def __missing__(self, code_point: int) -> str:
        self[code_point] = text = self.clean_up.apply(chr(code_point))
        return text

    def clean(self, text: str) -> str:
        """Cleans a text."""
        return self.clean_up.prepare(text).translate(self)

    def clean_with_origins(self, text: str) -> tuple[str, np.ndarray]:
        """As `clean`, and the position in the original of each character, and of the end."""
        parts = [self[ord(character)] for character in self.clean_up.prepare(text)]
        return "".join(parts), np.repeat(np.arange(len(parts) + 1), [*map(len, parts), 1])


def _is_dropped(character: str) -> bool:
    if character in "\t\n\r":
        return False
    return character == "\ufffd" or unicodedata.category(character) in ("Cc", "Cf")


def _is_chinese(character: str) -> bool:
    return any(ord(character) in block for block in _CHINESE)


def _is_punctuation(character: str) -> bool:
    return character in _ASCII_PUNCTUATION or unicodedata.category(character).startswith("P")


def _without_accents(text: str) -> str:
    decomposed = unicodedata.normalize("NFD", text)
    return "".join(character for character in decomposed if unicodedata.category(character) != "Mn")
