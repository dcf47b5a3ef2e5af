"""Proves that examples are read from each of the forms in which people have them."""

import json

import datasets
import numpy as np
import pandas
import pytest

from albert_tf.data.finetuning.classification import Columns
from albert_tf.data.finetuning.example_sources import as_file
from albert_tf.data.finetuning.table_format import TableFormat
from albert_tf.tasks.multiple_choice.files import read_choices
from albert_tf.tasks.question_answering.files import read_questions
from albert_tf.tasks.sentence_embedding.sentences import known_columns, read_sentences
from albert_tf.tasks.token_classification.files import read_tagged
from tests.parameters import diagonal

CONTEXT = "The harbour was built in 1874 by Anna Keller. Anna lives there."
ROW = {"context": CONTEXT, "question": "Who built it?"}
NESTED_ANSWER = [{"text": "Anna Keller", "answer_start": 33}]
ANSWERED = [("Anna Keller",), (33,)]

QUESTIONS = {
    "SQuAD of the hub": ({**ROW, "id": "a", "answers": {"text": ["Anna Keller"], "answer_start": [33]}}, ANSWERED),
    "KLUE-MRC of the hub": (
        {**ROW, "guid": "a", "is_impossible": False, "answers": {"answer_start": [33], "text": ["Anna Keller"]}},
        ANSWERED,
    ),
    "KLUE-MRC, plausible answers": (
        {**ROW, "is_impossible": True, "answers": {"answer_start": [33], "text": ["Anna Keller"]}},
        [(), ()],
    ),
    "no answer": ({**ROW, "answers": {"text": [], "answer_start": []}}, [(), ()]),
    "a list of dicts": ({**ROW, "answers": NESTED_ANSWER}, ANSWERED),
    "one text and its start": ({**ROW, "answer_text": "Anna Keller", "answer_start": 33}, ANSWERED),
    "one text": ({**ROW, "answer": "Anna Keller"}, ANSWERED),
    "several texts": ({**ROW, "answers": ["Anna Keller", "1874"]}, [("Anna Keller", "1874"), (33, 25)]),
    "a missing answer": ({**ROW, "answer": None}, [(), ()]),
    "a paragraph": ({"context": CONTEXT, "qas": [{"id": "a", "question": "Who?", "answers": NESTED_ANSWER}]}, ANSWERED),
    "an article": (
        {
            "title": "t",
            "paragraphs": [{"context": CONTEXT, "qas": [{"guid": 1, "question": "Who?", "answers": NESTED_ANSWER}]}],
        },
        ANSWERED,
    ),
    "without answers": (ROW, [(), ()]),
}


@pytest.mark.parametrize(("form", "suffix"), diagonal([*QUESTIONS], ["jsonl", "json", "data", "memory", "parquet"]))
def test_questions(tmp_path, form, suffix):
    row, (answers, starts) = QUESTIONS[form]
    (question,) = read_questions(write(tmp_path, [row], suffix))
    assert (question.context, question.answers, question.starts) == (CONTEXT, answers, starts)


@pytest.mark.parametrize(
    ("context", "answer", "start"),
    [("The party has art.", "art", 14), ("The party is over.", "art", 5), ("부서울과 서울에서", "서울", 5)],
)
def test_an_answer_is_searched_as_a_word(tmp_path, context, answer, start):
    (question,) = read_questions(write(tmp_path, [{"context": context, "question": "?", "answer": answer}], "jsonl"))
    assert question.starts == (start,)


def test_tables_say_what_is_impossible_and_numbers_may_be_floats(tmp_path):
    lines = "context,question,answer,answer_start,is_impossible\nab,q,a,0.0,FALSE\nab,r,a,0,TRUE\n"
    (tmp_path / "a.csv").write_text(lines.replace("0.0", "0"), encoding="utf-8")
    assert [question.answers for question in read_questions(tmp_path / "a.csv")] == [("a",), ()]
    (question,) = read_questions(write(tmp_path, [{**ROW, "answer": "1874", "answer_start": 25.0}], "jsonl"))
    assert question.starts == (25,)


