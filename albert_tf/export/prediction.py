"""What a model says about raw text: the label of a text, the piece behind a [MASK], the order of two segments.

Letters: B batch, L sequence, C classes, K best pieces, V vocabulary.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from keras import ops

from albert_tf.export.folder import ModelFolder
from albert_tf.models import AlbertForMaskedLM, AlbertForPreTraining, AlbertForSequenceClassification

MASK = "[MASK]"


@dataclasses.dataclass(frozen=True)
class ClassPrediction:
    """What a classifier says about one text.

    Attributes:
        label: the likeliest label; None for regression.
        score: its probability, or the predicted number.
        probabilities: of each label by its name; empty for regression.
    """

    label: str | None
    score: float
    probabilities: dict[str, float]


@dataclasses.dataclass(frozen=True)
class MaskPrediction:
    """What stands behind one [MASK], likeliest first: pieces ("▁" begins a word) and their probabilities."""

    pieces: tuple[str, ...]
    probabilities: tuple[float, ...]


def classify(loaded: ModelFolder, texts: Sequence[str], pairs: Sequence[str] | None = None) -> list[ClassPrediction]:
    """Labels texts, or pairs of texts.

    Args:
        loaded: a classifier.
        texts: B texts.
        pairs: B second texts, for a classifier of pairs.

    Returns:
        B predictions.

    Raises:
        ValueError: the model is no classifier, or was trained on pairs and gets none, or the reverse.
    """
    model = loaded.model
    if not isinstance(model, AlbertForSequenceClassification):
        raise ValueError(f"The model must be a classifier. Received: {type(model).__name__}; fine-tune it first.")
    loaded.check_pairs(pairs is not None)
    logits = model(loaded.tokenizer(texts, pairs, max_length=loaded.max_length), training=False)["logits"]  # [B, C]
    if model.problem == "regression":
        return [ClassPrediction(None, float(value), {}) for value in ops.convert_to_numpy(logits)[:, 0]]
    shares = ops.convert_to_numpy(model.probabilities(logits))
    return [
        ClassPrediction(model.labels[row.argmax()], float(row.max()), dict(zip(model.labels, row.tolist())))
        for row in shares
    ]


def fill_mask(loaded: ModelFolder, texts: Sequence[str], top: int = 5) -> list[MaskPrediction]:
    """Predicts what stands behind the [MASK] of each text.

    Args:
        loaded: a model with a masked-LM head.
        texts: B texts, each with [MASK] once, in place of one piece.
        top: K, how many pieces to give.

    Returns:
        B predictions.

    Raises:
        ValueError: the model has no such head, or a text has not exactly one [MASK].
    """
    if not isinstance(loaded.model, AlbertForMaskedLM | AlbertForPreTraining):
        raise ValueError(
            f"The model must have a masked-LM head. Received: {type(loaded.model).__name__}; take a pretrained folder."
        )
    inputs = loaded.tokenizer(texts, max_length=loaded.max_length, allow_special=True)
    counts = (inputs["input_ids"] == loaded.tokenizer.mask_token_id).sum(axis=1)
    if (counts != 1).any():
        text = texts[int((counts != 1).argmax())]
        raise ValueError(
            f"Each text must hold {MASK} exactly once, within its first {loaded.max_length - 2} pieces. "
            f"Received: {text!r}; write it for one piece."
        )
    inputs = with_mask_positions(inputs, loaded.tokenizer.mask_token_id)
    outputs = loaded.model(inputs, training=False)
    shares = ops.convert_to_numpy(ops.softmax(outputs[mask_output(loaded.model)][:, 0]))  # [B, V]
    best = np.argsort(-shares, axis=-1, kind="stable")[:, :top]  # [B, K]
    pieces = loaded.tokenizer.pieces
    return [MaskPrediction(tuple(pieces[i] for i in ids), tuple(row[ids].tolist())) for ids, row in zip(best, shares)]


def sentence_order(loaded: ModelFolder, texts: Sequence[str], pairs: Sequence[str]) -> list[float]:
    """Probability that each text comes before its pair in running text, as against after it.

    Args:
        loaded: a pretrained model with its sentence-order head.
        texts: B segments.
        pairs: B segments that touch them.

    Returns:
        B probabilities.

    Raises:
        ValueError: the model has no such head.
    """
    if not isinstance(loaded.model, AlbertForPreTraining):
        raise ValueError(
            f"The model must have a sentence-order head. Received: {type(loaded.model).__name__}; "
            "take a pretrained folder."
        )
    outputs = loaded.model(loaded.tokenizer(texts, pairs, max_length=loaded.max_length), training=False)
    return ops.convert_to_numpy(ops.softmax(outputs["sentence_order_logits"]))[:, 0].tolist()


def mask_output(model: AlbertForMaskedLM | AlbertForPreTraining) -> str:
    """The name under which a model gives its masked-LM logits."""
    return "masked_lm_logits" if isinstance(model, AlbertForPreTraining) else "logits"


def with_mask_positions(inputs: Mapping[str, Any], mask_token_id: int) -> dict[str, Any]:
    """Adds where the one mask of each row is, `masked_lm_positions` int32 [B, 1], to a tokenizer's arrays."""
    is_mask = ops.equal(inputs["input_ids"], mask_token_id)  # [B, L]
    positions = ops.cast(ops.argmax(ops.cast(is_mask, "int32"), axis=1), "int32")
    return {**inputs, "masked_lm_positions": ops.expand_dims(positions, 1)}
