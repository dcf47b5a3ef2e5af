"""Prediction of spans from raw text: answers to questions, and labelled entities.

Letters: B texts, T tokens of a text.
"""

from collections.abc import Sequence

import numpy as np
from keras import ops

from albert_tf.data.finetuning.answers import AnswerPrediction, predict_answers
from albert_tf.data.finetuning.encoded import rows_by_length
from albert_tf.data.finetuning.questions import Question, encode_questions
from albert_tf.data.finetuning.tagged import (
    OUTSIDE,
    EncodedTags,
    Entity,
    TaggedText,
    encode_tagged,
    predict_entities,
)
from albert_tf.export.folder import ModelFolder
from albert_tf.models import AlbertForQuestionAnswering, AlbertForTokenClassification


def answer_questions(loaded: ModelFolder, questions: Sequence[str], contexts: Sequence[str]) -> list[AnswerPrediction]:
    """Answers questions about passages; long passages are read in windows.

    Args:
        loaded: a model of question answering.
        questions: B questions.
        contexts: B passages.

    Returns:
        B predictions. There is no answer if `null_odds` exceed the threshold that fine-tuning has found, if any.

    Raises:
        ValueError: the model is another one, or a passage is empty.
    """
    model = loaded.model
    if not isinstance(model, AlbertForQuestionAnswering):
        raise ValueError(f"The model must answer questions. Received: {type(model).__name__}; fine-tune one first.")
    if len(questions) != len(contexts):
        raise ValueError(
            f"There must be a passage for each question. Received: {len(questions)} and {len(contexts)} texts."
        )
    asked = [Question(str(number), *pair) for number, pair in enumerate(zip(questions, contexts))]
    windows = encode_questions(
        loaded.tokenizer, asked, loaded.max_length, loaded.doc_stride, loaded.max_question_length
    )

    def outputs_of(batch):
        given = batch if model.head == "beam" else {name: batch[name] for name in batch if name != "p_mask"}
        return {name: ops.convert_to_numpy(value) for name, value in loaded.compute(given).items()}

    limits = loaded.batch_size, loaded.max_tokens
    return predict_answers(windows, outputs_of, loaded.max_answer_length, loaded.no_answer_threshold, *limits)


def find_entities(loaded: ModelFolder, texts: Sequence[str]) -> list[list[Entity]]:
    """Finds entities, or whatever spans the model was trained on; long texts are read in windows.

    Args:
        loaded: a model of token classification. If it was trained on words, its tag for the first token of a word
            counts: a run of letters and digits, or one other character.
        texts: B texts.

    Returns:
        The entities of each text, in order.

    Raises:
        ValueError: the model is another one.
    """
    model = loaded.model
    if not isinstance(model, AlbertForTokenClassification):
        raise ValueError(f"The model must tag tokens. Received: {type(model).__name__}; fine-tune one first.")
    encoded = encode_tagged(
        loaded.tokenizer, [TaggedText("", text) for text in texts], (OUTSIDE,), loaded.max_length, loaded.doc_stride
    )
    return [
        predict_entities(text, spans, probabilities, model.labels, loaded.tags_words)
        for text, spans, probabilities in zip(texts, encoded.spans, _probabilities(loaded, encoded))
    ]


def _probabilities(loaded: ModelFolder, encoded: EncodedTags) -> list[np.ndarray]:
    """The probabilities of the tags of the tokens of each text: float32 [T, tags]."""
    windows: dict[int, np.ndarray] = {}
    for rows in rows_by_length(encoded.lengths, loaded.batch_size, loaded.max_tokens):
        logits = loaded.compute(encoded.encoded.batch(rows, multiple=1))["logits"]
        for row, probabilities in zip(rows.tolist(), ops.convert_to_numpy(ops.softmax(logits))):
            windows[row] = probabilities[1 : 1 + encoded.count[row]]
    return encoded.join([windows[row] for row in range(len(windows))])