def test_a_question_without_answers_among_others_is_named(tmp_path):
    questions = [{"id": "1", "question": "?", "answers": []}, {"id": "2", "question": "?", "anwers": []}]
    with pytest.raises(ValueError, match=r"qas\[1\]: the question has no `answers`, unlike that of .*qas\[0\]"):
        read_questions(write(tmp_path, [{"context": "a", "qas": questions}], "json"))


def test_what_questions_were_recognised_as(tmp_path):
    rows = [{**ROW, "answer": "Anna"}, {**ROW, "answer": "1874"}]
    questions = read_questions(write(tmp_path, rows, "jsonl"))
    expected = "2 questions (SQuAD, one row a question; 1 answers without a start occur again, or within words)"
    assert questions.form == expected
    assert [question.id for question in questions] == ["0", "1"]


WORDS, TAGS = ["Anna", "Keller", "in", "Bergen"], ("B-PER", "I-PER", "O", "B-LOC")
NAMES = ("O", "B-PER", "I-PER", "B-LOC")
TEXT, SPANS = "Anna Keller in Bergen", ((0, 11, "PER"), (15, 21, "LOC"))
OBJECTS = [{"start": 15, "end": 21, "label": "LOC"}, {"start": 0, "end": 11, "label": "PER", "token_start": 0}]
OFFSETS = [{"id": 3, "label": label, "start_offset": start, "end_offset": end} for start, end, label in SPANS]

LABEL_STUDIO = [{"start": start, "end": end, "text": TEXT[start:end], "labels": [label]} for start, end, label in SPANS]
RESULT = {"type": "labels", "from_name": "label", "to_name": "text"}

TAGGED = {
    "words and tags": ({"words": WORDS, "tags": list(TAGS)}, TAGS),
    "of the hub, names": ({"id": "0", "tokens": WORDS, "ner_tags": list(TAGS)}, TAGS),
    "of the hub, numbers": ({"tokens": WORDS, "ner_tags": [1, 2, 0, 3]}, TAGS),
    "labels alone": ({"tokens": WORDS, "tags": ["PER", "PER", "O", "LOC"]}, TAGS),
    "IOB1": ({"tokens": WORDS, "tags": ["I-PER", "I-PER", "O", "I-LOC"]}, ("I-PER", "I-PER", "O", "I-LOC")),
    "BIOES": ({"tokens": WORDS, "tags": ["B-PER", "E-PER", "O", "S-LOC"]}, ("B-PER", "E-PER", "O", "S-LOC")),
    "Prodigy": ({"text": TEXT, "tokens": [{"text": "Anna"}], "spans": OBJECTS, "answer": "accept"}, SPANS),
    "doccano": ({"id": 1, "text": TEXT, "label": [[0, 11, "PER"], [15, 21, "LOC"]]}, SPANS),
    "doccano with relations": ({"text": TEXT, "entities": OFFSETS, "relations": [], "Comments": []}, SPANS),
    "spaCy": ([TEXT, {"entities": [[0, 11, "PER"], [15, 21, "LOC"]]}], SPANS),
    "Label Studio's JSON-MIN": ({"id": 1, "text": TEXT, "label": LABEL_STUDIO, "annotation_id": 7}, SPANS),
    "Label Studio": (
        {
            "id": 1,
            "data": {"text": TEXT},
            "annotations": [{"id": 7, "result": [{**RESULT, "value": value} for value in LABEL_STUDIO]}],
        },
        SPANS,
    ),
    "spaCy's documents": ({"text": TEXT, "ents": OBJECTS, "tokens": [{"id": 0}]}, SPANS),
}


@pytest.mark.parametrize(("form", "suffix"), diagonal([*TAGGED], ["jsonl", "json", "memory"]))
def test_tags_and_spans(tmp_path, form, suffix):
    row, expected = TAGGED[form]
    (text,) = read_tagged(write(tmp_path, [row], suffix), names=NAMES)
    assert (text.text, text.tags or text.spans) == (TEXT, expected)


