"""Proves that questions are read from each of the forms in which people have them, and others refused."""

import json

import numpy as np
import pandas
import pytest

from albert_tf.tasks.question_answering.files import read_questions
from albert_tf.tasks.question_answering.questions import encode_questions
from albert_tf.tokenization import AlbertTokenizer
from tests.data.written import write, write_rows
from tests.parameters import diagonal

CONTEXT = "The harbour was built in 1874 by Anna Keller. Anna lives there."
ROW = {"context": CONTEXT, "question": "Who built it?"}
NESTED_ANSWER = [{"text": "Anna Keller", "answer_start": 33}]
OF_THE_HUB = {"text": ["Anna Keller"], "answer_start": [33]}
ANSWERED, UNANSWERED = [("Anna Keller",), (33,)], [(), ()]
PARAGRAPH = {"context": CONTEXT, "qas": [{"guid": 1, "question": "Who?", "answers": NESTED_ANSWER}]}

QUESTIONS = {
    "SQuAD of the hub": ({**ROW, "id": "a", "answers": OF_THE_HUB}, ANSWERED),
    "KLUE-MRC of the hub": ({**ROW, "guid": "a", "is_impossible": False, "answers": OF_THE_HUB}, ANSWERED),
    "KLUE-MRC, plausible answers": ({**ROW, "is_impossible": True, "answers": OF_THE_HUB}, UNANSWERED),
    "no answer": ({**ROW, "answers": {"text": [], "answer_start": []}}, UNANSWERED),
    "a list of dicts": ({**ROW, "answers": NESTED_ANSWER}, ANSWERED),
    "one text and its start": ({**ROW, "answer_text": "Anna Keller", "answer_start": 33}, ANSWERED),
    "one text": ({**ROW, "answer": "Anna Keller"}, ANSWERED),
    "several texts": ({**ROW, "answers": ["Anna Keller", "1874"]}, [("Anna Keller", "1874"), (33, 25)]),
    "a missing answer": ({**ROW, "answer": None}, UNANSWERED),
    "a paragraph": ({"context": CONTEXT, "qas": [{"id": "a", "question": "Who?", "answers": NESTED_ANSWER}]}, ANSWERED),
    "an article": ({"title": "t", "paragraphs": [PARAGRAPH]}, ANSWERED),
    "without answers": (ROW, UNANSWERED),
    "a start as a float": ({**ROW, "answer": "1874", "answer_start": 25.0}, [("1874",), (25,)]),
}


@pytest.mark.parametrize(("form", "suffix"), diagonal([*QUESTIONS], ["jsonl", "json", "data", "memory", "parquet"]))
def test_questions(tmp_path, form, suffix):
    row, (answers, starts) = QUESTIONS[form]
    (question,) = read_questions(write_rows(tmp_path, [row], suffix))
    assert (question.context, question.answers, question.starts) == (CONTEXT, answers, starts)


@pytest.mark.parametrize(
    ("context", "answer", "start"),
    [("The party has art.", "art", 14), ("The party is over.", "art", 5), ("부서울과 서울에서", "서울", 5)],
)
def test_an_answer_is_searched_as_a_word(tmp_path, context, answer, start):
    (question,) = read_questions(write_rows(tmp_path, [{"context": context, "question": "?", "answer": answer}]))
    assert question.starts == (start,)


def test_tables_say_what_is_impossible(tmp_path):
    lines = "context,question,answer,answer_start,is_impossible\nab,q,a,0,FALSE\nab,r,a,0,TRUE\n"
    assert [question.answers for question in read_questions(write(tmp_path / "a.csv", lines))] == [("a",), ()]


def test_what_questions_were_recognised_as(tmp_path):
    questions = read_questions(write_rows(tmp_path, [{**ROW, "answer": "Anna"}, {**ROW, "answer": "1874"}]))
    expected = "2 questions (SQuAD, one row a question; 1 answers without a start occur again)"
    assert questions.form == expected
    assert [question.id for question in questions] == ["0", "1"]


