"""Proves the scores of SQuAD against recorded ones; tests/golden/metrics_squad/README.md says what was recorded."""

import json
import pathlib

import pytest

from albert_tf.metrics import korquad_scores, squad2_scores, squad_scores
from albert_tf.metrics.squad import normalize_answer

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "metrics_squad"
PAIRS, MULTI, V2 = (json.loads((GOLDEN / f"{name}.json").read_text("utf-8")) for name in ("pairs", "multi", "v2"))


def test_pairs():
    assert len(PAIRS) == 200
    for pair in PAIRS:
        prediction, answer = {"q": pair["prediction"]}, {"q": [pair["gold"]]}
        assert normalize_answer(pair["prediction"]) == pair["normalized_prediction"]
        assert normalize_answer(pair["gold"]) == pair["normalized_gold"]
        old, new = squad_scores(answer, prediction), squad2_scores(answer, prediction).overall
        assert old.exact == new.exact == 100 * pair["exact"]
        assert old.f1 == pytest.approx(100 * pair["f1_v1"], abs=1e-9)
        assert new.f1 == pytest.approx(100 * pair["f1_v2"], abs=1e-9)


def test_the_best_of_several_answers_counts():
    cases = MULTI["cases"]
    answers = {str(index): case["golds"] for index, case in enumerate(cases)}
    scores = squad_scores(answers, {str(index): case["prediction"] for index, case in enumerate(cases)})
    expected = MULTI["expected"]
    assert (scores.exact, scores.f1) == pytest.approx((expected["exact_match"], expected["f1"]), abs=1e-9)
    assert scores.total == 40


def scores_of_v2(**threshold):
    cases = V2["cases"]
    return squad2_scores(
        {case["id"]: case["golds"] for case in cases},
        {case["id"]: case["prediction"] for case in cases},
        {case["id"]: case["na_prob"] for case in cases},
        **threshold,
    )


@pytest.mark.parametrize(("threshold", "name"), [({}, "threshold_1"), ({"threshold": 0.5}, "threshold_0_5")])
def test_questions_without_answers(threshold, name):
    scores, expected = scores_of_v2(**threshold), V2["expected"]
    assert scores.overall.exact == pytest.approx(expected[name]["exact"], abs=1e-9)
    assert scores.overall.f1 == pytest.approx(expected[name]["f1"], abs=1e-9)
    best = (scores.best_exact.score, scores.best_exact.threshold, scores.best_f1.score, scores.best_f1.threshold)
    names = ("best_exact", "best_exact_thresh", "best_f1", "best_f1_thresh")
    assert best == pytest.approx([expected[name] for name in names], abs=1e-9)


def test_sub_scores_are_those_of_another_evaluator():
    scores, peer = scores_of_v2(), V2["peer"]["default"]
    for part, name in ((scores.answerable, "HasAns"), (scores.unanswerable, "NoAns")):
        expected = [peer[f"{name}_{score}"] for score in ("exact", "f1", "total")]
        assert (part.exact, part.f1, part.total) == pytest.approx(expected, abs=1e-5)


def test_an_answer_without_words_is_an_answer():
    answers = {"article": ["the"], "none": []}
    scores = squad2_scores(answers, {"article": "", "none": "x"}, {"article": 0.2, "none": 0.8})
    assert (scores.answerable.total, scores.answerable.exact, scores.unanswerable.exact) == (1, 100.0, 0.0)
    assert (scores.best_exact.score, scores.best_exact.threshold) == (100.0, 0.2)


@pytest.mark.parametrize(
    ("prediction", "answers", "exact", "f1"),
    [
        ("윤동주", ["윤동주"], 100, 100),
        ("<윤동주>", ["'윤동주'"], 100, 100),
        ("《서시》와", ["서시"], 0, 80),
        ("하늘과 바람", ["하늘과바람"], 0, 100),  # characters without spaces, but exact match with them
        ("1,917년", ["1917년", "1917"], 100, 100),
        ("없다", ["윤동주"], 0, 0),
        ("", ["윤동주"], 0, 0),
    ],
)
def test_korquad_counts_characters(prediction, answers, exact, f1):
    scores = korquad_scores({"q": answers}, {"q": prediction})
    assert (scores.exact, scores.f1) == pytest.approx((exact, f1))


UNANSWERED = {"a": ["x"], "b": []}
AS_LETTERS = r"`answers` must have a list of texts .* a string for 'q'"  # which would be the answers


@pytest.mark.parametrize(
    ("score", "given", "message"),
    [
        (squad_scores, ({}, {}), "at least one question"),
        (
            squad_scores,
            ({question: ["x"] for question in "abcd"}, {}),
            r"4 questions \(a, b, c, ...\) are without a pred",
        ),
        (
            squad_scores,
            (UNANSWERED, {"a": "x", "b": ""}),
            r"1 questions \(b\) .* without an answer; .* `squad2_scores`",
        ),
        (squad2_scores, (UNANSWERED, {"a": "x", "b": ""}, {"a": 0.5}), r"\(b\) are without a no-answer score"),
        (korquad_scores, ({"q": []}, {"q": ""}), "without an answer"),
        *((score, ({"q": "Emily"}, {"q": "Emily"}), AS_LETTERS) for score in (squad_scores, squad2_scores)),
        (korquad_scores, ({"q": "Emily"}, {"q": "Emily"}), AS_LETTERS),
    ],
)
def test_what_cannot_be_scored_is_refused(score, given, message):
    with pytest.raises(ValueError, match=message):
        score(*given)
