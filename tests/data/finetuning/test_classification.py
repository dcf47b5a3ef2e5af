"""Proves that the labels of texts are read as people write them, and that missing and other ones are named."""

import csv
import decimal
import io
import json

import numpy as np
import pandas
import pyarrow
import pytest
from pyarrow import parquet

from albert_tf.data.finetuning.classification import Columns, read_texts
from albert_tf.data.finetuning.example_sources import as_file
from albert_tf.data.finetuning.table_format import TableFormat
from albert_tf.tasks.sentence_embedding.sentences import read_sentences
from tests.data.written import write

SEVERAL = Columns(separator=",")


def test_labels_become_ids_in_sorted_order(tmp_path):
    texts = read_texts(write(tmp_path / "a.tsv", "text\tlabel\nx\t10\nx\t9\nx\tb\nx\ta\nx\t9\n"))
    assert texts.label_names() == ("9", "10", "a", "b")
    assert texts.label_ids(texts.label_names()).tolist() == [1, 0, 3, 2, 0]
    signed = read_texts(write(tmp_path / "b.tsv", "text\tlabel\nx\t1\nx\t-1\nx\t-10\nx\t-\n"))
    assert signed.label_names() == ("-10", "-1", "1", "-")
    with pytest.raises(ValueError, match=r"a\.tsv, line 4: the label 'b' is not one of '9', '10', 'aa'"):
        texts.label_ids(("9", "10", "aa"))


TABS, TYPED = "text\tlabel\n", '{"text": "a", "label": 0.5}\n{"text": "b", "label": %s}'
EMPTY = r"line 2: the label \('label'\) is empty; fill it in or delete the row"
# File, content, what the error says; other columns than the default ones.
WRONG_LABELS = {
    "blank": ("a.tsv", f"{TABS}x\t \n", EMPTY),
    "null": ("a.jsonl", TYPED % "null", EMPTY),
    "null of several": ("a.jsonl", TYPED % "null", EMPTY, SEVERAL),
    "not a number": ("a.jsonl", TYPED % "NaN", EMPTY),
    "spaces": ("a.jsonl", TYPED % '"  "', EMPTY),
    "a list": ("a.jsonl", TYPED % '["a"]', r"label \['a'\] is not a single .* 'multi_label'"),
    "no choices": ("a.jsonl", TYPED % '{"law": 1, "war": 0}', "not a single value; .* `label_columns`", SEVERAL),
}


@pytest.mark.parametrize("name", WRONG_LABELS)
def test_wrong_labels_are_named(tmp_path, name):
    file, content, message, *columns = WRONG_LABELS[name]
    with pytest.raises(ValueError, match=message):
        read_texts(write(tmp_path / file, content), *columns)


def test_no_label_is_written_and_not_missing(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"text": "x", "label": []}\n{"text": "x", "label": ""}')
    assert read_texts(path, SEVERAL).label_sets() == [[], []]


@pytest.mark.parametrize("labels", ['["law", "war"]', "law, war", '["war","law"]'])
def test_any_number_of_labels(tmp_path, labels):
    texts = read_texts(write(tmp_path / "a.tsv", f"{TABS}x\t{labels}\nx\t\n"), SEVERAL)
    assert texts.label_names() == ("law", "war")
    assert texts.label_decisions(("war", "law")).tolist() == [[1, 1], [0, 0]]


@pytest.mark.parametrize("labels", ["['law', 'war']", "[1 0 1]", "[1, 0, 1]", '["a", null]', "[true, false]", "[[1]]"])
def test_other_lists_of_labels_are_refused(tmp_path, labels):
    with pytest.raises(ValueError, match=r"line 2: .* a JSON list of different labels"):
        read_texts(write(tmp_path / "a.tsv", f"{TABS}x\t{labels}\n"), SEVERAL).label_names()


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_choices_of_label_studio_are_not_split_at_commas(tmp_path, suffix):
    labels = [{"choices": ["law", "IT, science"]}, "law, war", {"choices": []}]
    if suffix == "jsonl":
        content = "\n".join(json.dumps({"text": "x", "label": label}) for label in labels)
    else:
        table = io.StringIO()
        cells = [label if isinstance(label, str) else json.dumps(label) for label in labels]
        csv.writer(table).writerows([["text", "label"], *(["x", cell] for cell in cells)])
        content = table.getvalue()
    texts = read_texts(write(tmp_path / f"a.{suffix}", content), SEVERAL)
    assert texts.label_sets() == [["law", "IT, science"], ["law", "war"], []]
    assert texts.label_names() == ("IT, science", "law", "war")


def label_studio(choices, **annotation):
    """A task of a full export; `choices` None: it has no annotation."""
    result = {"type": "choices", "from_name": "topics", "to_name": "text", "value": {"choices": choices}}
    one = {"id": 7, "was_cancelled": False, "result": [result] if choices else [], **annotation}
    return {"id": 1, "data": {"text": "x"}, "annotations": [] if choices is None else [one], "predictions": []}


