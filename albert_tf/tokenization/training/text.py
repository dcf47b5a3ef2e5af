"""Training and held-out lines of a vocabulary, sampled if there are many."""

import random
import re
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

from albert_tf.files.text import read_lines
from albert_tf.files.urls import location

MAX_HELDOUT_LINES = 10_000

_HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f가-힣]")
_LINES_INSPECTED = 10_000


class TrainingText:
    """Text files, which are read once before training to detect invalid ones.

    Args:
        input_files, ..., seed: as for `train_sentencepiece`.

    Attributes:
        num_lines: number of non-empty lines in `input_files`.
        num_skipped_lines: number of lines that are too long, or have a NUL character.
        num_training_lines: number of lines for training.
        mostly_hangul: whether more than half of the characters of the first lines are Hangul.
        heldout: the held-out lines, after `lines` has been consumed.

    Raises:
        ValueError: a file does not exist or is not UTF-8, there is no text, or a number is out of range.
    """

    def __init__(
        self,
        input_files: str | Path | Iterable[str | Path],
        heldout_files: str | Path | Iterable[str | Path] = (),
        input_sentence_size: int = 10_000_000,
        max_sentence_length: int = 4192,
        heldout_share: float = 0.01,
        seed: int = 12345,
    ):
        for name, value in (("input_sentence_size", input_sentence_size), ("max_sentence_length", max_sentence_length)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"`{name}` must be an integer of at least 1. Received: {name}={value!r}.")
        if not 0 <= heldout_share < 1:
            raise ValueError(
                f"`heldout_share` must be at least 0 and less than 1. Received: heldout_share={heldout_share!r}."
            )
        self.files = _checked_files("input_files", input_files)
        self.heldout_files = _checked_files("heldout_files", heldout_files)
        self._max_length, self._seed = max_sentence_length, seed
        self.heldout: list[str] = []
        self._inspect()
        usable = self.num_lines - self.num_skipped_lines
        share = 0.0 if self.heldout_files else heldout_share
        self._num_heldout = min(int(usable * share), MAX_HELDOUT_LINES)
        self.num_training_lines = min(usable - self._num_heldout, input_sentence_size)

    def lines(self) -> Iterator[str]:
        """Yields the training lines, and samples the held-out ones."""
        dice = random.Random(self._seed)
        left, training, heldout = self.num_lines - self.num_skipped_lines, self.num_training_lines, self._num_heldout
        self.heldout = []
        for text in filter(self._suits, _texts(self.files)):
            # Selection sampling: every remaining line has the same probability to be chosen.
            position = dice.randrange(left)
            left -= 1
            if position < heldout:
                heldout -= 1
                self.heldout.append(text)
            elif position < heldout + training:
                training -= 1
                yield text
        self.heldout += _texts(self.heldout_files)

    def choose_keep_accents(self, value: bool | None) -> bool:
        """Returns the value, or False for None; warns if the text is mostly Hangul."""
        if value is None and self.mostly_hangul:
            warnings.warn(
                "`keep_accents` (--keep-accents) should be set for text that is mostly Hangul; it was not, which means "
                "False. Hangul is the same either way, but accents of foreign words are dropped, and other libraries "
                "that load the vocabulary decompose syllables first.",
                stacklevel=3,
            )
        return bool(value)

    def _suits(self, text: str) -> bool:
        """Whether SentencePiece accepts a line."""
        return "\0" not in text and len(text.encode()) <= self._max_length

    def _inspect(self) -> None:
        hangul = characters = 0
        self.num_lines = self.num_skipped_lines = 0
        for text in _texts(self.files):
            self.num_lines += 1
            self.num_skipped_lines += not self._suits(text)
            if self.num_lines <= _LINES_INSPECTED:
                hangul += len(_HANGUL.findall(text))
                characters += sum(map(str.isalnum, text))
        self.mostly_hangul = hangul * 2 > characters
        if self.num_lines == self.num_skipped_lines:
            raise ValueError(
                f"{_named(self.files)} without a line to learn from: {self.num_lines} lines of text, of which "
                f"{self.num_skipped_lines} are longer than max_sentence_length={self._max_length} "
                "bytes or hold NUL; give other files, or break their lines."
            )
        if self.heldout_files and not any(_texts(self.heldout_files)):
            raise ValueError(f"{_named(self.heldout_files)} without held-out text to measure on; give other files.")


def _checked_files(name: str, files: str | Path | Iterable[str | Path]) -> list[Path]:
    paths = [location(file) for file in ([files] if isinstance(files, str | Path) else files)]
    for path in paths:
        if not path.is_file():
            raise ValueError(f"`{name}` must be files that exist. Received: {str(path)!r}.")
    return paths


def _named(files: list[Path]) -> str:
    return f"{files[0]} is" if len(files) == 1 else f"{files[0]} and {len(files) - 1} other files are"


def _texts(files: list[Path]) -> Iterator[str]:
    return (line.text for path in files for line in read_lines(path) if line.text)
