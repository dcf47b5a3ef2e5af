"""Proves that multiple-choice questions are read from each of the three forms, and that other forms are refused."""

import pytest

from albert_tf.data.finetuning.table_format import TableFormat
from albert_tf.tasks.multiple_choice.choices import ChoiceQuestion
from albert_tf.tasks.multiple_choice.files import read_choices
from tests.data.finetuning.test_forms import write

CHOICES = {
    "RACE of the hub": ({"article": "c", "question": "q", "options": ["x", "y", "z"], "answer": "C"}, ("c", "q z")),
    "a column a choice": ({"question": "q", "option1": "x", "option2": "y", "answer": "y"}, ("", "q y")),
    "columns from 0": ({"passage": "c", "question": "q", "ending_0": "x", "ending_1": "y", "label": 1}, ("c", "q y")),
    "the text of the answer": ({"question": "q", "choices": ["x", "y y"], "answer": "y y"}, ("", "q y y")),
}


@pytest.mark.parametrize("form", CHOICES)
@pytest.mark.parametrize("suffix", ["jsonl", "json", "memory", "parquet"])
def test_choices(tmp_path, form, suffix):
    row, (context, statement) = CHOICES[form]
    (question,) = read_choices(write(tmp_path, [row], suffix))
    assert (question.context, question.statements()[question.label]) == (context, statement)
    labels = ("answer", "label")
    unlabelled = {name: value for name, value in row.items() if name not in labels}
    (question,) = read_choices(write(tmp_path, [unlabelled], suffix), labelled=False)
    assert question.label == -1


NAMED = {"label": ["A", "B"], "text": ["x", "y"]}


@pytest.mark.parametrize("suffix", ["jsonl", "memory", "parquet"])
@pytest.mark.parametrize(
    "row",
    [
        {"question": "q", "choices": NAMED, "answerKey": "B"},
        {"question": {"stem": "q", "choices": [NAMED]}, "answerKey": "B"},
        {"question_stem": "q", "choices": NAMED, "answerKey": "B"},
        {"sent1": "s", "sent2": "t", "ending0": "x", "ending1": "y", "label": 1},
        {"ctx": "s", "endings": ["x", "y"], "label": "1"},
        {"premise": "p", "question": "cause", "choice1": "x", "choice2": "y", "label": 1},
        {"sentence": "a _ b", "option1": "x", "option2": "y", "answer": "2"},
        {"goal": "g", "sol1": "x", "sol2": "y", "label": 1},
        {"context": "c", "question": "q", "answerA": "x", "answerB": "y", "label": "2"},
        {"flores_passage": "c", "question": "q", "mc_answer1": "x", "mc_answer2": "y", "correct_answer_num": "2"},
        {"question": "q", "opa": "x", "opb": "y", "cop": 1},
    ],
)
def test_rows_of_other_forms_are_refused(tmp_path, row, suffix):
    with pytest.raises(ValueError, match=r"RACE.*choices.*choice0"):
        read_choices(write(tmp_path, [row], suffix))


def test_other_numbers_of_choices_are_refused_or_counted(tmp_path):
    rows = [{"question": "q", "choices": list("xyz")[:count], "answer": 0} for count in (3, 2, 2)]
    path = write(tmp_path, rows, "jsonl")
    with pytest.raises(ValueError, match=r"line 1: 3 choices, but 2 in .*line 2; .* ragged_rows = 'drop'"):
        read_choices(path)
    with pytest.warns(UserWarning, match="1 questions were left out, because they have not 2 choices"):
        assert len(read_choices(path, table=TableFormat(drop_ragged=True))) == 2


@pytest.mark.parametrize(
    ("labels", "expected"),
    [([0, 1, 2], [0, 1, 2]), ([1, 2, 3], [0, 1, 2]), (["1", "3", "2"], [0, 2, 1]), ([1.0, 2.0, 3.0], [0, 1, 2])],
)
def test_answers_are_counted_from_0_or_from_1(tmp_path, labels, expected):
    rows = [{"question": "q", "choice1": "x", "choice2": "y", "choice3": "z", "answer": label} for label in labels]
    questions = read_choices(write(tmp_path, rows, "jsonl"))
    assert [question.label for question in questions] == expected
    assert ("counted from 1" in questions.form) == (expected[0] != int(labels[0]))


@pytest.mark.parametrize("labels", [[0, 3], [1, 3], [3]])
def test_numbers_beyond_the_choices_are_refused(tmp_path, labels):
    rows = [{"question": "q", "choices": ["x", "y", "z"], "label": label} for label in labels]
    with pytest.raises(ValueError, match=rf"line {len(rows)}: the answer must be a number from 0 to 2, .*Received: 3"):
        read_choices(write(tmp_path, rows, "jsonl"))


def test_columns_of_choices_keep_their_places(tmp_path):
    rows = [{"question": "q", **{f"choice{n}": f"c{n}" for n in range(1, 13)}, "choice13": None, "label": 11}]
    (question,) = read_choices(write(tmp_path, rows, "jsonl"))
    assert question.choices[question.label] == "c12"
    rows = [{"question": "q", "choice1": "x", "choice2": None, "choice3": "z", "answer": "C"}]
    with pytest.raises(ValueError, match="all of them strings"):
        read_choices(write(tmp_path, rows, "jsonl"))


def test_a_blank_within_a_word_stays_where_another_one_stands_alone():
    question = ChoiceQuestion("", "", "The cat_lady saw _ run.", ("him", "her"), 0)
    assert question.statements() == ["The cat_lady saw him run.", "The cat_lady saw her run."]