def test_full_exports_of_label_studio(tmp_path):
    tasks = [label_studio(choices) for choices in (["law"], ["war, peace"], None)]
    tasks.append(label_studio(["law"], was_cancelled=True))
    tasks[0]["annotations"] += label_studio(["war, peace"])["annotations"]  # a second opinion
    path = write(tmp_path / "a.json", json.dumps(tasks))
    texts = read_texts(path, Columns(label="topics"))
    assert (texts.labels, list(texts.lines)) == (["law", "war, peace", "war, peace"], [1, 1, 2])
    assert texts.form == "3 texts, 2 without an accepted annotation left out"
    several = [label_studio(choices) for choices in (["law", "war, peace"], [])]
    texts = read_texts(as_file(several), Columns(label="topics", separator=","))
    assert texts.label_sets() == [["law", "war, peace"], []]
    tasks[1]["annotations"][0]["result"] = [{"type": "choices"}]
    damaged = write(tmp_path / "b.json", json.dumps(tasks))
    for file, columns, message in (
        (path, Columns(label="topic"), "did you mean 'topics'"),
        (as_file(several[1:]), Columns(label="topic", separator=","), "has no column 'topic'"),
        (damaged, Columns(label="topics"), "element 2, has no annotations as Label Studio writes them .*; export it"),
    ):
        with pytest.raises(ValueError, match=message):
            read_texts(file, columns)


def test_what_was_not_accepted_in_prodigy_is_left_out_and_counted():
    rows = [{"text": "x", "label": label, "answer": label} for label in ("accept", "reject", "ignore")]
    texts = read_texts(as_file(rows))
    assert (texts.labels, texts.form) == (["accept"], "1 texts, 2 without an accepted annotation left out")
    assert read_texts(as_file(rows), Columns(label="answer")).labels == ["accept", "reject", "ignore"]
    with pytest.raises(ValueError, match="has no rows with an accepted annotation"):
        read_texts(as_file(rows[1:]))


DECISIONS = "text,toxic,insult,threat\na,1,0,0\nb,0.0,1.0,0\nc,False,True,0\n"


def test_a_column_of_0_and_1_for_each_label(tmp_path):
    columns = Columns(separator=",", labels=("toxic", "insult", "threat"))
    for path in (write(tmp_path / "a.csv", DECISIONS), as_file(pandas.read_csv(io.StringIO(DECISIONS)))):
        texts = read_texts(path, columns)
        assert texts.label_names() == columns.labels  # one that no text has is a label, too
        assert texts.labels == ["toxic", "insult", "insult"]
        assert texts.label_decisions(("threat", "insult", "toxic")).tolist() == [[0, 0, 1], [0, 1, 0], [0, 1, 0]]
    with pytest.raises(ValueError, match=r"must name a column for each label of the model: a, b\. Received: toxic, in"):
        texts.label_decisions(("a", "b"))


@pytest.mark.parametrize("value", ["-1", "", "0.3", "yes"])
def test_other_values_in_columns_of_labels_are_named(tmp_path, value):
    path = write(tmp_path / "a.csv", f"text,toxic\na,1\nb,{value}\n")
    for label, message in (
        ("toxic", rf"a\.csv, line 3: 'toxic' must be 0 or 1, .* Received: '{value}'"),
        ("rude", "has no column 'rude'; .* Choose one with --set label_columns"),
    ):
        with pytest.raises(ValueError, match=message):
            read_texts(path, Columns(separator=",", labels=(label,)))


def test_labels_of_any_type(tmp_path):
    values = {"text": ["x", "y"], "label": [decimal.Decimal("1.5"), decimal.Decimal("2.0")], "raw": [b"1", b"2"]}
    parquet.write_table(pyarrow.table(values), tmp_path / "a.parquet")
    assert read_texts(tmp_path / "a.parquet").label_values().tolist() == [1.5, 2.0]
    with pytest.raises(ValueError, match=r"row 1: the label \('raw'\) is binary; write it as text"):
        read_texts(tmp_path / "a.parquet", Columns(label="raw"))


SURVEY = "\ufeffNo;Date;Review Text;Sentiment\r\n1;2026-01-02;fine;good\r\n;;;\r\n;; ; \r\n4;;bad;poor\r\n;;;\r\n"


def test_rows_without_anything_to_read_are_left_out(tmp_path):
    columns = Columns("Review Text", None, "Sentiment")
    texts = read_texts(write(tmp_path / "a.csv", SURVEY), columns)
    assert (list(texts.texts), texts.labels, list(texts.lines)) == (["fine", "bad"], ["good", "poor"], [2, 5])
    assert texts.form == "2 texts, separated by ';'"
    assert read_texts(write(tmp_path / "a.csv", f"{SURVEY}5;;;good\r\n"), columns).texts[-1] == ""
    for row in ("5;;a;", "5;;;"):  # half of a row is a mistake
        with pytest.raises(ValueError, match=r"line 7: the label \('Sentiment'\) is empty; fill it in or delete"):
            read_texts(write(tmp_path / "b.csv", f"{SURVEY}{row}\r\n"), columns)
    similar = read_sentences(write(tmp_path / "c.tsv", "a\tb\nx\ty\n\t\n"), Columns("a", "b"), TableFormat())
    assert similar.form == "1 rows of a, b"


def test_numbers_to_predict(tmp_path):
    texts = read_texts(write(tmp_path / "a.tsv", f"{TABS}x\t1.5\nx\t-2e-1\n"))
    np.testing.assert_array_equal(texts.label_values(), np.array([1.5, -0.2], np.float32))
    for label in ("high", "nan", "inf"):
        with pytest.raises(ValueError, match=f"line 2: the label '{label}' is not a number"):
            read_texts(write(tmp_path / "b.tsv", f"{TABS}x\t{label}\n")).label_values()