def test_texts_of_label_studio_without_spans_or_annotations(tmp_path):
    annotated = {"id": 1, "data": {"text": "Anna"}, "annotations": [{"id": 7, "result": []}]}
    path = write(
        tmp_path, [annotated, {"text": "Bergen", "annotation_id": 8}, {**annotated, "annotations": []}], "jsonl"
    )
    texts = read_tagged(path)
    assert [(text.text, text.spans) for text in texts] == [("Anna", ()), ("Bergen", ())]
    assert texts.form.endswith(f"1 left out that were not accepted, as {path}, line 3)")
    assert [text.text for text in read_tagged(path, labelled=False)] == ["Anna", "Bergen", "Anna"]
    two = {"text": TEXT, "label": [{**LABEL_STUDIO[0], "labels": ["PER", "LOC"]}]}
    with pytest.raises(ValueError, match=r"line 1: a span must have integers `start` and `end` and a `label`"):
        read_tagged(write(tmp_path, [two], "jsonl"))


CONLL = {
    "CoNLL-2003": (
        "-DOCSTART- -X- -X- O\n\nAnna NNP B-NP B-PER\nKeller NNP I-NP I-PER\nin IN O O\nBergen NNP O B-LOC\n",
        "4",
    ),
    "tabs": ("Anna\tB-PER\nKeller\tI-PER\nin\tO\nBergen\tB-LOC", "2"),
    "comments": ("# text = Anna\r\n# id = 3\r\nAnna B-PER\r\nKeller I-PER\r\nin O\r\nBergen B-LOC\r\n\r\n", "2"),
    "labels alone": ("Anna PER\nKeller PER\nin O\nBergen LOC\n", "2"),
}


@pytest.mark.parametrize(("form", "encoding"), diagonal([*CONLL], ["utf-8", "utf-16"]))
def test_a_word_a_line(tmp_path, form, encoding):
    content, columns = CONLL[form]
    path = tmp_path / "a.conll"
    path.write_bytes(content.encode(encoding))
    texts = read_tagged(path)
    assert [(text.text, text.tags) for text in texts] == [(TEXT, TAGS)]
    assert texts.form == f"1 texts (a word a line, {columns} columns)"


KLUE = (
    "## klue-ner-v1_train_00000\t<김 영:PS>은 <부산:LC>에\n김\tB-PS\n \tI-PS\n영\tI-PS\n은\tO\n"
    " \tO\n부\tB-LC\n산\tI-LC\n에\tO\n\n"
    "## klue-ner-v1_train_00001\t#가\n#\tO\n가\tO\n"
)


def test_klue_ner(tmp_path):
    path = tmp_path / "klue-ner-v1_dev.tsv"
    path.write_text(KLUE, encoding="utf-8")
    texts = read_tagged(path)
    assert [(text.text, text.spans) for text in texts] == [
        ("김 영은 부산에", ((0, 3, "PS"), (5, 7, "LC"))),
        ("#가", ()),
    ]
    assert texts.form == "2 texts (a character a line, as in KLUE-NER)"
    assert [text.text for text in read_tagged(path, labelled=False)] == ["김 영은 부산에", "#가"]


KLUE_ROWS = [
    {"tokens": list("김 영은"), "ner_tags": ["B-PS", "I-PS", "I-PS", "O"]},
    {"tokens": list("부산"), "ner_tags": ["B-LC", "I-LC"]},
]


def test_klue_ner_of_the_hub(tmp_path):
    for suffix in ("jsonl", "memory"):
        texts = read_tagged(write(tmp_path, KLUE_ROWS, suffix))
        assert [(text.text, text.spans) for text in texts] == [("김 영은", ((0, 3, "PS"),)), ("부산", ((0, 2, "LC"),))]
        assert texts.form == "2 texts (characters and tags)"


def test_a_klue_file_whose_first_text_has_no_space(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("## a\t\n마\tB-PS\n## b\t\n가\tO\n \tO\n나\tO\n", encoding="utf-8")
    assert [text.text for text in read_tagged(path)] == ["마", "가 나"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a B\nb I\nc O\n", "line 1: the tag 'B' must be written as B-label"),
        ("b O\na B_PER\n", "line 2: the tag 'B_PER' must be written as B-label"),
        ("a PER-B\nb O\n", "'PER-B' must be written as B-label"),
        ("word tag\nAnna PER\nsang O\n", "'tag' is the name of a column"),
        ("It O +\nFrench B-LOC -\n- O -\n", r"no tags in the last column, but '\+', '-', such as flags of spaces; rem"),
        ("It\tO\t_\nFrench\tB-LOC\tSpaceAfter=No\n", "no tags in the last column, but 'SpaceAfter=No', '_'"),
        ("It (PER*) -\nFrench * (12)|(3\n", r"no tags in the last column, but '\(12\)\|\(3', '-'"),
        ("1\tAnna\tB-PER\tO\n2\tsang\tO\tO\n", "numbers its words in the first column; remove it"),
    ],
)
def test_columns_of_other_styles_are_refused(tmp_path, content, message):
    (tmp_path / "a.conll").write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_tagged(tmp_path / "a.conll")


