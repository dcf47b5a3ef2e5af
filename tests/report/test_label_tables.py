"""Proves that the tables of a run's labels show the numbers of its report, the darker the greater."""

import re

import numpy as np

from albert_tf.metrics import classification_scores, multi_label_scores
from albert_tf.report.label_tables import label_tables


def rows(page: str, table: str) -> list[list[str]]:
    """The cells of a table."""
    content = re.search(rf'<table id="{table}">(.*?)</table>', page, re.DOTALL)[1]
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", content)]


def test_the_confusion_matrix_is_coloured_by_share():
    scores = classification_scores([0, 0, 0, 0, 1], [0, 0, 0, 1, 1], ["bad", "<good>", "none"])
    page = label_tables(scores.by_label, scores.confusion)
    assert rows(page, "labels") == [
        ["label", "precision", "recall", "F1", "examples"],
        ["bad", "1.0000", "0.7500", "0.8571", "4"],
        ["&lt;good&gt;", "0.5000", "1.0000", "0.6667", "1"],
        ["none", "undefined", "undefined", "undefined", "0"],
    ]
    assert rows(page, "confusion") == [
        ["label", "bad", "&lt;good&gt;", "none"],
        ["bad", "3", "1", "0"],
        ["&lt;good&gt;", "0", "1", "0"],
        ["none", "0", "0", "0"],
    ]
    opacities = [float(share) for share in re.findall(r"rgba\(70, 130, 180, ([\d.]+)\)", page)]
    assert opacities == [0.75, 0.25, 0, 0, 1, 0, 0, 0, 0]
    assert 'title="25.0% of bad"' in page


def test_of_many_labels_the_most_frequent_are_shown():
    labels = np.repeat(np.arange(50), np.arange(1, 51))
    scores = classification_scores(labels, labels)
    page = label_tables(scores.by_label, scores.confusion)
    assert [row[0] for row in rows(page, "labels")[1:]] == [str(number) for number in range(49, 19, -1)]
    assert len(rows(page, "confusion")[0]) == 1 + 30
    assert "The 30 most frequent of 50 labels; metrics.json has all." in page


def test_several_labels_have_no_confusion_matrix():
    page = label_tables(multi_label_scores([[1, 0]], [[1, 1]]).by_label, {})
    assert rows(page, "labels")[1] == ["0", "1.0000", "1.0000", "1.0000", "1"]
    assert "confusion" not in page
