"""Checks of a downloaded checkpoint: files, shapes, values and vocabulary."""

import pathlib
import string
import warnings
from collections.abc import Iterator

import numpy as np

from albert_tf import checkpoints, models
from albert_tf.checkpoints.checkpoint import assign, check_size, reject_unknown
from albert_tf.checkpoints.names import joined
from albert_tf.files.hub import model_folder
from albert_tf.models import AlbertEncoder
from albert_tf.models.base import AlbertBase
from albert_tf.tasks.table import HEADS, smallest_task
from albert_tf.tokenization import AlbertTokenizer
from albert_tf.tokenization.files import vocabulary_of
from albert_tf.tokenization.sentencepiece.pieces import SPECIAL_PIECES
from albert_tf.tokenization.wordpiece.vocabulary import SPECIAL_PIECES as SPECIAL_WORD_PIECES


def check_checkpoint(path: str | pathlib.Path) -> Iterator[tuple[str, str]]:
    """Checks a checkpoint of any format, as for `from_pretrained`, and its vocabulary.

    Yields:
        What was checked, and what was found.

    Raises:
        ValueError: the first thing that is wrong.
    """
    folder = model_folder(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of values that are not finite, a check of its own
        checkpoint = checkpoints.read(folder)
    count = sum(array.size for array in checkpoint.arrays.values())
    yield "files", f"{len(checkpoint.arrays)} tensors with {count:,} values can be read."
    yield "weights", check_weights(checkpoint)
    yield "values", _check_values(checkpoint)
    file = vocabulary_of(folder)
    if file is None:
        raise ValueError(
            f"{folder} has no vocabulary; add the file that was published with the weights, such as spiece.model, "
            "30k-clean.model or vocab.txt."
        )
    tokenizer = AlbertTokenizer.from_pretrained(file)
    tokenizer.check_fits(checkpoint.config.vocab_size)
    yield "vocabulary", f"{tokenizer.vocab_size:,} pieces, as in the config."
    yield "special pieces", _check_special_pieces(tokenizer)
    yield "capital letters", _check_capitals(tokenizer)


def check_weights(checkpoint: checkpoints.Checkpoint) -> str:
    """Builds each model that the checkpoint has a head for; raises for missing, unused or misshapen tensors."""
    check_size(checkpoint)
    heads = sorted(checkpoint.parts - {"encoder"})
    reject_unknown(checkpoint.source, set(heads) - HEADS)
    _filled(AlbertEncoder, checkpoint, add_pooling_layer="encoder/pooler/kernel" in checkpoint.arrays)
    for head in heads:
        _filled(getattr(models, smallest_task(head).model), checkpoint)
    return f"Every tensor is used: {', '.join(['encoder', *heads])}."


def _filled(kind: type[AlbertBase], checkpoint: checkpoints.Checkpoint, **arguments) -> AlbertBase:
    model = kind(checkpoint.config, **{**kind.settings_from_file(dict(checkpoint.settings)), **arguments})
    assign(checkpoint, model.variables_by_path())
    return model


def _check_values(checkpoint: checkpoints.Checkpoint) -> str:
    wrong = sorted(variable for variable, array in checkpoint.arrays.items() if not np.isfinite(array).all())
    if wrong:
        raise ValueError(f"NaN or infinity in {joined(wrong)}; download the checkpoint again or use an earlier one.")
    return "All values are finite."


def _check_special_pieces(tokenizer: AlbertTokenizer) -> str:
    pieces = tokenizer.pieces
    if "<unk>" not in pieces:  # WordPiece: special tokens may have any id
        return ", ".join(f"{name} {pieces.index(name)}" for name in SPECIAL_WORD_PIECES if name in pieces) + "."
    wrong = [(piece, i) for i, piece in enumerate(SPECIAL_PIECES) if pieces[i : i + 1] != (piece,)]
    if wrong:
        raise ValueError(
            "ALBERT's special pieces have the ids 0 to 4, but this vocabulary has "
            f"{', '.join(f'{piece} at {pieces.index(piece)} for {i}' for piece, i in wrong)}; use the vocabulary that "
            "the weights were trained with."
        )
    return ", ".join(f"{piece} {i}" for i, piece in enumerate(SPECIAL_PIECES)) + "."


def _check_capitals(tokenizer: AlbertTokenizer) -> str:
    """If a lower-case letter is known but its capital is not, text should be lower-cased."""
    unknown = [letter for letter in string.ascii_letters if tokenizer.unk_token_id in tokenizer.encode(letter)]
    lost = "".join(letter for letter in unknown if letter.isupper() and letter.lower() not in unknown)
    if lost:
        raise ValueError(
            f"The capital letters {lost} are unknown; load the tokenizer with do_lower_case=True, and set it in "
            "tokenizer_config.json."
        )
    return "All are known."
