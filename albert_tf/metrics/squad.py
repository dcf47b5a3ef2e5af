"""Scores of answers as the official scripts of SQuAD 1.1 and 2.0 and KorQuAD 1.0 compute them, in percent.

Answers are compared after normalisation: lower case, no ASCII punctuation, no articles, single spaces.
"""

import collections
import dataclasses
import operator
import re
import string
from collections.abc import Callable, Mapping, Sequence

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_KOREAN_SYMBOLS = str.maketrans(dict.fromkeys("'\"《》<>〈〉()‘’", " "))
Answers = Mapping[str, Sequence[str]]


@dataclasses.dataclass(frozen=True)
class AnswerScores:
    """Mean scores of questions.

    Args:
        exact: float. Percentage of predictions that equal one of the answers.
        f1: float. Mean F1 of the words of a prediction and the answer that it fits best, in percent.
        total: int. Number of questions.
    """

    exact: float
    f1: float
    total: int


@dataclasses.dataclass(frozen=True)
class BestThreshold:
    """The threshold that gives the best score on these very questions.

    Args:
        score: float. The score with it, in percent.
        threshold: float. A question is answered if its no-answer score is not above it; 0, as in the official script,
            if no threshold is better than to answer nothing.
    """

    score: float
    threshold: float


@dataclasses.dataclass(frozen=True)
class SquadScores:
    """Scores of SQuAD 2.0.

    Args:
        overall: AnswerScores of all questions.
        answerable: AnswerScores of the questions that have an answer; None if there are none.
        unanswerable: AnswerScores of the others, where only no answer is right; None if there are none.
        best_exact, best_f1: BestThreshold of either score; None without no-answer scores.
    """

    overall: AnswerScores
    answerable: AnswerScores | None
    unanswerable: AnswerScores | None
    best_exact: BestThreshold | None = None
    best_f1: BestThreshold | None = None


