"""Reports about trained vocabularies: unknown and lost text, and number of tokens, on held-out text."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from albert_tf.files.atomic import write_json
from albert_tf.tokenization.interface import PieceModel
from albert_tf.tokenization.training.text import TrainingText

REPORT_FILE = "vocabulary_report.json"

_LINES_AT_ONCE = 1000


@dataclass(frozen=True)
class HeldoutFigures:
    """Statistics of held-out text."""

    num_lines: int
    num_characters: int  # including spaces
    num_tokens: int
    unknown_rate: float  # fraction of unknown tokens
    lost_rate: float  # fraction of characters in unknown tokens
    characters_per_token: float


@dataclass(frozen=True)
class VocabularyReport:
    """Report about a trained vocabulary, also written to `vocabulary_report.json` in its folder.

    Attributes:
        folder: folder of the vocabulary, for `AlbertTokenizer.from_pretrained`.
        model_type: "unigram", "bpe" or "wordpiece".
        vocab_size: the number of pieces.
        num_lines: number of lines that were read.
        num_skipped_lines: number of lines that were skipped: longer than `max_sentence_length` bytes, or with NUL.
        num_training_lines: number of lines that were used for training.
        heldout: statistics of held-out text; None if the text was too short to hold any out.
    """

    folder: Path
    model_type: str
    vocab_size: int
    num_lines: int
    num_skipped_lines: int
    num_training_lines: int
    heldout: HeldoutFigures | None


def report_vocabulary(folder: Path, model_type: str, model: PieceModel, text: TrainingText) -> VocabularyReport:
    """Evaluates a new vocabulary on the held-out lines of `text` and writes the report to its folder."""
    counts = (text.num_lines, text.num_skipped_lines, text.num_training_lines)
    heldout = measure_heldout(model, text.heldout)
    report = VocabularyReport(folder, model_type, len(model.pieces), *counts, heldout)
    values = {name: value for name, value in asdict(report).items() if name != "folder"}
    write_json(folder / REPORT_FILE, values)
    return report


def measure_heldout(model: PieceModel, lines: Iterable[str]) -> HeldoutFigures | None:
    """Computes statistics of lines; None if there are no tokens."""
    num_lines = characters = tokens = unknown = lost = 0
    remaining = iter(lines)
    while batch := list(islice(remaining, _LINES_AT_ONCE)):
        rows = model.encode_batch(batch)
        num_lines += len(batch)
        characters += sum(map(len, batch))
        tokens += sum(map(len, rows))
        for text, row in zip(batch, rows, strict=True):
            count = int((row == model.special.unk).sum())
            unknown += count
            lost += _lost_characters(model, text) if count else 0
    if not tokens:
        return None
    return HeldoutFigures(num_lines, characters, tokens, unknown / tokens, lost / characters, characters / tokens)


def _lost_characters(model: PieceModel, text: str) -> int:
    encoded = model.encode_with_offsets(text)
    covered = np.zeros(len(text) + 1, np.int64)
    spans = encoded.offsets[encoded.ids == model.special.unk]
    np.add.at(covered, spans[:, 0], 1)
    np.add.at(covered, spans[:, 1], -1)
    return sum(not text[position].isspace() for position in np.flatnonzero(np.cumsum(covered)))
