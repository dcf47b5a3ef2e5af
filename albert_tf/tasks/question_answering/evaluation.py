"""Scores of answers to questions."""

import dataclasses
from collections.abc import Mapping, Sequence

from albert_tf.metrics import AnswerScores, ConstantScore, SquadScores, korquad_scores, squad2_scores, squad_scores
from albert_tf.tasks.question_answering.answers import Answer, apply_threshold
from albert_tf.tasks.question_answering.questions import Question


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

    notes = ()  # all scores are defined

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
