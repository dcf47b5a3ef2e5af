"""Proves that multiple-choice questions are read from each of the three forms, and that other forms are refused."""

import json

import pytest

from albert_tf.tasks.multiple_choice.files import read_choices
from tests.data.written import write_rows
from tests.parameters import diagonal

ASKED = {"question": "q", "choices": ["x", "y y"]}
CHOICES = {
    "RACE of the hub": ({"article": "c", "question": "q", "options": ["x", "y", "z"], "answer": "C"}, ("c", "q z")),
    "a column a choice": ({"question": "q", "option1": "x", "option2": "y", "answer": "y"}, ("", "q y")),
    "columns from 0": ({"passage": "c", "question": "q", "ending_0": "x", "ending_1": "y", "label": 1}, ("c", "q y")),
    "the text of the answer": ({**ASKED, "answer": "y y"}, ("", "q y y")),
    "a number": ({**ASKED, "context": "c", "label": 1}, ("c", "q y y")),
}


@pytest.mark.parametrize("form", CHOICES)
@pytest.mark.parametrize("suffix", ["jsonl", "json", "memory", "parquet"])
def test_choices(tmp_path, form, suffix):
    row, (context, statement) = CHOICES[form]
    (question,) = read_choices(write_rows(tmp_path, [row], suffix))
    assert (question.context, question.statements()[question.label]) == (context, statement)
    unlabelled = {name: value for name, value in row.items() if name not in ("answer", "label")}
    (question,) = read_choices(write_rows(tmp_path, [unlabelled], suffix), labelled=False)
    assert question.label == -1


PASSAGE = {
    "article": "It rained all day. Anna stayed at home.",
    "questions": ["Anna stayed _ .", "What was the weather?"],
    "options": [["at home", "outside"], ["sun", "rain"]],
    "answers": ["A", "B"],
}


def race(folder, **changes):
    for number, group in enumerate(("middle", "high")):
        (folder / group).mkdir(parents=True, exist_ok=True)
        (folder / group / f"{number}.txt").write_text(json.dumps({**PASSAGE, **changes}), encoding="utf-8")
    return folder


def test_folders_of_race(tmp_path):
    questions = read_choices(race(tmp_path / "dev"))
    assert [(question.group, question.label) for question in questions] == [
        *[("high", 0), ("high", 1)],
        *[("middle", 0), ("middle", 1)],
    ]
    assert questions[0].statements() == ["Anna stayed at home .", "Anna stayed outside ."]
    assert questions[1].statements() == ["What was the weather? sun", "What was the weather? rain"]


def test_groups_of_race_in_rows(tmp_path):
    row = {"article": "c", "question": "q", "options": ["a", "b"], "answer": "A", "example_id": "middle3.txt"}
    (question,) = read_choices(write_rows(tmp_path, [row]))
    assert (question.label, question.group) == (0, "middle")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answers": ["A"]}, "lists of the same length"),
        ({"answers": ["A", "C"]}, r"question 1: the answer must be .* a letter from A to B, .* Received: 'C'"),
        ({"answers": ["A", "ß"]}, r"question 1: the answer must be .* Received: 'ß'"),
        ({"answers": [0, -1]}, "question 1: the answer must be"),
        ({"options": [["a", "b"], ["c"]]}, "at least two choices"),
        ({"options": [["a", "b"], ["c", "d", "e"]]}, r"question 1: 3 choices, but 2 in"),
        ({"article": 5}, "must be strings"),
        ({"questions": [], "options": [], "answers": []}, "has no questions"),
    ],
)
def test_wrong_files_of_race_are_refused(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        read_choices(race(tmp_path / "dev", **changes))


OTHER_FORMS = [
    {"question": "q", "choices": {"label": ["A", "B"], "text": ["x", "y"]}, "answerKey": "B"},
    {"sent1": "s", "sent2": "t", "ending0": "x", "ending1": "y", "label": 1},
    {"premise": "p", "question": "cause", "choice1": "x", "choice2": "y", "label": 1},
    {"sentence": "a _ b", "option1": "x", "option2": "y", "answer": "2"},
]


@pytest.mark.parametrize(("row", "suffix"), diagonal(OTHER_FORMS, ["jsonl", "memory", "parquet"]))
def test_rows_of_other_forms_are_refused(tmp_path, row, suffix):
    with pytest.raises(ValueError, match=r"choices.*choice0"):
        read_choices(write_rows(tmp_path, [row], suffix))


@pytest.mark.parametrize(("labels", "wrong"), [([0, 3], 3), ([1, 2.0, 3], 3), (["1", "4"], "4")])
def test_numbers_beyond_the_choices_are_refused(tmp_path, labels, wrong):
    rows = [{"question": "q", "choices": ["x", "y", "z"], "label": label} for label in labels]
    message = rf"line {len(rows)}: the answer must be a number from 0 to 2, .*Received: {wrong!r}"
    with pytest.raises(ValueError, match=message):
        read_choices(write_rows(tmp_path, rows))


def test_columns_of_choices_keep_their_places(tmp_path):
    rows = [{"question": "q", **{f"choice{n}": f"c{n}" for n in range(1, 13)}, "choice13": None, "label": 11}]
    (question,) = read_choices(write_rows(tmp_path, rows))
    assert question.choices[question.label] == "c12"
    rows = [{"question": "q", "choice1": "x", "choice2": None, "choice3": "z", "answer": "C"}]
    with pytest.raises(ValueError, match="all of them strings"):
        read_choices(write_rows(tmp_path, rows))
