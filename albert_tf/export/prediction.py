"""Prediction from raw text: labels, embeddings, pieces for [MASK], and the order of two segments.

Letters: B batch, L sequence, C classes, D hidden, K best pieces, V vocabulary.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from keras import ops

from albert_tf.export.folder import ModelFolder
from albert_tf.models import (
    AlbertForMaskedLM,
    AlbertForPreTraining,
    AlbertForSentenceEmbedding,
    AlbertForSequenceClassification,
)

MASK = "[MASK]"
_BATCH_SIZE = 32


@dataclasses.dataclass(frozen=True)
class ClassPrediction:
    """Prediction of a classifier for one text.

    Attributes:
        label: the most probable label; None for regression.
        score: its probability, or the predicted number.
        probabilities: by name of the label; empty for regression.
    """

    label: str | None
    score: float
    probabilities: dict[str, float]


@dataclasses.dataclass(frozen=True)
class MaskPrediction:
    """Candidates for one [MASK], most probable first: pieces ("▁" begins a word) and their probabilities."""

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
        ValueError: the model is not a classifier, or it was trained on pairs and gets single texts, or the reverse.
    """
    model = loaded.model
    if not isinstance(model, AlbertForSequenceClassification):
        raise ValueError(f"The model must be a classifier. Received: {type(model).__name__}; fine-tune it first.")
    loaded.check_pairs(pairs is not None)
    inputs = loaded.tokenizer(texts, pairs, max_length=loaded.max_length)
    logits = np.empty([len(inputs["input_ids"]), model.num_labels], np.float32)  # [B, C]
    for rows, batch in _batches(inputs):
        logits[rows] = ops.convert_to_numpy(model(batch, training=False)["logits"])
    if model.problem == "regression":
        return [ClassPrediction(None, float(value), {}) for value in logits[:, 0]]
    probabilities = ops.convert_to_numpy(model.probabilities(logits))
    return [
        ClassPrediction(model.labels[row.argmax()], float(row.max()), dict(zip(model.labels, row.tolist())))
        for row in probabilities
    ]


def fill_mask(loaded: ModelFolder, texts: Sequence[str], top: int = 5) -> list[MaskPrediction]:
    """Predicts the piece for the [MASK] of each text.

    Args:
        loaded: a model with a masked-LM head.
        texts: B texts, each with one [MASK], which stands for one piece.
        top: K, the number of candidates.

    Returns:
        B predictions.

    Raises:
        ValueError: the model has no such head, or a text does not have exactly one [MASK].
    """
    if not isinstance(loaded.model, AlbertForMaskedLM | AlbertForPreTraining):
        raise ValueError(
            f"The model must have a masked-LM head. Received: {type(loaded.model).__name__}; use a pretrained model."
        )
    inputs = loaded.tokenizer(texts, max_length=loaded.max_length, allow_special=True)
    counts = (inputs["input_ids"] == loaded.tokenizer.mask_token_id).sum(axis=1)
    if (counts != 1).any():
        text = texts[int((counts != 1).argmax())]
        raise ValueError(
            f"Each text must contain {MASK} exactly once, within its first {loaded.max_length - 2} pieces. "
            f"Received: {text!r}."
        )
    inputs = with_mask_positions(inputs, loaded.tokenizer.mask_token_id)
    pieces, predictions = loaded.tokenizer.pieces, {}
    for rows, batch in _batches(inputs):
        logits = loaded.model(batch, training=False)[mask_output(loaded.model)][:, 0]
        for number, probabilities in zip(rows, ops.convert_to_numpy(ops.softmax(logits))):  # [V] each
            best = np.argsort(-probabilities, kind="stable")[:top]  # [K]
            predictions[number] = MaskPrediction(tuple(pieces[i] for i in best), tuple(probabilities[best].tolist()))
    return [predictions[number] for number in range(len(predictions))]


def sentence_order(loaded: ModelFolder, texts: Sequence[str], pairs: Sequence[str]) -> list[float]:
    """Probability that each text precedes its pair, rather than follows it.

    Args:
        loaded: a pretrained model with a sentence-order head.
        texts: B segments.
        pairs: B adjacent segments.

    Returns:
        B probabilities.

    Raises:
        ValueError: the model has no such head.
    """
    if not isinstance(loaded.model, AlbertForPreTraining):
        raise ValueError(
            f"The model must have a sentence-order head. Received: {type(loaded.model).__name__}; "
            "use a pretrained model."
        )
    inputs = loaded.tokenizer(texts, pairs, max_length=loaded.max_length)
    first = np.empty(len(inputs["input_ids"]), np.float32)  # [B]
    for rows, batch in _batches(inputs):
        logits = loaded.model(batch, training=False)["sentence_order_logits"]
        first[rows] = ops.convert_to_numpy(ops.softmax(logits))[:, 0]
    return first.tolist()


def embed(loaded: ModelFolder, texts: Sequence[str]) -> np.ndarray:
    """Embeddings of sentences.

    Args:
        loaded: a model of sentence embeddings.
        texts: B texts.

    Returns:
        float32 [B, D].

    Raises:
        ValueError: the model is another one.
    """
    if not isinstance(loaded.model, AlbertForSentenceEmbedding):
        raise ValueError(
            f"The model must embed sentences. Received: {type(loaded.model).__name__}; fine-tune one with "
            "task='sentence_embedding'."
        )
    inputs = loaded.tokenizer(texts, max_length=loaded.max_length)
    embeddings = np.empty([len(inputs["input_ids"]), loaded.model.config.hidden_size], np.float32)
    for rows, batch in _batches(inputs):
        embeddings[rows] = ops.convert_to_numpy(loaded.model(batch, training=False)["sentence_embedding"])
    return embeddings


def mask_output(model: AlbertForMaskedLM | AlbertForPreTraining) -> str:
    """The name of a model's masked-LM logits among its outputs."""
    return "masked_lm_logits" if isinstance(model, AlbertForPreTraining) else "logits"


def with_mask_positions(inputs: Mapping[str, Any], mask_token_id: int) -> dict[str, Any]:
    """Adds the position of each row's mask, `masked_lm_positions` int32 [B, 1]."""
    is_mask = ops.equal(inputs["input_ids"], mask_token_id)  # [B, L]
    positions = ops.cast(ops.argmax(ops.cast(is_mask, "int32"), axis=1), "int32")
    return {**inputs, "masked_lm_positions": ops.expand_dims(positions, 1)}


def _batches(inputs: Mapping[str, Any]) -> Iterator[tuple[np.ndarray, dict[str, np.ndarray]]]:
    """Row indices and inputs of batches of similar length, each truncated to its longest row."""
    arrays = {name: ops.convert_to_numpy(array) for name, array in inputs.items()}
    lengths = arrays["attention_mask"].sum(axis=1)
    order = np.argsort(lengths, kind="stable")
    for start in range(0, len(order), _BATCH_SIZE):
        rows = order[start : start + _BATCH_SIZE]
        yield rows, {name: array[rows, : lengths[rows[-1]]] for name, array in arrays.items()}