def normalize_answer(text: str) -> str:
    """Prepares an answer for comparison.

    Example:

    >>> normalize_answer("The  Brontë sisters, and an aunt.")
    'brontë sisters and aunt'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def squad_scores(answers: Answers, predictions: Mapping[str, str]) -> AnswerScores:
    """Scores predictions by the rules of SQuAD 1.1, where every question has an answer.

    Args:
        answers: the accepted answers by question id.
        predictions: one text by question id; those of other questions are ignored.

    Raises:
        ValueError: there are no questions, a question has no prediction or no answer, or its answers are no list.

    Example:

    >>> squad_scores({"q": ["Emily Brontë", "Jane Austen"]}, {"q": "the Austen family"})
    AnswerScores(exact=0.0, f1=50.0, total=1)

    References: `evaluate-v1.1.py` of SQuAD.
    """
    _check_answered(answers, predictions)
    return _mean(list(answers), *_best(answers, predictions, _exact, _f1_v1))


def korquad_scores(answers: Answers, predictions: Mapping[str, str]) -> AnswerScores:
    """Scores predictions by the rules of KorQuAD 1.0: F1 counts characters instead of words.

    Answers are compared in lower case and without ASCII punctuation; quotation marks and brackets, also 《》 and 〈〉,
    become spaces.

    Args:
        answers: the accepted answers by question id.
        predictions: one text by question id; those of other questions are ignored.

    Raises:
        ValueError: there are no questions, a question has no prediction or no answer, or its answers are no list.

    Example:

    >>> korquad_scores({"q": ["《서시》"]}, {"q": "서시는"})
    AnswerScores(exact=0.0, f1=80.0, total=1)

    References: `evaluate-v1.0.py` of KorQuAD.
    """
    _check_answered(answers, predictions)
    texts = {question: _normalize_korean(predictions[question]) for question in answers}
    accepted = {question: [_normalize_korean(text) for text in candidates] for question, candidates in answers.items()}
    return _mean(list(answers), *_best(accepted, texts, operator.eq, _f1_of_characters))


def _normalize_korean(text: str) -> str:
    return " ".join(text.translate(_KOREAN_SYMBOLS).lower().translate(_NO_PUNCTUATION).split())


def squad2_scores(
    answers: Answers,
    predictions: Mapping[str, str],
    no_answer_scores: Mapping[str, float] | None = None,
    threshold: float = 1.0,
) -> SquadScores:
    """Scores predictions by the rules of SQuAD 2.0, where a question may have no answer.

    Args:
        answers: the accepted answers by question id; empty for a question without an answer.
        predictions: one text by question id, "" for no answer; those of other questions are ignored.
        no_answer_scores: how probable it is that a question has no answer, on any scale, by question id.
        threshold: a prediction counts as no answer if its score is above this.

    Raises:
        ValueError: there are no questions, a question has no prediction or no score, or its answers are no list.

    Example:

    >>> squad2_scores({"p": ["Austen"], "q": []}, {"p": "Austen", "q": "Austen"}).overall
    AnswerScores(exact=50.0, f1=50.0, total=2)

    References: `evaluate-v2.0.py` of SQuAD.
    """
    _check_complete(answers, predictions, "prediction")
    accepted = {question: [text for text in texts if normalize_answer(text)] for question, texts in answers.items()}
    exact, f1 = raw = _best(accepted, predictions, _exact, _f1_v2)
    questions, best = list(answers), [None, None]
    if no_answer_scores is not None:
        _check_complete(answers, no_answer_scores, "no-answer score")
        exact, f1 = (
            {
                question: float(not answers[question]) if no_answer_scores[question] > threshold else score
                for question, score in scores.items()
            }
            for scores in raw
        )
        best = [_best_threshold(scores, answers, predictions, no_answer_scores) for scores in raw]
    answerable = [question for question in questions if answers[question]]
    unanswerable = [question for question in questions if not answers[question]]
    return SquadScores(
        _mean(questions, exact, f1),
        _mean(answerable, exact, f1) if answerable else None,
        _mean(unanswerable, exact, f1) if unanswerable else None,
        *best,
    )


def _best_threshold(
    scores: Mapping[str, float], answers: Answers, predictions: Mapping[str, str], no_answer_scores: Mapping[str, float]
) -> BestThreshold:
    """Answers one question after another, in order of their no-answer scores, and keeps the first best sum."""
    total = best = float(sum(not texts for texts in answers.values()))
    threshold = 0.0
    for question in sorted(answers, key=lambda question: no_answer_scores[question]):
        total += scores[question] if answers[question] else -bool(predictions[question])
        if total > best:
            best, threshold = total, no_answer_scores[question]
    return BestThreshold(100.0 * best / len(answers), threshold)


def _best(
    answers: Answers, predictions: Mapping[str, str], *scores: Callable[[str, str], float]
) -> list[dict[str, float]]:
    """Each score of the predictions by question id: that with the best answer, or with "" where there is none."""
    return [
        {
            question: max(score(predictions[question], text) for text in texts or [""])
            for question, texts in answers.items()
        }
        for score in scores
    ]


def _mean(questions: Sequence[str], exact: Mapping[str, float], f1: Mapping[str, float]) -> AnswerScores:
    return AnswerScores(
        100.0 * sum(exact[question] for question in questions) / len(questions),
        100.0 * sum(f1[question] for question in questions) / len(questions),
        len(questions),
    )


def _exact(prediction: str, answer: str) -> float:
    return float(normalize_answer(prediction) == normalize_answer(answer))


def _f1_v1(prediction: str, answer: str) -> float:
    """F1 of the words, 0 if no word is common, even where both are empty."""
    return _f1(*(normalize_answer(text).split() for text in (prediction, answer)))


def _f1_of_characters(prediction: str, answer: str) -> float:
    return _f1(prediction.replace(" ", ""), answer.replace(" ", ""))


def _f1(words: Sequence[str], others: Sequence[str]) -> float:
    common = sum((collections.Counter(words) & collections.Counter(others)).values())
    if not common:
        return 0.0
    precision, recall = common / len(words), common / len(others)
    return 2 * precision * recall / (precision + recall)


def _f1_v2(prediction: str, answer: str) -> float:
    """F1 of the words; if either side is empty, 1 if both are."""
    if not (normalize_answer(prediction) and normalize_answer(answer)):
        return _exact(prediction, answer)
    return _f1_v1(prediction, answer)


def _check_answered(answers: Answers, predictions: Mapping[str, str]) -> None:
    _check_complete(answers, predictions, "prediction")
    if unanswered := [question for question, accepted in answers.items() if not accepted]:
        raise ValueError(f"{_some(unanswered)} without an answer; score them with `squad2_scores`.")


def _check_complete(answers: Answers, results: Mapping[str, object], what: str) -> None:
    if not answers:
        raise ValueError("`answers` must have at least one question. Received: none.")
    if texts := [question for question, accepted in answers.items() if isinstance(accepted, str)]:
        raise ValueError(f"`answers` must have a list of texts for each question. Received: a string for {texts[0]!r}.")
    if missing := [question for question in answers if question not in results]:
        raise ValueError(f"{_some(missing)} without a {what}; predict all questions of the file.")


def _some(questions: Sequence[str]) -> str:
    return f"{len(questions):,} questions ({', '.join(questions[:3])}{', ...' if len(questions) > 3 else ''}) are"
