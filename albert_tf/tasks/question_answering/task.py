"""Answers to questions about passages, as in SQuAD 1.1 and 2.0.

Letters: Q questions, W windows, B rows of a batch, L sequence.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from albert_tf.data.finetuning.stored_rows import StoredRows
from albert_tf.data.finetuning.tables import listed
from albert_tf.files.atomic import write_json
from albert_tf.tasks.learned import Compute, LabelledRows, LearnedTask
from albert_tf.tasks.outputs import INTEGER, NUMBER, STRING, TensorSpec, as_bytes
from albert_tf.tasks.predictions import AnswerPrediction
from albert_tf.tasks.question_answering.answers import Answer, apply_threshold, find_answers, span_scores
from albert_tf.tasks.question_answering.evaluation import AnswerEvaluation
from albert_tf.tasks.question_answering.files import read_questions
from albert_tf.tasks.question_answering.questions import Question, QuestionWindows, encode_questions
from albert_tf.tasks.question_answering.settings import QuestionSettings


class QuestionAnswering(LearnedTask[QuestionSettings]):
    """One AnswerPrediction for each question; long passages are read in windows.

    There is no answer if `null_odds` exceed the threshold that fine-tuning has found, if any. If some questions to
    evaluate on have no answer, scores are those of SQuAD 2.0.
    """

    settings_class = QuestionSettings
    inputs = ("question", "context")
    reads_windows = True
    predictions_file = "dev_predictions.json"

    @property
    def head(self) -> str:
        """The model's head, `"span"` or `"beam"`."""
        return "beam" if self.settings.task.endswith("beam") else "span"

    def encode(self, *texts):
        questions, contexts = texts
        return self.rows([Question(str(number), *pair) for number, pair in enumerate(zip(questions, contexts))])

    def rows(self, data: Sequence[Question]) -> QuestionWindows:
        lengths = self.max_length, self.settings.doc_stride, self.settings.max_question_length
        return encode_questions(self.tokenizer, data, *lengths)

    def decode(self, encoded, computed):
        scores, totals = span_scores(encoded, computed)
        answers = find_answers(encoded, scores, max_answer_length=self.settings.max_answer_length)
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

    @property
    def main_score(self):
        return "f1"

    def read(self, path):
        return read_questions(path, self.settings.misplaced_answers, self.settings.table)

    def read_unlabelled(self, path):
        return read_questions(path, "drop", self.settings.table)

    def keys(self, data):
        return ((question.context, question.text) for question in data)

    def model_arguments(self, train):
        return {"head": self.head}

    def notes(self, train):
        if left_out := [question.id for question in train if _is_misplaced(question)]:
            yield (
                f"{len(left_out):,} of {len(train):,} training questions were left out, because their answers are not "
                f"in their passages: {listed(left_out[:3])}{', ...' if len(left_out) > 3 else '.'}"
            )

    def training_examples(self, train: Sequence[Question]) -> LabelledRows:
        """Tokenizes questions, without those whose answer is not in its passage."""
        usable = train
        if any(map(_is_misplaced, train)):
            usable = StoredRows(question for question in train if not _is_misplaced(question))
        if not any(question.starts for question in usable):
            raise ValueError("None of the training questions has an answer in its passage; check the training file.")
        windows = self.rows(usable)
        labels = windows.labels()
        if self.head == "beam":  # whose ends depend on the right start
            return LabelledRows(windows, labels, inputs=("start_positions",))
        return LabelledRows(windows.encoded, {name: labels[name] for name in ("start_positions", "end_positions")})

    def evaluator(self, compute, data):
        settings, answered = self.settings, [bool(question.answers) for question in data]
        if not any(answered):
            raise ValueError("None of the questions to evaluate on has an answer; give a file with answers.")
        if settings.scorer == "korquad" and not all(answered):
            raise ValueError(
                f"`scorer` must be 'squad' if questions have no answer. Received: 'korquad', and "
                f"{answered.count(False):,} of {len(data):,} questions to evaluate on without an answer."
            )
        find = self._finder(compute, data)
        return lambda: AnswerEvaluation.of(data, find(), settings.scorer, settings.no_answer_threshold)

    def predictor(self, compute, data):
        """Answers questions; without `no_answer_threshold`, all of them."""
        threshold, find = self.settings.no_answer_threshold, self._finder(compute, data)

        def predict() -> AnswerEvaluation:
            answers = find()
            texts = apply_threshold(answers, math.inf if threshold is None else threshold)
            return AnswerEvaluation(answers, texts, None, threshold)

        return predict

    def _finder(self, compute: Compute, questions: Sequence[Question]) -> Callable[[], dict[str, Answer]]:
        """A function that finds the candidates of all questions with the model's current weights."""
        windows, settings = self.rows(questions), self.settings

        def find() -> dict[str, Answer]:
            scores, _ = span_scores(windows, compute(windows, shows_progress=True))
            return find_answers(windows, scores, settings.num_candidates, settings.max_answer_length)

        return find

    def write_predictions(self, path, data, evaluation):
        """Writes texts by question id to `path`, as SQuAD's scorer takes them, and more to files beside it.

        `*_candidates.json` has the best candidates of each question with scores and spans, and, with unanswerable
        questions, `*_no_answer.json` the scores of "no answer".
        """
        candidates = {question: answer.candidates for question, answer in evaluation.answers.items()}
        files: dict[str, Any] = {path.name: evaluation.texts, f"{path.stem}_candidates.json": candidates}
        if evaluation.no_answer_threshold is not None:
            scores = {question: answer.no_answer_score for question, answer in evaluation.answers.items()}
            files[f"{path.stem}_no_answer.json"] = scores
        for name, content in files.items():
            write_json(path.with_name(name), content, indent=1, ensure_ascii=False, default=dataclasses.asdict)


def _is_misplaced(question: Question) -> bool:
    return bool(question.starts) and question.starts[0] < 0
