"""Reports about trained vocabularies: unknown tokens, and the length of tokens, on held-out text."""

from dataclasses import asdict, dataclass
from pathlib import Path

from albert_tf.files.atomic import write_json
from albert_tf.tokenization.interface import PieceModel
from albert_tf.tokenization.training.text import TrainingText

REPORT_FILE = "vocabulary_report.json"


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
        num_heldout_lines: number of lines that the vocabulary was tried on.
        unknown_rate: fraction of their tokens that are unknown; None if there are no tokens.
        characters_per_token: with spaces; None if there are no tokens.
    """

    folder: Path
    model_type: str
    vocab_size: int
    num_lines: int
    num_skipped_lines: int
    num_training_lines: int
    num_heldout_lines: int
    unknown_rate: float | None
    characters_per_token: float | None


def report_vocabulary(folder: Path, model_type: str, model: PieceModel, text: TrainingText) -> VocabularyReport:
    """Evaluates a new vocabulary on the held-out lines of `text` and writes the report to its folder."""
    rows = model.encode_batch(text.heldout)
    tokens, unknown = sum(map(len, rows)), sum(int((row == model.special.unk).sum()) for row in rows)
    rates = (unknown / tokens, sum(map(len, text.heldout)) / tokens) if tokens else (None, None)
    counts = (text.num_lines, text.num_skipped_lines, text.num_training_lines, len(text.heldout))
    report = VocabularyReport(folder, model_type, len(model.pieces), *counts, *rates)
    values = {name: value for name, value in asdict(report).items() if name != "folder"}
    write_json(folder / REPORT_FILE, values)
    return report
