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
from albert_tf.tokenization import AlbertTokenizer

MASK = "[MASK]"
WORD_START = "▁"


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
    shares = ops.convert_to_numpy(ops.softmax(logits))
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
    for text in texts:
        if text.count(MASK) != 1:
            raise ValueError(f"Each text must hold {MASK} exactly once. Received: {text!r}; write it for one piece.")
    parts = [text.split(MASK) for text in texts]
    inputs = loaded.tokenizer([p[0] for p in parts], [p[1] for p in parts], max_length=loaded.max_length)
    follows_directly = np.array([not suffix[:1].isspace() for _, suffix in parts])
    inputs = with_mask(inputs, loaded.tokenizer, follows_directly)
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


def with_mask(inputs: Mapping[str, Any], tokenizer: AlbertTokenizer, follows_directly: Any) -> dict[str, Any]:
    """Turns [CLS] prefix [SEP] suffix [SEP], two segments, into [CLS] prefix [MASK] suffix [SEP], one segment.

    The suffix was tokenised by itself, so it begins with a word start even where no space is in between, as in
    "[MASK]."; there the word start is taken away.

    Args:
        inputs: int32 [B, L] arrays or tensors from the tokenizer.
        tokenizer: AlbertTokenizer.
        follows_directly: bool [B], whether the suffix begins without a space.

    Returns:
        The same, and `masked_lm_positions` int32 [B, 1].
    """
    ids, mask = (ops.cast(inputs[name], "int32") for name in ("input_ids", "attention_mask"))
    place = ops.argmax(ops.cast(ops.equal(ids, tokenizer.sep_token_id), "int32"), axis=1)
    place = ops.expand_dims(ops.cast(place, "int32"), 1)  # [B, 1]
    positions = ops.expand_dims(ops.arange(ops.shape(ids)[1], dtype="int32"), 0)  # [1, L]
    is_inside = ops.logical_and(ops.equal(positions, place + 1), ops.expand_dims(follows_directly, 1))  # [B, L]
    ids = ops.where(is_inside, ops.take(_inside_word(tokenizer), ids), ids)
    # What is left of a word start that was a piece by itself is -1, and all that follows moves up.
    gone = ops.any(ops.equal(ids, -1), axis=1, keepdims=True)  # [B, 1]
    source = positions + ops.cast(ops.logical_and(positions > place, gone), "int32")
    ids, mask = (ops.take_along_axis(ops.pad(array, [[0, 0], [0, 1]]), source, axis=1) for array in (ids, mask))
    return {
        "input_ids": ops.where(ops.equal(positions, place), tokenizer.mask_token_id, ids),
        "attention_mask": mask,
        "token_type_ids": ops.zeros_like(ids),
        "masked_lm_positions": place,
    }


def _inside_word(tokenizer: AlbertTokenizer) -> np.ndarray:
    """int32 [V]: each piece without its word start; -1 for the bare word start, itself where there is no such piece."""
    ids = {piece: number for number, piece in enumerate(tokenizer.pieces)}
    twins = {piece: ids.get(piece.removeprefix(WORD_START), number) for piece, number in ids.items()} | {WORD_START: -1}
    return np.array([twins[piece] for piece in ids], np.int32)
