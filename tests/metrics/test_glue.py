"""Proves that the GLUE scores are those of scikit-learn and scipy, also where they are degenerate."""

import json
import math
import pathlib

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from albert_tf.metrics import LabelScores, classification_scores, multi_label_scores, regression_scores
from albert_tf.metrics.glue import best_threshold

CASES = json.loads((pathlib.Path(__file__).parents[1] / "golden" / "metrics_glue" / "cases.json").read_text())


def cases(kind):
    return [pytest.param(case, id=case["name"]) for case in CASES if case["kind"] == kind]


@pytest.mark.parametrize("case", cases("classification"))
def test_classification(case):
    scores, expected = classification_scores(case["labels"], case["predictions"]), case["expected"]
    assert scores.accuracy == pytest.approx(expected["accuracy"], abs=1e-12)
    assert scores.matthews == pytest.approx(expected["matthews_corrcoef"], abs=1e-12)
    assert scores.f1_macro == pytest.approx(expected["f1_macro"], abs=1e-12)
    assert scores.f1 == (pytest.approx(expected["f1"], abs=1e-12) if "f1" in expected else None)
    numbers = range(max(*case["labels"], *case["predictions"], 1) + 1)
    names = [f"label {number}" for number in numbers]
    scores = classification_scores(case["labels"], case["predictions"], names)
    matrix = [[scores.confusion.get(label, {}).get(other, 0) for other in names] for label in names]
    assert matrix == confusion_matrix(case["labels"], case["predictions"], labels=numbers).tolist()
    expected = precision_recall_fscore_support(
        case["labels"], case["predictions"], labels=numbers, zero_division=np.nan
    )
    for name, column in zip(("precision", "recall", "f1", "examples"), expected):
        found = [getattr(scores.by_label[label], name) for label in names]
        np.testing.assert_allclose(np.array(found, float), column, atol=1e-12)  # None is NaN


def test_f1_is_of_the_positive_label():
    labels, predictions, names = [0, 0, 0, 1, 1], [0, 0, 1, 1, 0], ["no", "yes"]
    for label, f1 in ((None, 0.5), ("yes", 0.5), ("no", 2 / 3)):
        scores = classification_scores(labels, predictions, names, label)
        assert (scores.f1, scores.positive_label) == (pytest.approx(f1), label or "yes")
    scores = classification_scores(labels, predictions, [*names, "perhaps"])
    assert (scores.f1, scores.positive_label) == (None, None)
    assert scores.by_label["perhaps"] == LabelScores(None, None, None, 0)
    for names, label in ((["no", "yes"], "Yes"), (["no", "yes", "perhaps"], "yes")):
        with pytest.raises(ValueError, match=r"`positive_label` must be one of two labels\. Received: "):
            classification_scores(labels, predictions, names, label)
    with pytest.raises(ValueError, match="must have a name for each of 2 classes"):
        classification_scores(labels, predictions, ["no"])


def test_thousands_of_classes_need_no_table_of_all_pairs():
    scores = classification_scores([0, 200_000, 5], [0, 200_000, 6])
    assert scores.confusion == {"0": {"0": 1}, "5": {"6": 1}, "200000": {"200000": 1}}


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("side", ["labels", "predictions"])
def test_a_number_that_is_not_finite_has_no_correlation(bad, side):
    values = {"labels": [1.0, 2.0, 3.0, 4.0], "predictions": [1.0, 3.0, 2.0, 4.0]}
    values[side][1] = bad
    scores = regression_scores(**values)
    assert math.isnan(scores.pearson)
    assert math.isnan(scores.spearman) == math.isnan(bad)  # infinity has a rank


@pytest.mark.parametrize("case", cases("regression"))
def test_regression(case):
    scores, expected = regression_scores(case["labels"], case["predictions"]), case["expected"]
    assert scores.mean_squared_error == pytest.approx(expected["mse"], rel=1e-12)
    for found, name in ((scores.pearson, "pearson"), (scores.spearman, "spearmanr")):
        if expected[name] is None:
            assert math.isnan(found)
        else:
            assert found == pytest.approx(expected[name], abs=1e-9)


def test_matthews_of_many_examples_does_not_overflow():
    labels = np.tile(np.array([0, 1], "int32"), 300_000)
    assert classification_scores(labels, labels).matthews == pytest.approx(1.0)
    assert classification_scores(labels, 1 - labels).matthews == pytest.approx(-1.0)


@pytest.mark.parametrize(
    ("labels", "predictions", "sentence"),
    [
        ([], [], "non-empty lists"),
        ([0, 1], [0], "non-empty lists of equal length"),
        ([[0, 1]], [[0, 1]], "non-empty lists of equal length"),
        ([0, 1], [0.2, 0.8], "`predictions` must be classes"),
        ([-1, 1], [0, 1], "`labels` must be classes"),
    ],
)
def test_what_is_no_list_of_classes_is_one_sentence(labels, predictions, sentence):
    with pytest.raises(ValueError, match=sentence):
        classification_scores(labels, predictions)


@pytest.mark.parametrize("seed", range(5))
def test_no_threshold_is_better_than_the_best_one(seed):
    chance = np.random.default_rng(seed)
    labels = chance.random((40, 3)) < 0.3
    probabilities = (0.3 * labels + 0.1 * chance.integers(0, 7, labels.shape)).astype(np.float32)  # with ties

    def f1(threshold):
        return multi_label_scores(labels, probabilities > np.float32(threshold)).f1_micro

    found = best_threshold(labels, probabilities)
    assert f1(found) == max(map(f1, np.linspace(0, 1, 999)))
    assert found != 0.5
    alone = [best_threshold(*column, default=found) for column in zip(labels.T, probabilities.T)]
    for number, threshold in enumerate(alone):
        column, wanted = probabilities[:, number : number + 1], labels[:, number : number + 1]
        scores = [multi_label_scores(wanted, column > np.float32(t)).f1_micro for t in (threshold, found)]
        assert scores[0] >= scores[1]


@pytest.mark.parametrize("lower", np.float32([0.5, np.nextafter(np.float32(1), np.float32(0)), 1e-45]))
def test_a_threshold_between_neighbours_decides_in_float32(lower):
    labels = np.repeat([1, 0], 12)
    for one, other in ((lower, np.nextafter(lower, np.float32(2))), (np.nextafter(lower, np.float32(0)), lower)):
        probabilities = np.where(labels, other, one)
        assert (probabilities > np.float32(best_threshold(labels, probabilities, 0.0))).tolist() == labels.tolist()


def test_a_threshold_stays_where_it_is_without_reason_to_move_it():
    labels = np.repeat([1, 0], 12)
    assert best_threshold(labels, np.where(labels, 0.9, 0.2)) == 0.5
    assert best_threshold(labels[3:], np.where(labels[3:], 0.3, 0.2)) == 0.5  # 9 positives
    assert best_threshold(labels, np.where(labels, 0.3, 0.2)) == pytest.approx(0.25)
    assert best_threshold(labels, np.where(labels, 0.9, 0.8), 0.6) == pytest.approx(0.85)
    assert best_threshold(labels, np.full(24, np.nan)) == 0.5
    assert best_threshold(np.zeros(24), np.zeros(24)) == 0.5
