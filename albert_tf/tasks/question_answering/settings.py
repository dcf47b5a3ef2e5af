"""Settings of answers to questions about passages."""

from typing import Literal

import pydantic

from albert_tf.tasks.settings import Settings


class QuestionSettings(Settings):
    """What a model that answers questions reads and predicts.

    Args:
        doc_stride: distance in tokens of the starts of two windows of a passage. None: 128, or a third of `max_length`
            if that is less.
        max_question_length: longer questions are cut to this number of ids, by default 64, or half of `max_length` if
            that is less; in multiple choice, only the last ids of a question with its choice are kept, by default 128.
        max_answer_length: maximum number of tokens of an answer.
        no_answer_threshold: a question is not answered if its score of "no answer" is above this. None: above the
            threshold that gives the best F1 on the questions that are evaluated.
        num_candidates: answers to a question that are written with their probabilities.
        scorer: `"squad"`, or `"korquad"`, whose F1 counts characters, for questions that all have answers.
        misplaced_answers: what to do if an answer is not in its passage: `"refuse"` the file, or `"drop"` the answer
            from training.
    """

    doc_stride: int | None = pydantic.Field(default=None, ge=1)
    max_question_length: int | None = pydantic.Field(default=None, ge=1)
    max_answer_length: int = pydantic.Field(default=30, ge=1)
    no_answer_threshold: float | None = None
    num_candidates: int = pydantic.Field(default=20, ge=1)
    scorer: Literal["squad", "korquad"] = "squad"
    misplaced_answers: Literal["refuse", "drop"] = "refuse"

    @classmethod
    def recorded(cls, values, source, **facts):
        # Where an answer is does not count in scores.
        return super().recorded({**values, "misplaced_answers": "drop"}, source, **facts)
