"""Answers to questions about passages, as in SQuAD 1.1 and 2.0.

Letters: Q questions, W windows, B batch, L sequence.
"""

import dataclasses
import itertools
import json
import math
import pathlib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from albert_tf.data.finetuning.answers import Answer, apply_threshold, find_answers
from albert_tf.data.finetuning.encoded import Inputs
from albert_tf.data.finetuning.question_files import read_questions
from albert_tf.data.finetuning.questions import Question, QuestionWindows, encode_questions
from albert_tf.data.finetuning.stored_rows import StoredRows
from albert_tf.data.finetuning.tables import listed
from albert_tf.files.atomic import atomic_open
from albert_tf.inference.predictor import Predictor
from albert_tf.inference.tasks.question_answering import span_scores
from albert_tf.metrics import AnswerScores, ConstantScore, SquadScores, korquad_scores, squad2_scores, squad_scores
from albert_tf.tokenization import AlbertTokenizer
from albert_tf.trainer.tasks.base import FinetuneTask

if TYPE_CHECKING:
    # Examples are predicted without Keras and TensorFlow where the model is an ONNX folder.
    from albert_tf.models.base import AlbertBase

_LABELS = ("start_positions", "end_positions")


class QuestionAnswering(FinetuneTask):
    """Files in the format of SQuAD. If some questions to evaluate on have no answer, scores are those of SQuAD 2.0."""

    predictions_file = "dev_predictions.json"

    @property
    def main_score(self) -> str:
        """F1."""
        return "f1"

    @property
    def head(self) -> str:
        """The model's head, `"span"` or `"beam"`."""
        return "beam" if self.options.task.endswith("beam") else "span"

    def read(self, path: pathlib.Path) -> Sequence[Question]:
        """Reads a file; answers that are not in their passages are refused, or dropped."""
        return read_questions(path, self.options.misplaced_answers, self.options.table)

    def read_unlabelled(self, path: pathlib.Path) -> Sequence[Question]:
        """Reads a file with or without answers."""
        return read_questions(path, "drop", self.options.table)

    def keys(self, data: Sequence[Question]) -> Iterator[Hashable]:
        """What identifies each example."""
        return ((question.context, question.text) for question in data)

    def model_arguments(self, train: Sequence[Question]) -> dict[str, Any]:
        """The head."""
        return {"head": self.head}

    def notes(self, train: Sequence[Question]) -> Iterator[str]:
        """Questions that were left out."""
        if left_out := [question.id for question in train if _is_misplaced(question)]:
            yield (
                f"{len(left_out):,} of {len(train):,} training questions were left out, because their answers are not "
                f"in their passages: {listed(left_out[:3])}{', ...' if len(left_out) > 3 else '.'}"
            )

    def training_examples(
        self, model: "AlbertBase", tokenizer: AlbertTokenizer, train: Sequence[Question]
    ) -> "_AnsweredWindows":
        """Tokenizes questions, without those whose answer is not in its passage."""
        usable = train
        if any(map(_is_misplaced, train)):
            usable = StoredRows(question for question in train if not _is_misplaced(question))
        if not any(question.starts for question in usable):
            raise ValueError("None of the training questions has an answer in its passage; check the training file.")
        windows = self._encode(tokenizer, usable)
        return _AnsweredWindows(windows, windows.labels(), is_beam=self.head == "beam")

    def evaluator(self, model: Predictor, data: Sequence[Question]) -> Callable[[], "AnswerEvaluation"]:
        """Evaluates all questions."""
        options, answered = self.options, [bool(question.answers) for question in data]
        if not any(answered):
            raise ValueError("None of the questions to evaluate on has an answer; give a file with answers.")
        if options.scorer == "korquad" and not all(answered):
            raise ValueError(
                f"`scorer` must be 'squad' if questions have no answer. Received: 'korquad', and "
                f"{answered.count(False):,} of {len(data):,} questions to evaluate on without an answer."
            )
        find = self._finder(model, data)
        return lambda: AnswerEvaluation.of(data, find(), options.scorer, options.no_answer_threshold)

    def predictor(self, model: Predictor, data: Sequence[Question]) -> Callable[[], "AnswerEvaluation"]:
        """Answers questions; without `no_answer_threshold`, all of them."""
        options, find = self.options, self._finder(model, data)
        threshold = math.inf if options.no_answer_threshold is None else options.no_answer_threshold

        def predict() -> AnswerEvaluation:
            answers = find()
            return AnswerEvaluation(answers, apply_threshold(answers, threshold), None, options.no_answer_threshold)

        return predict

    def write_predictions(self, path: pathlib.Path, data: Sequence[Question], evaluation: "AnswerEvaluation") -> None:
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
            parts = json.JSONEncoder(indent=1, ensure_ascii=False, default=dataclasses.asdict).iterencode(content)
            with atomic_open(path.with_name(name)) as file:
                file.writelines(part.encode("utf-8", "surrogatepass") for part in itertools.chain(parts, ["\n"]))

    def _finder(self, model: Predictor, questions: Sequence[Question]) -> Callable[[], dict[str, Answer]]:
        """A function that finds the candidates of all questions with the model's current weights."""
        windows, options = self._encode(model.tokenizer, questions), self.options

        def find() -> dict[str, Answer]:
            # Only the best starts and ends are kept, so that memory does not grow with the length of windows.
            scores, _ = span_scores(windows, model.compute(windows, shows_progress=True))
            return find_answers(windows, scores, options.num_candidates, options.max_answer_length)

        return find

    def _encode(self, tokenizer: AlbertTokenizer, questions: Sequence[Question]) -> QuestionWindows:
        options = self.options
        lengths = self.max_length, options.doc_stride, options.max_question_length
        return encode_questions(tokenizer, questions, *lengths, self.stored_ids)


