"""Multiple-choice questions: files, and inputs as the reference makes them."""

import json

import numpy as np
import pytest

from albert_tf.tasks.multiple_choice.choices import ChoiceQuestion, encode_choices
from albert_tf.tasks.multiple_choice.files import read_choices
from albert_tf.tokenization import AlbertTokenizer

PASSAGE = {
    "id": "high1.txt",
    "article": "It rained all day. Anna stayed at home.",
    "questions": ["Anna stayed _ .", "What was the weather?"],
    "options": [["at home", "outside"], ["sun", "rain"]],
    "answers": ["A", "B"],
}


@pytest.fixture(scope="module")
def tokenizer():
    return AlbertTokenizer.english()


def race(folder, **changes):
    for number, group in enumerate(("middle", "high")):
        (folder / group).mkdir(parents=True, exist_ok=True)
        (folder / group / f"{number}.txt").write_text(json.dumps({**PASSAGE, **changes}), encoding="utf-8")
    return folder


def test_folders_of_race(tmp_path):
    questions = read_choices(race(tmp_path / "dev"))
    assert [(question.group, question.label) for question in questions] == [
        ("high", 0),
        ("high", 1),
        ("middle", 0),
        ("middle", 1),
    ]
    assert questions[0].statements() == ["Anna stayed at home .", "Anna stayed outside ."]
    assert questions[1].statements() == ["What was the weather? sun", "What was the weather? rain"]


def test_a_gap_of_several_underscores_is_filled_once():
    question = ChoiceQuestion("", "c", "____ stayed, and _ left.", (r"\1", "Bob"), 0)
    assert question.statements() == [r"\1 stayed, and \1 left.", "Bob stayed, and Bob left."]


def test_json_lines(tmp_path):
    question = {"context": "c", "question": "q", "choices": ["a", "b"], "label": 1}
    other = {"article": "c", "question": "q", "options": ["a", "b"], "answer": "A", "example_id": "middle3.txt"}
    for rows, expected in (([question, other], [(1, ""), (0, "middle")]), ([PASSAGE], [(0, "high"), (1, "high")])):
        (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        assert [(one.label, one.group) for one in read_choices(tmp_path / "a.jsonl")] == expected


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
def test_wrong_files_are_refused(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        read_choices(race(tmp_path / "dev", **changes))


def test_inputs_are_the_references(tokenizer):
    """Passage, then question with choice; the passage loses its end, a long question its beginning."""
    context, question = "The old man went to the sea. " * 10, "Where did the old man go after he had eaten _"
    asked = ChoiceQuestion("q", context, question, ("to the sea", "home"), 1)
    encoded = encode_choices(tokenizer, [asked], max_length=40, max_question_length=8)
    inputs, labels = encoded.training_batch(np.array([0]))
    assert inputs["input_ids"].shape == (1, 2, 40)
    assert labels.tolist() == [1]
    passage = tokenizer.encode(context)
    for row, statement in enumerate(asked.statements()):
        end = tokenizer.encode(statement)[-8:]
        expected = [2, *passage[: 40 - 3 - len(end)], 3, *end, 3]
        assert inputs["input_ids"][0, row].tolist() == expected
        assert inputs["token_type_ids"][0, row].tolist() == [0] * (len(expected) - len(end) - 1) + [1] * (len(end) + 1)


def test_a_length_without_space_is_refused(tokenizer):
    asked = ChoiceQuestion("q", "The old man went to the sea.", "Where? _", ("to the sea", "home"), 1)
    for length in (3, 4):
        with pytest.raises(ValueError, match=f"`max_length` must be at least 5 .* Received: max_length={length}"):
            encode_choices(tokenizer, [asked], max_length=length)
    inputs, _ = encode_choices(tokenizer, [asked], max_length=5).training_batch(np.array([0]))
    assert inputs["attention_mask"].sum(axis=-1).tolist() == [[5, 5]]
