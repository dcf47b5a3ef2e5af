"""Proves that the GLUE scores are those of scikit-learn and scipy, also where they are degenerate."""

import json
import math
import pathlib

import numpy as np
import pytest

from albert_tf.metrics import classification_scores, regression_scores

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
