"""The clean-up of text for vocabulary files: BERT's rules, as a table from each character to what becomes of it.

A rule sees one character at a time, so that it gives the same in Python, in a TensorFlow graph and for offsets. What
looks at neighbours is out of its reach: a capital sigma at the end of a Greek word becomes "σ" and not "ς". Hangul that
is written in conjoining letters is composed to syllables before, where `recompose` says so.
"""

import unicodedata
from dataclasses import dataclass

from albert_tf.tokenization.hangul import compose_syllables
from albert_tf.tokenization.interface import raise_not_text

CODE_POINTS = 0x110000
SPACE = 0x20
# As the reference has them: Han characters without Japanese kana and Korean Hangul, which are written in words.
_CHINESE = (
    *(range(0x4E00, 0xA000), range(0x3400, 0x4DC0), range(0x20000, 0x2A6E0), range(0x2A700, 0x2B740)),
    *(range(0x2B740, 0x2B820), range(0x2B820, 0x2CEB0), range(0xF900, 0xFB00), range(0x2F800, 0x2FA20)),
)
_ASCII_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


@dataclass(frozen=True)
class Part:
    """A character that another one becomes, or a part of it."""

    character: str  # a space separates words
    alone: bool = False  # it is a word of its own

    @property
    def code(self) -> int:
        """Both as one number: twice the code point, plus one where it is a word of its own."""
        return 2 * ord(self.character) + self.alone


@dataclass(frozen=True)
class CleanUp:
    """What is done to each character.

    Attributes:
        do_lower_case: lower-case it.
        strip_accents: drop accents and other non-spacing marks.
        recompose: put together again what taking accents off took apart, and what the text writes in conjoining
            letters: the syllables of Hangul. The reference does not, so Korean words become unknown there.
        split_punctuation: make punctuation words of their own.
        split_chinese: make Chinese characters words of their own.

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
        """Returns a text as `rewrite` is to see it, character by character; its length stays as it is."""
        return compose_syllables(text) if self.recompose else text

    def rewrite(self, character: str) -> tuple[Part, ...]:
        """Returns what becomes of a character: nothing, a space, or characters to match pieces with."""
        if _is_dropped(character):
            return ()
        if character.isspace():
            return (Part(" "),)
        alone = self.split_chinese and _is_chinese(character)
        parts = self._change(character)
        return tuple(Part(part, alone or (self.split_punctuation and _is_punctuation(part))) for part in parts)

    def apply(self, character: str) -> str:
        """Returns what becomes of a character, with spaces around what is a word of its own."""
        return "".join(f" {part.character} " if part.alone else part.character for part in self.rewrite(character))

    def keeps(self, block: str) -> bool:
        """Tells whether each character of a Unicode block stays as it is: faster, but in doubt the answer is False."""
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
    """What `str.translate` takes to clean a text: each code point with what becomes of it, filled when it is met."""

    def __init__(self, clean_up: CleanUp):
        super().__init__()
        self._clean_up = clean_up

    def __missing__(self, code_point: int) -> str:
        self[code_point] = text = self._clean_up.apply(chr(code_point))
        return text


def as_characters(text: str | bytes, index: int = 0) -> str:
    """Returns a text as characters; bytes that are no UTF-8 become lone surrogates, which no piece holds.

    >>> as_characters("é".encode()), as_characters(b"a\\xff")
    ('é', 'a\\udcff')
    """
    if isinstance(text, str):
        return text
    if isinstance(text, bytes):
        return text.decode("utf-8", "surrogateescape")
    raise_not_text(text, index)


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
