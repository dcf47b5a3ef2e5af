"""Answers to questions about passages.

Letters: Q questions, W windows, B rows of a batch, L sequence.
"""

from collections.abc import Iterable

import numpy as np

from albert_tf.data.finetuning.answers import IMPOSSIBLE, Answer, SpanScores, find_answers
from albert_tf.data.finetuning.questions import Question, QuestionWindows, encode_questions
from albert_tf.inference.network import Computed
from albert_tf.inference.predictions import AnswerPrediction
from albert_tf.inference.tasks.base import INTEGER, NUMBER, STRING, TensorSpec, TextTask, as_bytes


class QuestionAnswering(TextTask):
    """One AnswerPrediction for each question; long passages are read in windows.

    There is no answer if `null_odds` exceed the threshold that fine-tuning has found, if any.
    """

    inputs = ("question", "context")
    reads_windows = True

    def encode(self, *texts):
        questions, contexts = texts
        asked = [Question(str(number), *pair) for number, pair in enumerate(zip(questions, contexts))]
        options = self.settings.options("doc_stride", "max_question_length")
        return encode_questions(self.tokenizer, asked, self.settings.max_length, **options)

    def decode(self, encoded, computed):
        scores, totals = span_scores(encoded, computed)
        answers = find_answers(encoded, scores, **self.settings.options("max_answer_length"))
        return [
            self._prediction(answers[question.id], total) for question, total in zip(encoded.questions, totals.tolist())
        ]

    def _prediction(self, answer: Answer, total: float) -> AnswerPrediction:
        best, no_answer, threshold = answer.candidates[0], answer.no_answer_score, self.settings.no_answer_threshold
        score = float(np.exp(best.start_score + best.end_score - total)) if best.text else 0.0
        if not best.text or (threshold is not None and no_answer > threshold):
            return AnswerPrediction("", -1, -1, score, no_answer)
        return AnswerPrediction(best.text, best.start, best.end, score, no_answer)

    def arrays(self, predictions):
        return {
            "answer": as_bytes([answer.text for answer in predictions]),
            **{name: np.array([getattr(one, name) for one in predictions], np.int32) for name in ("start", "end")},
            **{
                name: np.array([getattr(one, name) for one in predictions], np.float32)
                for name in ("score", "null_odds")
            },
        }

    def specs(self, width):
        return {
            "answer": TensorSpec(STRING, (None,)),
            **dict.fromkeys(("start", "end"), TensorSpec(INTEGER, (None,))),
            **dict.fromkeys(("score", "null_odds"), TensorSpec(NUMBER, (None,))),
        }


def span_scores(windows: QuestionWindows, computed: Iterable[Computed]) -> tuple[SpanScores, np.ndarray]:
    """Reduces the outputs of all windows to their best starts and ends, so that memory stays small.

    Returns:
        SpanScores of the W windows, and for each question the logarithm of what a start's probability times an end's is
        divided by, float64 [Q].
    """
    order, parts, totals = [], [], np.zeros([len(windows), 2])  # logarithms of the sums of all starts, and of all ends
    for part in computed:
        p_mask = part.batch["p_mask"]
        if "start_logits" in part.outputs:  # a beam head gives probabilities in each window, and windows count alike
            for edge, name in enumerate(("start_logits", "end_logits")):
                logits = np.where(p_mask == 0, part.outputs[name], IMPOSSIBLE).astype(np.float64)
                totals[part.rows, edge] = np.logaddexp.reduce(logits, axis=1)
        parts.append(SpanScores.from_outputs(part.outputs, p_mask=p_mask))
        order.append(part.rows)
    scores = SpanScores.concatenate(parts).reordered(np.argsort(np.concatenate(order), kind="stable"))
    first_windows = np.searchsorted(windows.question, np.arange(len(windows.questions)))
    return scores, np.logaddexp.reduceat(totals, first_windows, axis=0).sum(axis=1)