def test_comments_and_documents_end_texts(tmp_path):
    (tmp_path / "a.conll").write_text(
        "# newdoc\nAnna PER\n-DOCSTART- O\nsang O\n\n# newdoc\n#tag O\nBob PER\n\nNew\u00a0York PER\n", encoding="utf-8"
    )
    assert [text.text for text in read_tagged(tmp_path / "a.conll")] == ["Anna", "sang", "#tag Bob", "New\u00a0York"]


def test_prodigy_leaves_out_spans_and_has_tokens(tmp_path):
    rows = [{"text": TEXT, "_input_hash": 1, "tokens": [{"text": "Anna"}]}]
    rows += [{"text": TEXT, "_input_hash": 2, "spans": OBJECTS}]
    assert [text.spans for text in read_tagged(write(tmp_path, rows, "jsonl"))] == [(), SPANS]
    assert [text.text for text in read_tagged(write(tmp_path, rows, "jsonl"), labelled=False)] == [TEXT, TEXT]


def test_what_was_not_accepted_is_counted(tmp_path):
    rows = [{"text": TEXT, "spans": OBJECTS, "answer": answer} for answer in ("yes", "reject", "ignore")]
    texts = read_tagged(write(tmp_path, rows, "jsonl"))
    assert (
        texts.form
        == f"1 texts (texts and labelled spans; 2 left out that were not accepted, as {tmp_path}/a.jsonl, line 2)"
    )
    rows = [{"words": ["a"], "tags": ["O"], "answer": answer} for answer in ("accept", "reject")]
    assert read_tagged(write(tmp_path, rows, "jsonl")).form.startswith("1 texts (words and tags; 1 left out that were")


@pytest.mark.parametrize("answers", [{"text": ["1874"], "answer_start": [25]}, NESTED_ANSWER, ["1874"]])
@pytest.mark.parametrize("write_out", [str, json.dumps, lambda value: str(np.array(value))])
def test_lists_and_dicts_as_text_in_a_table(tmp_path, answers, write_out):
    frame = pandas.DataFrame([{**ROW, "answers": write_out(answers)}])
    frame.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(
        ValueError, match=r"a\.csv, line 2: answers is a list or a dict that was written as text.*jsonl"
    ):
        read_questions(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("row", "negative", "expected"),
    [
        ({"anchor": "a", "positive": "b", "negative": "c"}, "negative", ["a", "b", "c"]),
        ({"sentence1": "a", "sentence2": "b", "score": 0.5}, None, ["a", "b"]),
        ({"text": "a", "pair": "b", "label": 0.5}, None, ["a", "b"]),
    ],
)
def test_sentences(tmp_path, row, negative, expected):
    path, columns = write(tmp_path, [row], "jsonl"), Columns(pair="pair" if "pair" in row else None)
    largest = 1.0 if negative is None else None
    rows = read_sentences(path, columns, TableFormat(), negative, largest_label=largest)
    assert list(rows.sentences) == expected
    assert rows.similarities.tolist() == [0.5 if negative is None else 0.0]
    assert known_columns(path, columns, TableFormat()).pair in row