def _is_misplaced(question: Question) -> bool:
    return bool(question.starts) and question.starts[0] < 0


@dataclasses.dataclass(frozen=True)
class _AnsweredWindows:
    windows: QuestionWindows
    labels: dict[str, np.ndarray]
    is_beam: bool

    @property
    def lengths(self) -> np.ndarray:
        return self.windows.encoded.lengths

    def training_batch(self, rows: np.ndarray) -> tuple[Inputs, Inputs]:
        names = (*_LABELS, "is_impossible") if self.is_beam else _LABELS
        labels = {name: self.labels[name][rows] for name in names}
        if not self.is_beam:
            return self.windows.encoded.batch(rows), labels
        return {**self.windows.batch(rows), "start_positions": labels["start_positions"]}, labels


@dataclasses.dataclass(frozen=True)
class AnswerEvaluation:
    """Answers to questions and their scores.

    Attributes:
        answers: Answer by question id.
        texts: the predicted texts, "" for no answer.
        scores: AnswerScores (SQuAD 1.1), or SquadScores (SQuAD 2.0) of the predicted texts; None if they are unknown.
        no_answer_threshold: the `no_answer_score` above which a question is not answered, by default the one with the
            best F1 on these very questions; None if all of them are answered.
    """

    answers: Mapping[str, Answer]
    texts: dict[str, str]
    scores: AnswerScores | SquadScores | None
    no_answer_threshold: float | None

    @classmethod
    def of(
        cls,
        questions: Sequence[Question],
        answers: dict[str, Answer],
        scorer: str = "squad",
        threshold: float | None = None,
    ) -> "AnswerEvaluation":
        """Scores answers by the rules of `"squad"` or `"korquad"`."""
        accepted = {question.id: question.answers for question in questions}
        texts = {question: answer.text for question, answer in answers.items()}
        if all(accepted.values()):
            texts = texts if threshold is None else apply_threshold(answers, threshold)
            scores = (korquad_scores if scorer == "korquad" else squad_scores)(accepted, texts)
            return cls(answers, texts, scores, threshold)
        no_answer = {question: answer.no_answer_score for question, answer in answers.items()}
        if threshold is None:
            threshold = _best_threshold(accepted, texts, no_answer)
        texts = apply_threshold(answers, threshold)
        return cls(answers, texts, squad2_scores(accepted, texts), threshold)

    @property
    def main_score(self) -> float:
        """F1 in percent; raises ValueError if the right answers are unknown."""
        if self.scores is None:
            raise ValueError("The right answers are unknown, so there is no score.")
        return self.scores.overall.f1 if isinstance(self.scores, SquadScores) else self.scores.f1

    @property
    def is_constant(self) -> bool:
        """Whether all questions have the same answer, such as none."""
        return len(set(self.texts.values())) == 1

    @property
    def notes(self) -> list[str]:
        """None: all scores are defined."""
        return []

    @property
    def constant_score(self) -> ConstantScore | None:
        """Share of questions without an answer, if there are any."""
        if not isinstance(self.scores, SquadScores) or self.scores.unanswerable is None:
            return None
        share = 100 * self.scores.unanswerable.total / self.scores.overall.total
        return ConstantScore("exact match if nothing is answered", share)


def _best_threshold(
    accepted: Mapping[str, Sequence[str]], texts: Mapping[str, str], no_answer: Mapping[str, float]
) -> float:
    """The threshold with the best F1; below all scores if it is best to answer nothing."""
    best = squad2_scores(accepted, texts, no_answer).best_f1
    unanswerable = sum(not answers for answers in accepted.values())
    # The official search starts at 0, which is then above some of the scores.
    if best is None or best.score <= 100.0 * unanswerable / len(accepted):
        return min(no_answer.values()) - 1.0
    return best.threshold
