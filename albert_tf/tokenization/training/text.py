"""The lines that a vocabulary is trained on: checked, drawn at random where there are many, and some held out."""

import random
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from albert_tf.text_files import read_lines

MOST_HELDOUT_LINES = 10_000

_HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f가-힣]")
_LINES_LOOKED_AT = 10_000


@dataclass(frozen=True)
class LineOptions:
    """Which lines of a text are learnt from and which are measured on; `train_sentencepiece` describes the fields."""

    input_sentence_size: int = 10_000_000
    max_sentence_length: int = 4192
    heldout_share: float = 0.01
    seed: int = 12345

    def __post_init__(self):
        for name in ("input_sentence_size", "max_sentence_length"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"`{name}` must be a whole number of at least 1. Received: {name}={value!r}.")
        if not 0 <= self.heldout_share < 1:
            raise ValueError(
                f"`heldout_share` must be at least 0 and less than 1. Received: heldout_share={self.heldout_share!r}."
            )

    def suits(self, text: str) -> bool:
        """Tells whether a line is one that SentencePiece would take."""
        return "\0" not in text and len(text.encode()) <= self.max_sentence_length


class TrainingText:
    """Text files, looked through once, so that a broken one is named before hours of training.

    Without `heldout_files`, lines of `input_files` are held out.

    Attributes:
        num_lines: lines with text in `input_files`.
        num_skipped_lines: of these, lines that are passed over: too long, or with a NUL character.
        num_training_lines: of these, lines that are learnt from.
        mostly_hangul: more than half of the first lines' characters are Hangul.
        heldout: lines to measure on, once `lines` is used up.

    Raises:
        ValueError: if a file is not there or not UTF-8, or there is no text.
    """

    def __init__(
        self,
        input_files: str | Path | Iterable[str | Path],
        options: LineOptions,
        heldout_files: str | Path | Iterable[str | Path] = (),
    ):
        self.files = _checked_files("input_files", input_files)
        self.options = options
        self.heldout_files = _checked_files("heldout_files", heldout_files)
        self.heldout: list[str] = []
        self._look_through()
        usable = self.num_lines - self.num_skipped_lines
        share = 0.0 if self.heldout_files else options.heldout_share
        self._num_heldout = min(int(usable * share), MOST_HELDOUT_LINES)
        self.num_training_lines = min(usable - self._num_heldout, options.input_sentence_size)

    def lines(self) -> Iterator[str]:
        """Yields the lines to learn from; the held-out ones are drawn on the way."""
        dice = random.Random(self.options.seed)
        left, training, heldout = self.num_lines - self.num_skipped_lines, self.num_training_lines, self._num_heldout
        self.heldout = []
        for text in filter(self.options.suits, _texts(self.files)):
            # Each line that is left is as likely as any other to be one of those that are still to be drawn.
            position = dice.randrange(left)
            left -= 1
            if position < heldout:
                heldout -= 1
                self.heldout.append(text)
            elif position < heldout + training:
                training -= 1
                yield text
        self.heldout += _texts(self.heldout_files)

    def choose_keep_accents(self, wish: bool | None) -> bool:
        """Returns the user's wish, or False; warns where that is a choice that a user should make."""
        if wish is None and self.mostly_hangul:
            warnings.warn(
                "`keep_accents` should be chosen for text that is mostly Hangul. Received: keep_accents=None, taken as "
                "False; with True, accents stay, and no other reader of the vocabulary takes syllables apart to drop "
                "them.",
                stacklevel=3,
            )
        return bool(wish)

    def _look_through(self) -> None:
        hangul = characters = 0
        self.num_lines = self.num_skipped_lines = 0
        for text in _texts(self.files):
            self.num_lines += 1
            self.num_skipped_lines += not self.options.suits(text)
            if self.num_lines <= _LINES_LOOKED_AT:
                hangul += len(_HANGUL.findall(text))
                characters += sum(map(str.isalnum, text))
        self.mostly_hangul = hangul * 2 > characters
        if self.num_lines == self.num_skipped_lines:
            raise ValueError(
                f"{_named(self.files)} without a line to learn from: {self.num_lines} lines of text, of which "
                f"{self.num_skipped_lines} are longer than max_sentence_length={self.options.max_sentence_length} "
                "bytes or hold NUL; give other files, or break their lines."
            )
        if self.heldout_files and not any(_texts(self.heldout_files)):
            raise ValueError(f"{_named(self.heldout_files)} without held-out text to measure on; give other files.")


def _checked_files(name: str, files: str | Path | Iterable[str | Path]) -> list[Path]:
    paths = [Path(file) for file in ([files] if isinstance(files, str | Path) else files)]
    for path in paths:
        if not path.is_file():
            raise ValueError(f"`{name}` must be files that exist. Received: {str(path)!r}.")
    return paths


def _named(files: list[Path]) -> str:
    return f"{files[0]} is" if len(files) == 1 else f"{files[0]} and {len(files) - 1} other files are"


def _texts(files: list[Path]) -> Iterator[str]:
    return (line.text for path in files for line in read_lines(path) if line.text)
