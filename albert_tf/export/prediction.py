"""Prediction from raw text: labels, choices, embeddings, pieces for [MASK], and the order of two segments.

Letters: B batch, L sequence, C classes, D hidden, M masks of a text, K best pieces.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from keras import ops

from albert_tf.data.finetuning.choices import ChoiceQuestion, encode_choices
from albert_tf.data.finetuning.encoded import rows_by_length
from albert_tf.export.folder import ModelFolder
from albert_tf.export.results import ClassPrediction, MaskPrediction
from albert_tf.models import (
    AlbertForMaskedLM,
    AlbertForMultipleChoice,
    AlbertForPreTraining,
    AlbertForSentenceEmbedding,
    AlbertForSequenceClassification,
)

MASK = "[MASK]"


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
    for rows, batch in _batches(loaded, inputs):
        logits[rows] = ops.convert_to_numpy(loaded.compute(batch)["logits"])
    if model.problem == "regression":
        return [ClassPrediction(None, float(value), {}) for value in logits[:, 0]]
    probabilities = ops.convert_to_numpy(model.probabilities(logits))
    return [
        ClassPrediction(model.labels[row.argmax()], float(row.max()), dict(zip(model.labels, row.tolist())))
        for row in probabilities
    ]


def fill_mask(loaded: ModelFolder, texts: Sequence[str], top: int = 5) -> list[tuple[MaskPrediction, ...]]:
    """Predicts the piece for each [MASK] of each text.

    Args:
        loaded: a model with a masked-LM head.
        texts: B texts, each with at least one [MASK], which stands for one piece.
        top: K, the number of candidates.

    Returns:
        For each text, a prediction for each [MASK], in their order.

    Raises:
        ValueError: the model has no such head, or a text has no [MASK].
    """
    if not isinstance(loaded.model, AlbertForMaskedLM | AlbertForPreTraining):
        raise ValueError(
            f"The model must have a masked-LM head. Received: {type(loaded.model).__name__}; use a pretrained model."
        )
    inputs = loaded.tokenizer(texts, max_length=loaded.max_length, allow_special=True)
    counts = (inputs["input_ids"] == loaded.tokenizer.mask_token_id).sum(axis=1)
    for text, count in zip(texts, counts.tolist()):
        if count < max(text.count(MASK), 1):
            raise ValueError(f"{no_mask_message(loaded)} Received: {text!r}.")
    pieces, predictions = loaded.tokenizer.pieces, {}
    for rows, batch in _batches(loaded, inputs):
        batch, is_mask = with_mask_positions(batch, loaded.tokenizer.mask_token_id)
        logits = loaded.compute(batch)[mask_output(loaded.model)]
        for number, probabilities, own in zip(rows, ops.convert_to_numpy(ops.softmax(logits)), np.asarray(is_mask)):
            best = np.argsort(-probabilities[own], axis=1, kind="stable")[:, :top]  # [M, K]
            predictions[number] = tuple(
                MaskPrediction(tuple(pieces[i] for i in ids), tuple(row[ids].tolist()))
                for ids, row in zip(best, probabilities[own])
            )
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
    for rows, batch in _batches(loaded, inputs):
        logits = loaded.compute(batch)["sentence_order_logits"]
        first[rows] = ops.convert_to_numpy(ops.softmax(logits))[:, 0]
    return first.tolist()


def choose(loaded: ModelFolder, contexts: Sequence[str], choices: Sequence[Sequence[str]]) -> np.ndarray:
    """Probabilities of the choices that complete each passage.

    Args:
        loaded: a model of multiple choice.
        contexts: B passages.
        choices: C statements for each, such as a question followed by one of its answers.

    Returns:
        float32 [B, C].

    Raises:
        ValueError: the model is another one, or the numbers of choices differ.
    """
    if not isinstance(loaded.model, AlbertForMultipleChoice):
        raise ValueError(f"The model must be one of multiple choice. Received: {type(loaded.model).__name__}.")
    if len(contexts) != len(choices) or len({len(row) for row in choices}) != 1:
        raise ValueError(
            "`choices` must have one row for each passage, all of the same length. Received: "
            f"{len(contexts)} passages, rows of {', '.join(str(len(row)) for row in choices[:5])} choices."
        )
    questions = [ChoiceQuestion("", context, "_", tuple(row), -1) for context, row in zip(contexts, choices)]
    encoded = encode_choices(loaded.tokenizer, questions, loaded.max_length, loaded.max_question_length)
    logits = np.empty([len(questions), encoded.num_choices], np.float32)  # [B, C]
    for rows in rows_by_length(encoded.lengths, max(1, loaded.batch_size // 4), loaded.max_tokens):
        logits[rows] = ops.convert_to_numpy(loaded.compute(encoded.batch(rows, multiple=1))["logits"])
    return ops.convert_to_numpy(ops.softmax(logits))


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
    for rows, batch in _batches(loaded, inputs):
        embeddings[rows] = ops.convert_to_numpy(loaded.compute(batch)["sentence_embedding"])
    return embeddings


def mask_output(model: AlbertForMaskedLM | AlbertForPreTraining) -> str:
    """The name of a model's masked-LM logits among its outputs."""
    return "masked_lm_logits" if isinstance(model, AlbertForPreTraining) else "logits"


def no_mask_message(loaded: ModelFolder) -> str:
    """The error of a text without [MASK], or with one that is cut off."""
    return f"Each text must contain {MASK}, all of them within its first {loaded.max_length - 2} pieces."


def with_mask_positions(inputs: Mapping[str, Any], mask_token_id: int) -> tuple[dict[str, Any], Any]:
    """Adds the positions of each row's masks, `masked_lm_positions` int32 [B, M], M being the most masks of a row.

    Returns:
        The inputs, and bool [B, M]: false where a row has fewer masks.
    """
    is_mask = ops.cast(ops.equal(inputs["input_ids"], mask_token_id), "int32")  # [B, L]
    counts = ops.sum(is_mask, axis=1)
    length = ops.shape(is_mask)[1]
    # Masks come first if positions are sorted with all others moved behind the sequence.
    positions = ops.sort(ops.where(is_mask == 1, 0, length) + ops.arange(length), axis=1)[:, : ops.max(counts)]
    is_used = positions < length
    return {**inputs, "masked_lm_positions": ops.where(is_used, positions, 0)}, is_used


def _batches(loaded: ModelFolder, inputs: Mapping[str, Any]) -> Iterator[tuple[np.ndarray, dict[str, np.ndarray]]]:
    """Row indices and inputs of batches of similar length, each truncated to its longest row."""
    arrays = {name: ops.convert_to_numpy(array) for name, array in inputs.items()}
    lengths = arrays["attention_mask"].sum(axis=1)
    for rows in rows_by_length(lengths, loaded.batch_size, loaded.max_tokens):
        yield rows, {name: array[rows, : lengths[rows[-1]]] for name, array in arrays.items()}