@pytest.mark.parametrize(
    ("read", "rows", "message"),
    [
        (read_questions, [{**ROW, "answer": "x"}, ROW], r"line 2, has no column 'answers' or .*unlike the rows before"),
        (read_tagged, [{"words": ["a"], "tags": ["O"]}, {"text": "a", "spans": []}], "line 2, has no column 'words'"),
        (read_tagged, [{"text": "a", "label": 1}], "must be a string and `spans` a list"),
        (read_tagged, [{"tokens": ["a"], "ner_tags": [4]}], r"the tags are numbers; set `labels` to their names in"),
        (read_tagged, [{"tokens": ["a"], "tags": [0.5]}], "must be a name or a number"),
        (read_tagged, [{"tokens": ["a", "b"], "tags": ["PER", "B-LOC"]}], "'PER' has no prefix, unlike 'B-LOC'"),
        (read_tagged, [{"text": "a", "annotations": [{"label": 1}]}], "of doccano have numbers of labels: export them"),
        (read_tagged, [{"text": "abc", "entities": [[0, 2, 7]]}], r"a `label`, by its name\. Received: \[0, 2, 7\]"),
        (read_tagged, [{"text": "abc", "spans": [[0, 2, "X"], [1, 3, "X"]]}], "overlap; keep one"),
        (read_choices, [{"question": "q", "choices": ["a", "b"], "answer": 2}], "a number from 0 to 1.* Received: 2"),
        (read_choices, [{"question": "q", "choices": ["1", "0"], "answer": "1"}], "'1' may be a choice or its number"),
        (read_choices, [{"text": "a", "label": 1}], "has none of the forms of multiple choice"),
        (read_questions, [{"tokens": ["a"], "ner_tags": ["O"]}], "its columns are 'tokens', 'ner_tags'"),
    ],
)
def test_bad_rows_are_named(tmp_path, read, rows, message):
    with pytest.raises(ValueError, match=message) as raised:
        read(write(tmp_path, rows, "jsonl"))
    assert "\n" not in str(raised.value)


def test_numbers_that_are_not_those_of_tags(tmp_path):
    with pytest.raises(ValueError, match=r"line 1, tags\[0\]: the tag 4 is not the number of one of 'O'"):
        read_tagged(write(tmp_path, [{"tokens": ["a"], "ner_tags": [4]}], "jsonl"), names=NAMES)


def test_columns_can_change_names(tmp_path):
    rows = [{"question": CONTEXT, "context": "Who?", "answer": "1874"}]
    table = TableFormat(rename={"question": "context", "context": "question"})
    (question,) = read_questions(write(tmp_path, rows, "jsonl"), table=table)
    assert (question.text, question.context) == ("Who?", CONTEXT)
    with pytest.raises(ValueError, match="must give different names"):
        TableFormat(rename={"a": "text", "b": "text"})


def test_columns_are_renamed_for_every_task(tmp_path):
    rows = [{"frage": "Who?", "text": CONTEXT, "antwort": "1874"}]
    table = TableFormat(rename={"frage": "question", "text": "context", "antwort": "answer"})
    (question,) = read_questions(write(tmp_path, rows, "jsonl"), table=table)
    assert (question.text, question.starts) == ("Who?", (25,))
    with pytest.raises(ValueError, match=r"line 1, has no column 'fragen'.* did you mean 'frage'\?"):
        read_questions(write(tmp_path, rows, "jsonl"), table=TableFormat(rename={"fragen": "question"}))


def test_the_classes_of_a_parquet_file_have_names(tmp_path):
    names = datasets.ClassLabel(names=list(NAMES))
    features = datasets.Features({"tokens": datasets.List(datasets.Value("string")), "ner_tags": datasets.List(names)})
    dataset = datasets.Dataset.from_dict({"tokens": [WORDS], "ner_tags": [[1, 2, 0, 3]]}, features)
    dataset.to_parquet(tmp_path / "a.parquet")
    for data in (tmp_path / "a.parquet", as_file(dataset), as_file(dataset.to_iterable_dataset())):
        assert [(text.text, text.tags) for text in read_tagged(data)] == [(TEXT, TAGS)]


def write(folder, rows, suffix):
    """Writes rows to a file of this suffix, or gives them as they are in memory."""
    if suffix == "memory":
        return as_file(iter(rows))
    path = folder / f"a.{'json' if suffix == 'data' else suffix}"
    if suffix == "parquet":
        datasets.Dataset.from_list(rows).to_parquet(path)
    elif suffix == "jsonl":
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    else:
        path.write_text(json.dumps(rows if suffix == "json" else {"version": 1, "data": rows}), encoding="utf-8-sig")
    return path