@pytest.mark.parametrize(
    ("answers", "write_out"),
    [(OF_THE_HUB, str), (NESTED_ANSWER, json.dumps), (["1874"], lambda value: str(np.array(value)))],
)
def test_lists_and_dicts_as_text_in_a_table(tmp_path, answers, write_out):
    pandas.DataFrame([{**ROW, "answers": write_out(answers)}]).to_csv(tmp_path / "a.csv", index=False)
    message = r"a\.csv, line 2: answers is a list or a dict that was written as text.*jsonl"
    with pytest.raises(ValueError, match=message):
        read_questions(tmp_path / "a.csv")


def asked(identifier="q", **changes):
    answers = [{"text": "Jane", "answer_start": 0}]
    return {"id": identifier, "question": "who?", "answers": answers, **changes}


def squad(*questions, context="Jane Austen wrote it."):
    return json.dumps({"data": [{"paragraphs": [{"context": context, "qas": questions}]}]})


MISSPELT = {"id": "2", "question": "?", "anwers": []}
WRONG = [
    ("[]", "has no rows"),
    ("{}", "an object with such a list as `data`"),
    ('{"data": [{}]}', "element 1, has none of the forms of question answering; its columns are none"),
    ('[{"text": "x", "label": 1}]', r"its columns are 'text', 'label'\. Rename them"),
    (json.dumps([{**ROW, "answer": "1874"}, ROW]), "element 2, has no column 'answers' or .*unlike the rows before"),
    (squad(), "has no questions"),
    (squad(asked(), context=" "), "the passage is empty"),
    (squad(asked(), asked()), r"qas\[1\]: the id 'q' is that of an earlier question"),
    (squad(asked(), MISSPELT), r"qas\[1\]: the question has no `answers`, unlike that of .*qas\[0\]"),
    (squad(asked(answers=[{"text": "Jane", "answer_start": 0.5}])), r"qas\[0\]: every answer must .* `answer_start`"),
    (squad(asked(question=" ")), r"element 1, paragraphs\[0\]\.qas\[0\]: the question is empty; fill it in"),
    (squad(asked(question=None)), r"element 1, paragraphs\[0\]\.qas\[0\]: question='None' is not a string"),
    (squad("who?"), r"element 1, paragraphs\[0\]\.qas\[0\], is not an object"),
    (squad(asked(answers=[["Jane"]])), r"qas\[0\]: answers must be texts, each with a start"),
    (squad(asked(answers={"text": ["Jane"], "answer_start": [0, 1]})), "answers must be texts, each with a start"),
    (squad(asked(answers="Janet")), r"element 1, paragraphs\[0\]\.qas\[0\] \('Janet'\): .* one of 1 such"),
    (squad(asked(answers=[{"text": "Jane", "answer_start": 5}])), r"qas\[0\] \('Jane'\): the answer is not in its"),
    (squad(asked(answers=[{"text": "", "answer_start": 0}])), "the answer is not in its passage at `answer_start`"),
]


@pytest.mark.parametrize(("content", "message"), WRONG)
def test_wrong_files_are_refused(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        read_questions(write(tmp_path / "a.json", content))


def test_misplaced_answers_can_be_kept_for_scores_alone(tmp_path):
    content = squad(asked(answers=[{"text": "Austen", "answer_start": 0}]), asked("p"))
    questions = read_questions(write(tmp_path / "a.json", content), misplaced="drop")
    assert [(question.answers, question.starts) for question in questions] == [(("Austen",), (-1,)), (("Jane",), (0,))]
    labels = encode_questions(AlbertTokenizer.english(), questions, 32, 8).labels()
    assert labels["is_impossible"].tolist() == [1, 0]


@pytest.mark.parametrize("changes", [{"is_impossible": True}, {"answers": [], "is_impossible": True}, {"answers": []}])
def test_a_question_without_an_answer(tmp_path, changes):
    (question,) = read_questions(write(tmp_path / "a.json", squad(asked(**changes))))
    assert question.answers == ()
