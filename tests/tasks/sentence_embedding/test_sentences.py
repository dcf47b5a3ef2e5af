"""Proves that rows of similar sentences are found by the columns of published data sets."""

import pytest

from albert_tf.data.finetuning.classification import Columns
from albert_tf.data.finetuning.table_format import TableFormat
from albert_tf.tasks.sentence_embedding.sentences import known_columns, read_sentences
from tests.data.written import write_rows


@pytest.mark.parametrize(
    ("row", "negative", "expected"),
    [
        ({"anchor": "a", "positive": "b", "negative": "c"}, "negative", ["a", "b", "c"]),
        ({"sentence1": "a", "sentence2": "b", "score": 0.5}, None, ["a", "b"]),
        ({"text": "a", "pair": "b", "label": 0.5}, None, ["a", "b"]),
    ],
)
def test_sentences(tmp_path, row, negative, expected):
    path, columns = write_rows(tmp_path, [row]), Columns(pair="pair" if "pair" in row else None)
    largest = 1.0 if negative is None else None
    rows = read_sentences(path, columns, TableFormat(), negative, largest_label=largest)
    assert list(rows.sentences) == expected
    assert rows.similarities.tolist() == [0.5 if negative is None else 0.0]
    assert known_columns(path, columns, TableFormat()).pair in row
