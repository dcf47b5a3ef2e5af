"""Predictions of a run's model for masked pieces of held-out examples.

Letters: B batch, P predictions, V vocabulary.
"""

import pathlib
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from keras import ops

from albert_tf.data.manifest import TOKENIZER_FOLDER
from albert_tf.models import AlbertForPreTraining
from albert_tf.tokenization import AlbertTokenizer
from albert_tf.trainer.batches import heldout_batches
from albert_tf.trainer.recipe import Recipe
from albert_tf.trainer.run_folder import MODEL_FOLDER, RESULTS_FILE

TOP = 3


class MaskedPiece(NamedTuple):
    """One masked piece; pieces are texts, with a leading space if they begin a word."""

    target: str  # the original piece
    pieces: tuple[str, ...]  # the TOP most probable ones, best first
    probabilities: tuple[float, ...]


def masked_examples(run: pathlib.Path, recipe: Recipe, count: int = 8) -> list[list[str | MaskedPiece]]:
    """Predicts the masked pieces of a run's first held-out examples.

    Args:
        run: folder of the run.
        recipe: Recipe of the run.
        count: number of examples.

    Returns:
        Up to `count` examples, each as unmasked texts and masked pieces in order; none if the run has no model yet, or
        its recipe no held-out examples.

    Raises:
        ValueError: the data have been moved.
    """
    if recipe.data.heldout is None or not (run / RESULTS_FILE).is_file():
        return []
    model = AlbertForPreTraining.from_pretrained(run / MODEL_FOLDER)
    texts = _piece_texts(AlbertTokenizer.from_pretrained(recipe.data.heldout / TOKENIZER_FOLDER))
    batches: Any = heldout_batches(recipe)
    batch = next(iter(batches.unbatch().batch(count)))
    inputs, labels = tf.nest.map_structure(lambda tensor: tensor.numpy(), batch)
    logits = model(inputs, training=False)["masked_lm_logits"]  # [B, P, V]
    probabilities = ops.convert_to_numpy(ops.softmax(ops.cast(logits, "float32")))
    examples = []
    for row, ids in enumerate(inputs["input_ids"]):
        masked = {
            int(inputs["masked_lm_positions"][row, index]): _masked_piece(
                texts, labels["masked_lm_ids"][row, index], probabilities[row, index]
            )
            for index in np.flatnonzero(labels["masked_lm_weights"][row])
        }
        examples.append(_example(texts, ids[: inputs["attention_mask"][row].sum()], masked))
    return examples


def _piece_texts(tokenizer: AlbertTokenizer) -> list[str]:
    """Each piece as text: without its mark, with a leading space if it begins a word."""
    begins, special = tokenizer.start_of_word, (tokenizer.cls_token_id, tokenizer.sep_token_id)
    if any(piece.startswith("▁") for piece in tokenizer.pieces):  # else foreign letters would be words of their own
        begins = [piece.startswith("▁") for piece in tokenizer.pieces]
    return [
        f" {piece} "
        if index in special
        else " " * bool(begins[index]) + (piece.removeprefix("▁").removeprefix("##") or piece)
        for index, piece in enumerate(tokenizer.pieces)
    ]


def _masked_piece(texts: list[str], target: int, probabilities: np.ndarray) -> MaskedPiece:
    best = np.argsort(-probabilities, kind="stable")[:TOP]
    return MaskedPiece(texts[target], tuple(texts[index] for index in best), tuple(probabilities[best].tolist()))


def _example(texts: list[str], ids: np.ndarray, masked: dict[int, MaskedPiece]) -> list[str | MaskedPiece]:
    parts: list[str | MaskedPiece] = []
    for position, index in enumerate(ids):
        part = masked.get(position) or texts[index].removesuffix("▁")  # of a bare word start
        if isinstance(part, str) and parts and isinstance(parts[-1], str):
            parts[-1] += part
        else:
            parts.append(part)
    return parts
