"""Scores of tagged words, compared with counting by hand."""

import random

import pytest
import seqeval.metrics as seqeval

from albert_tf.metrics.entities import find_entities, tag_scores


@pytest.mark.parametrize(
    ("tags", "entities"),
    [
        ("", []),
        ("O O", []),
        ("B-A I-A O B-A", [("A", 0, 2), ("A", 3, 4)]),
        ("B-A B-A", [("A", 0, 1), ("A", 1, 2)]),
        ("I-A I-A I-B", [("A", 0, 2), ("B", 2, 3)]),  # an entity may begin with I
        ("B-A I-B I-A", [("A", 0, 1), ("B", 1, 2), ("A", 2, 3)]),
        ("B-A I-A E-A I-A", [("A", 0, 3), ("A", 3, 4)]),
        ("S-A S-A E-A", [("A", 0, 1), ("A", 1, 2), ("A", 2, 3)]),
        ("B-A-1 I-A-1", [("A-1", 0, 2)]),  # labels may have a hyphen
        ("B-A I-A L-A U-A", [("A", 0, 3), ("A", 3, 4)]),
    ],
)
def test_entities_of_tags(tags, entities):
    assert find_entities(tags.split()) == entities


def test_scores():
    tags = [["B-A", "I-A", "O", "B-B"], ["O", "B-B"]]
    predictions = [["B-A", "O", "O", "B-B"], ["B-A", "B-B"]]
    scores = tag_scores(tags, predictions)
    assert (scores.precision, scores.recall) == (2 / 4, 2 / 3)
    assert scores.f1 == pytest.approx(4 / 7)
    assert scores.accuracy == 4 / 6
    assert {label: each.f1 for label, each in scores.by_label.items()} == {"A": 0.0, "B": 1.0}
    assert tag_scores([["O"]], [["O"]]).f1 == 0.0


@pytest.mark.parametrize("tags", [[], [[]], [["O"], ["O"]]])
def test_other_lengths_are_refused(tags):
    with pytest.raises(ValueError, match="same lengths, with at least one tag"):
        tag_scores(tags, [["O"]] if len(tags) == 2 else tags)


def test_as_seqeval_counts():
    chance = random.Random(0)
    names = ["O", *(f"{prefix}-{label}" for prefix in "BIES" for label in "AB")]
    tags, predictions = ([[chance.choice(names) for _ in range(9)] for _ in range(300)] for _ in range(2))
    scores = tag_scores(tags, predictions)
    assert scores.f1 == pytest.approx(seqeval.f1_score(tags, predictions))
    assert scores.precision == pytest.approx(seqeval.precision_score(tags, predictions))
    assert scores.recall == pytest.approx(seqeval.recall_score(tags, predictions))
    assert scores.accuracy == pytest.approx(seqeval.accuracy_score(tags, predictions))
