"""Proves that rows on disk are those that were stored, and that a full disk is told."""

import tempfile

import pytest

from albert_tf.data.finetuning.stored_rows import StoredRows
from albert_tf.tasks.question_answering.questions import Question
from albert_tf.tasks.token_classification.tagged import TaggedText
from tests.disk import full_disk

QUESTIONS = [Question(f"q{n}", "Who?", "Anna.", ("Anna",) * (n % 2), (0,) * (n % 2)) for n in range(8)]
TAGGED = [TaggedText("f", "\ud800 b", ((0, 1), (2, 3)), ("B", "O")), *[TaggedText("", "\0", spans=((0, 1, "x"),))] * 2]


@pytest.mark.parametrize("rows", [["one", "", "\ud800 is no text", "a\nb\0"], [""], QUESTIONS, TAGGED, []])
def test_rows_are_what_was_stored(rows):
    stored = StoredRows(rows[:1])
    for row in rows[1:]:
        stored.append(row)
    assert (len(stored), list(stored)) == (len(rows), rows)
    assert ([stored[n] for n in range(-len(rows), len(rows))], stored[1:-1]) == (rows + rows, rows[1:-1])
    with pytest.raises(IndexError):
        stored[len(rows)]


@pytest.mark.parametrize("rows", [["x" * 5000], ["x"] * 2000])
def test_a_full_disk_is_an_error_that_names_the_folder_of_rows(rows):
    with pytest.raises(OSError, match=r"could not write the file \(.*\): '/") as raised, full_disk(4096):
        list(StoredRows(rows))
    assert raised.value.filename == tempfile.gettempdir()
