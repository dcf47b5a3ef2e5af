"""Prediction of spans from raw text: answers to questions, and labelled entities.

Letters: B texts, W windows, L sequence, T tokens of a text.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
from keras import ops

from albert_tf import metrics
from albert_tf.data.finetuning.answers import IMPOSSIBLE, SpanScores, find_answers
from albert_tf.data.finetuning.questions import Question, QuestionWindows, encode_questions
from albert_tf.data.finetuning.tagged import OUTSIDE, EncodedTags, TaggedText, encode_tagged, find_words
from albert_tf.export.folder import ModelFolder
from albert_tf.export.prediction import rows_by_length
from albert_tf.models import AlbertForQuestionAnswering, AlbertForTokenClassification


@dataclasses.dataclass(frozen=True)
class AnswerPrediction:
    """The answer to a question.

    Attributes:
        text: the text in the passage; "" if the model finds no answer there.
        start, end: where it is in the passage, in characters, `end` exclusive; -1 without an answer.
        score: probability of the best answer's start times that of its end.
        null_odds: high if the passage has no answer; only differences between questions count.
    """

    text: str
    start: int
    end: int
    score: float
    null_odds: float


@dataclasses.dataclass(frozen=True)
class Entity:
    """A labelled span of a text: start and exclusive end in characters, and the mean probability of its tags."""

    label: str
    text: str
    start: int
    end: int
    score: float


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
    scores, totals = _span_scores(model, windows)
    first_windows = np.searchsorted(windows.question, np.arange(len(asked)))
    total = np.logaddexp.reduceat(totals, first_windows, axis=0).sum(axis=1)  # [B]
    found = find_answers(windows, scores, max_answer_length=loaded.max_answer_length)
    predictions = []
    for number, question in enumerate(asked):
        answer, best = found[question.id], found[question.id].candidates[0]
        score = float(np.exp(best.start_score + best.end_score - total[number]))
        threshold = loaded.no_answer_threshold
        if not best.text or (threshold is not None and answer.no_answer_score > threshold):
            predictions.append(AnswerPrediction("", -1, -1, score if best.text else 0.0, answer.no_answer_score))
        else:
            predictions.append(AnswerPrediction(best.text, best.start, best.end, score, answer.no_answer_score))
    return predictions


def _span_scores(model: AlbertForQuestionAnswering, windows: QuestionWindows) -> tuple[SpanScores, np.ndarray]:
    """Scores of all windows, and the logarithms of the sums of all starts and of all ends: float64 [W, 2].

    A beam head gives the probabilities in each window, so that these are 0, and windows count alike.
    """
    parts, order, totals = [], [], np.zeros([len(windows), 2])
    for rows in rows_by_length(windows.encoded.lengths):
        batch = windows.batch(rows, multiple=1)
        given = batch if model.head == "beam" else {name: batch[name] for name in batch if name != "p_mask"}
        outputs = {name: ops.convert_to_numpy(value) for name, value in model(given, training=False).items()}
        if model.head == "span":
            for edge, name in enumerate(("start_logits", "end_logits")):
                logits = np.where(batch["p_mask"] == 0, outputs[name], IMPOSSIBLE).astype(np.float64)
                totals[rows, edge] = np.logaddexp.reduce(logits, axis=1)
        parts.append(SpanScores.from_outputs(outputs, p_mask=batch["p_mask"]))
        order.append(rows)
    return SpanScores.concatenate(parts).reordered(np.argsort(np.concatenate(order), kind="stable")), totals


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
    found = []
    for text, spans, probabilities in zip(texts, encoded.spans, _probabilities(model, encoded)):
        if loaded.tags_words:
            first, spans = find_words(text, spans)
            probabilities = probabilities[first]
        tags = [model.labels[index] for index in probabilities.argmax(axis=-1)]
        best = probabilities.max(axis=-1)
        found.append([_entity(text, spans, best, *entity) for entity in metrics.find_entities(tags)])
    return found


def _probabilities(model: AlbertForTokenClassification, encoded: EncodedTags) -> list[np.ndarray]:
    """The probabilities of the tags of the tokens of each text: float32 [T, tags]."""
    windows: dict[int, np.ndarray] = {}
    for rows in rows_by_length(encoded.lengths):
        logits = model(encoded.encoded.batch(rows, multiple=1), training=False)["logits"]
        for row, probabilities in zip(rows.tolist(), ops.convert_to_numpy(ops.softmax(logits))):
            windows[row] = probabilities[1 : 1 + encoded.count[row]]
    return encoded.join([windows[row] for row in range(len(windows))])


def _entity(text: str, spans: np.ndarray, scores: np.ndarray, label: str, first: int, last: int) -> Entity:
    start, end = int(spans[first, 0]), int(spans[last - 1, 1])
    part = text[start:end]
    start += len(part) - len(part.lstrip())
    part = part.strip()
    return Entity(label, part, start, start + len(part), float(scores[first:last].mean()))
