"""From a file to the piece model that it holds."""

from dataclasses import fields
from pathlib import Path
from typing import Any

from albert_tf.tokenization.folders import TokenizerOptions, is_vocabulary_file, read_options
from albert_tf.tokenization.piece_model import PieceModel
from albert_tf.tokenization.sentencepiece_model import SentencePieceModel
from albert_tf.tokenization.vocabulary_file import read_vocabulary
from albert_tf.tokenization.wordpiece_folder import WordPieceOptions, read_wordpiece_options
from albert_tf.tokenization.wordpiece_model import WordPieceModel


def load_piece_model(file: Path, **given: Any) -> PieceModel:
    """Reads a SentencePiece model or a vocabulary file.

    Args:
        file: the file; `tokenizer_config.json` may lie beside it.
        **given: options of either kind; None leaves the choice to what is recorded there, then to the default.

    Returns:
        The model.

    Raises:
        ValueError: if an option does not go with the file, or the file is not what it should be.
    """
    given = {name: value for name, value in given.items() if value is not None}
    kind = WordPieceOptions if is_vocabulary_file(file) else TokenizerOptions
    foreign = sorted(given.keys() - {field.name for field in fields(kind)})
    if foreign:
        what = "a vocabulary file" if kind is WordPieceOptions else "a SentencePiece model"
        raise ValueError(
            f"The options must go with the kind of vocabulary. Received: `{foreign[0]}` for {what}, {file}."
        )
    if kind is TokenizerOptions:
        return SentencePieceModel(file.read_bytes(), read_options(file.parent, **given), source=str(file))
    pieces = read_vocabulary(file)
    return WordPieceModel(pieces, read_wordpiece_options(file.parent, pieces, **given), source=str(file))
