"""Answers to questions, compared with those of the reference (golden case Q2)."""

import gzip
import json

import numpy as np
import pytest

from albert_tf.metrics import squad2_scores, squad_scores
from albert_tf.tasks.question_answering.answers import SpanScores, apply_threshold, find_answers
from albert_tf.tasks.question_answering.questions import Question, encode_questions
from albert_tf.tokenization import AlbertTokenizer
from tests.conftest import ROOT
from tests.tasks.question_answering.golden import windows_of

PREDICTIONS = ROOT / "tests/golden/Q2_squad_postprocessing"


def read_json(path):
    content = path.read_bytes()
    return json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)


def scores_of(name):
    with np.load(PREDICTIONS / name) as arrays:
        arrays = dict(arrays)
    return {name: array for name, array in arrays.items() if name != "unique_ids"}


def assert_candidates(answers, expected):
    assert list(answers) == list(expected)
    for question, candidates in expected.items():
        found = answers[question].candidates
        assert [candidate.text for candidate in found] == [candidate["text"] for candidate in candidates]
        for name, field in (("probability",) * 2, ("start_log_prob", "start_score"), ("end_log_prob", "end_score")):
            np.testing.assert_allclose(
                [getattr(candidate, field) for candidate in found], [one[name] for one in candidates], atol=1e-6
            )


@pytest.mark.parametrize(("n_best", "longest"), [(20, 30), (5, 8)])
def test_answers_of_spans_are_the_references(n_best, longest):
    windows, case = windows_of("xquad_en"), f"n{n_best}_l{longest}"
    scores = SpanScores.from_outputs(scores_of("v1_xquad_en.logits.npz"), n_best)
    answers = find_answers(windows, scores, n_best, longest)
    texts = {question: answer.text for question, answer in answers.items()}
    expected = read_json(PREDICTIONS / f"v1_xquad_en.predictions_{case}.json")
    candidates = read_json(PREDICTIONS / f"v1_xquad_en.nbest_{case}.json.gz")
    without = [question for question, text in expected.items() if text == "empty"]  # the reference's word for none
    assert len(without) == (35 if n_best == 5 else 0)
    assert texts == {**expected, **dict.fromkeys(without, "")}
    for question in without:
        candidates[question][0]["text"] = ""
    assert_candidates(answers, candidates)
    result = squad_scores({question.id: question.answers for question in windows.questions}, texts)
    expected = read_json(PREDICTIONS / "scores.json")["v1_xquad_en"][case]
    assert (result.exact, result.f1) == pytest.approx((expected["exact_match"], expected["f1"]))


@pytest.mark.parametrize(("name", "questions"), [("v2_squad", "squad_v2"), ("v2_short", "squad_v2_short")])
def test_answers_of_beams_are_the_references(name, questions):
    windows, expected = windows_of(questions), read_json(PREDICTIONS / "scores.json")[name]
    answers = find_answers(windows, SpanScores.from_outputs(scores_of(f"{name}.beams.npz")))
    accepted = {question.id: question.answers for question in windows.questions}
    no_answer = {question: answer.no_answer_score for question, answer in answers.items()}
    assert no_answer == pytest.approx(read_json(PREDICTIONS / f"{name}.null_odds.json"), abs=1e-6)
    texts = {question: answer.text for question, answer in answers.items()}
    assert texts == read_json(PREDICTIONS / f"{name}.predictions_before_threshold.json")
    assert_candidates(answers, read_json(PREDICTIONS / f"{name}.nbest.json.gz"))
    best = squad2_scores(accepted, texts, no_answer).best_f1
    assert best.threshold == pytest.approx(expected["final"]["null_score_diff_threshold"], abs=1e-6)
    below = {question: score < best.threshold for question, score in no_answer.items()}  # also at it, nothing is said
    as_reference = {question: text if below[question] else "" for question, text in texts.items()}
    assert as_reference == read_json(PREDICTIONS / f"{name}.predictions.json")
    for given, result in ((no_answer, "final"), (None, "final_predictions_scored_plainly")):
        scores = squad2_scores(accepted, as_reference, given).overall
        assert (scores.exact, scores.f1) == pytest.approx((expected[result]["exact"], expected[result]["f1"]))
    # Unlike the reference's, our predictions reach the score that the search promises. In v2_squad one is ",", which
    # the search counts as an answer and the scores, after normalisation, as none.
    ours = squad2_scores(accepted, apply_threshold(answers, best.threshold)).overall
    assert best.score == pytest.approx(expected["first_pass"]["best_f1"])
    assert ours.f1 == pytest.approx(best.score + (0.5 if name == "v2_squad" else 0.0))


def test_a_span_head_compares_no_answer_with_the_best_one():
    windows = encode_questions(AlbertTokenizer.english(), [Question("q", "who?", "Jane Austen wrote it.")], 32, 8)
    logits = {f"{edge}_logits": np.full([1, 12], -9.0, np.float32) for edge in ("start", "end")}
    logits["start_logits"][0, [0, 4]] = logits["end_logits"][0, [0, 5]] = 2.0, 3.0
    answer = find_answers(windows, SpanScores.from_outputs(logits))["q"]
    assert (answer.text, answer.candidates[0].start, answer.candidates[0].end) == ("Jane Austen", 0, 11)
    assert answer.no_answer_score == pytest.approx(4.0 - 6.0)


def test_without_a_candidate_the_answer_is_empty():
    windows = encode_questions(AlbertTokenizer.english(), [Question("q", "who?", "Jane.")], 32, 8)
    logits = {f"{edge}_logits": np.arange(8, dtype=np.float32)[None] for edge in ("start", "end")}
    scores = SpanScores.from_outputs(logits, n_best=1)  # the best start is [SEP]
    assert find_answers(windows, scores)["q"].text == ""
