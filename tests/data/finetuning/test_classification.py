"""Proves that tables of labelled texts are read as written and refused with file and line."""

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
from albert_tf.data.finetuning.tables import read_rows
from albert_tf.tasks.sentence_embedding.sentences import read_sentences

PAIRS, MAPS = Columns(pair="pair"), pyarrow.map_(pyarrow.string(), pyarrow.string())
ZEROS = np.zeros(10**8, np.int8)


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    return path


def test_tsv_keeps_quotes_and_counts_lines(tmp_path):
    content = '\ufefftext\tpair\tlabel\r\n"Yes, he said\t it\'s "so"\t1\r\n\r\nsecond\t\t 0 \r\n'
    texts = read_texts(write(tmp_path / "a.tsv", content), PAIRS)
    assert tuple(texts.texts) == ('"Yes, he said', "second")
    assert tuple(texts.pairs) == (' it\'s "so"', "")
    assert tuple(texts.labels) == ("1", "0")
    assert tuple(texts.lines) == (2, 4)


def test_csv_has_commas_quotes_and_lines_inside_fields(tmp_path):
    path = tmp_path / "a.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["label", "text"], ["a", 'one, "two"\nthree'], ["b", "four"]])
    texts = read_texts(path)
    assert tuple(texts.texts) == ('one, "two"\nthree', "four")
    assert (texts.labels, list(texts.lines), texts.pairs) == (["a", "b"], [2, 4], None)


def test_jsonl_takes_labels_of_any_simple_kind(tmp_path):
    rows = [{"text": "one\u2028line", "label": 2}, {"text": "", "label": "x"}, {"label": 0.5, "text": "\ud800"}]
    rows.append({"text": "a word as any other", "label": "null"})
    texts = read_texts(write(tmp_path / "a.jsonl", "\ufeff" + "\r\n\n".join(map(json.dumps, rows))))
    assert tuple(texts.lines) == (1, 3, 5, 7)
    assert tuple(texts.texts) == ("one\u2028line", "", "\ud800", "a word as any other")
    assert tuple(texts.labels) == ("2", "x", "0.5", "null")


@pytest.mark.parametrize("label", ["NaN", "null", '"  "'])
def test_a_missing_label_is_no_class(tmp_path, label):
    lines = ['{"text": "a", "label": 0.5}', f'{{"text": "b", "label": {label}}}']
    with pytest.raises(ValueError, match=r"a\.jsonl, line 2: the label \('label'\) is empty"):
        read_texts(write(tmp_path / "a.jsonl", "\n".join(lines)))


def test_parquet_keeps_types_and_is_refused_if_half_of_it_is_missing(tmp_path):
    texts = ["one", "two\ntwo", "세 번째"]
    twice = pyarrow.Table.from_arrays([pyarrow.array(texts)] * 2, ["text", "text"])
    parquet.write_table(twice, tmp_path / "twice.parquet")
    for path in (tmp_path / "twice.parquet", twice):
        with pytest.raises(ValueError, match=r"(twice\.parquet|The Table) has two columns 'text'; rename one of them"):
            read_texts(as_file(path))
    columns = {"text": texts, "label": [1, 0, 1], "labels": [{"x": 0.5}, {"x": 1.5}, {"x": 2.0}]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    found = read_texts(tmp_path / "a.parquet")
    assert (list(found.texts), found.labels, list(found.lines)) == (texts, ["1", "0", "1"], [1, 2, 3])
    assert read_texts(tmp_path / "a.parquet", Columns(label="labels.x")).labels == ["0.5", "1.5", "2.0"]
    content = (tmp_path / "a.parquet").read_bytes()
    for damaged in (b"", content[: len(content) // 2], content[:-9], content.replace(b"one", b"\xffne")):
        write(tmp_path / "b.parquet", damaged)
        with pytest.raises(ValueError, match=r"b\.parquet is not a Parquet file, or is damaged .*; write or download"):
            read_texts(tmp_path / "b.parquet")
    for features, complaint in (
        ('{"label": ', r"b\.parquet is not a Parquet file, or is damaged .*; write or download"),
        (
            '{"label": {"_type": "ClassLabel", "namez": ["no", "yes"]}}',
            r"b\.parquet, row 1: a class label is not .*'names'",
        ),
    ):
        metadata = {"huggingface": f'{{"info": {{"features": {features}}}}}'}
        parquet.write_table(pyarrow.table(columns).replace_schema_metadata(metadata), tmp_path / "b.parquet")
        with pytest.raises(ValueError, match=complaint):
            read_texts(tmp_path / "b.parquet")


def test_parquet_that_is_far_larger_in_memory_than_on_disk(tmp_path):
    path, long = tmp_path / "a.parquet", "a" * 100_000
    for column in ([long] * 1000, [[long] * 1000], [{"b": {"c": [long]}}] * 1000, [{long: long}] * 1000, ZEROS):
        kind = MAPS if column[0] == {long: long} else None
        parquet.write_table(pyarrow.table({"a": pyarrow.array(column, kind)}), path, compression="zstd")
        with pytest.raises(ValueError, match=r"a\.parquet expands to more than 500 times its size.*; check the file"):
            next(read_rows(path))


def test_parquet_of_long_texts(tmp_path):
    random = np.random.default_rng(0)
    texts = [random.bytes(100_000).hex() for _ in range(5)]
    columns = {"text": texts * 100, "label": [1] * 500, "maps": pyarrow.array([[("a", "b")]] * 500, MAPS)}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    for row, text in zip(read_rows(tmp_path / "a.parquet"), texts * 100, strict=True):
        assert row.fields == {"text": text, "label": 1, "maps": [("a", "b")]}


def test_without_header_columns_are_numbers_and_rows_may_differ_in_length(tmp_path):
    path = write(tmp_path / "cola.txt", "gj04\t1\t\tThe sailors rode.\ngj04\t0\t*\tThe weights.\tremark\n")
    texts = read_texts(path, Columns(text="3", label="1"), TableFormat(header=False))
    assert tuple(texts.texts) == ("The sailors rode.", "The weights.")
    assert tuple(texts.labels) == ("1", "0")


@pytest.mark.parametrize("suffix", ["tsv", "csv", "jsonl"])
def test_long_and_odd_texts_are_read(tmp_path, suffix):
    long, odd = "word " * 300_000, "a\\u0000b"
    if suffix == "jsonl":
        content = f'{{"text": "{long}", "label": 1}}\n{{"text": "{odd}", "label": 2}}'
    else:
        mark = "\t" if suffix == "tsv" else ","
        content = f"text{mark}label\n{long}{mark}1\na b{mark}2\n"
    texts = read_texts(write(tmp_path / f"a.{suffix}", content))
    assert texts.texts[0] == long
    assert len(texts) == 2


@pytest.mark.parametrize("suffix", ["tsv", "csv"])
def test_ragged_rows_are_left_out_on_request_and_named(tmp_path, suffix):
    rows = ["text,label", "one,1", "two", "three,3", *["a,b,c"] * 3, "four,4"]
    content = "\n".join(rows).replace(",", "\t" if suffix == "tsv" else ",")
    path = write(tmp_path / f"a.{suffix}", content)
    with pytest.warns(UserWarning, match=rf"a\.{suffix}: 4 rows were left out, .*: lines 3, 5, 6, \.\.\.\.") as caught:
        texts = read_texts(path, table=TableFormat(drop_ragged=True))
    assert len(caught) == 1
    assert (list(texts.texts), texts.labels) == (["one", "three", "four"], ["1", "3", "4"])
    assert list(texts.lines) == [2, 4, 8]
    with pytest.raises(ValueError, match="`finetune --set ragged_rows=drop` leaves out such lines"):
        read_texts(path)


# File, content, what the error says; other columns than the default ones.
BAD = {
    "missing column": (
        *("a.tsv", "txt\tlabel\nx\t1\n"),
        r"has no column 'text'; .* are 'txt', 'label'; did you mean 'txt'\? Choose one with --text-column",
    ),
    "SST-2 as GLUE has it": ("a.tsv", "sentence\tlabel\nx\t1\n", r"are 'sentence', 'label'\. Choose .* --text-column"),
    "missing key": (
        *("a.jsonl", '{"text": "x", "label": 1}\n{"text": "x"}'),
        r"a\.jsonl, line 2, has no column 'label'; its columns are 'text'\. Choose one with --label-column",
    ),
    "missing number": (
        "a.tsv",
        "x\t1\nx\n",
        r"line 2, has no column '1'; its columns are '0'",
        Columns("0", None, "1"),
    ),
    "empty file": ("a.tsv", "", r"a\.tsv has no rows"),
    "empty csv": ("a.csv", "\ufeff", r"a\.csv has no rows"),
    "header alone": ("a.tsv", "text\tlabel\n", "has no rows"),
    "short row": ("a.tsv", "text\tlabel\nx\t1\nx\n", r"a\.tsv, line 3, has 1 fields, but the header has 2"),
    "long row": ("a.csv", "text,label\nx,1,2\n", r"a\.csv, line 2, has 3 fields, but the header has 2"),
    "no label": ("a.tsv", "text\tlabel\nx\t \n", r"line 2: the label \('label'\) is empty"),
    "null label": ("a.jsonl", '{"text": "x", "label": null}', r"line 1: the label \('label'\) is empty"),
    "labels of doccano": (
        *("a.jsonl", '{"text": "x", "annotations": [{"label": 1, "user": 1}]}'),
        r"no column 'label'; .*`annotations` of doccano have numbers of labels: export them as JSONL",
    ),
    "several labels": ("a.jsonl", '{"text": "x", "label": ["a"]}', r"label \['a'\] is not a single .* 'multi_label'"),
    "text a number": ("a.jsonl", '{"text": 7, "label": 1}', r"line 1: text=7 is not a string"),
    "broken json": (
        "a.jsonl",
        '{"text": "x", "label": 1}\n{"text"',
        r"line 2, is not valid JSON .*; correct or delete it",
    ),
    "json not UTF-8": ("a.jsonl", b'{"text": "\xff", "label": 1}', "not UTF-8: byte 0xff at byte offset 10"),
    "json list": ("a.jsonl", "[1, 2]", "line 1, is not a JSON object: .*; correct or delete it"),
    "open quote": ("a.csv", 'text,label\n"x,1\n', r"a\.csv, line 2, is not valid CSV"),
    "not UTF-8": ("a.tsv", b"text\tlabel\nxy\xff\t1\n", r"a\.tsv is not UTF-8: byte 0xff at byte offset 13"),
    "NUL": ("a.tsv", b"text\tlabel\nx\t1\na\0b\t1\n", r"a\.tsv, line 3, has a NUL character, .*; correct the file"),
    "NUL of csv": ("a.csv", b'text,label\n"x\n\0",1\n', r"a\.csv, line 3, has a NUL character"),
    "column twice": ("a.tsv", "text\tlabel\tlabel\nx\t1\t2\n", "two columns 'label'"),
    "other kind": ("a.xlsx", "x", r"a\.xlsx is not a table of a known format; convert it to '\.tsv', "),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_tables_are_refused_in_one_sentence(tmp_path, name):
    file, content, message, *columns = BAD[name]
    with pytest.raises(ValueError, match=message) as raised:
        read_texts(write(tmp_path / file, content), *columns, table=TableFormat(header=not columns))
    assert "\n" not in str(raised.value)


def test_missing_files_and_folders_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"none\.tsv does not exist; give a table"):
        read_texts(tmp_path / "none.tsv")
    with pytest.raises(ValueError, match="is a folder; give a table"):
        read_texts(tmp_path)


# === Labels ===


def test_labels_become_ids_in_sorted_order(tmp_path):
    texts = read_texts(write(tmp_path / "a.tsv", "text\tlabel\nx\t10\nx\t9\nx\tb\nx\ta\nx\t9\n"))
    assert texts.label_names() == ("9", "10", "a", "b")
    assert texts.label_ids(texts.label_names()).tolist() == [1, 0, 3, 2, 0]
    signed = read_texts(write(tmp_path / "b.tsv", "text\tlabel\nx\t1\nx\t-1\nx\t-10\nx\t-\n"))
    assert signed.label_names() == ("-10", "-1", "1", "-")
    with pytest.raises(ValueError, match=r"a\.tsv, line 4: the label 'b' is not one of '9', '10', 'aa'"):
        texts.label_ids(("9", "10", "aa"))


@pytest.mark.parametrize("labels", ['["law", "war"]', "law, war", '["war","law"]'])
def test_any_number_of_labels(tmp_path, labels):
    texts = read_texts(write(tmp_path / "a.tsv", f"text\tlabel\nx\t{labels}\nx\t\n"), Columns(separator=","))
    assert texts.label_names() == ("law", "war")
    assert texts.label_decisions(("war", "law")).tolist() == [[1, 1], [0, 0]]


@pytest.mark.parametrize("labels", ["['law', 'war']", "[1 0 1]", "[1, 0, 1]", '["a", null]', "[true, false]", "[[1]]"])
def test_other_lists_of_labels_are_refused(tmp_path, labels):
    texts = read_texts(write(tmp_path / "a.tsv", f"text\tlabel\nx\t{labels}\n"), Columns(separator=","))
    with pytest.raises(ValueError, match=r"line 2: .* a JSON list of different labels"):
        texts.label_names()


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_choices_of_label_studio_are_not_split_at_commas(tmp_path, suffix):
    labels = [{"choices": ["law", "IT, science"]}, "law, war", {"choices": []}]
    if suffix == "jsonl":
        content = "\n".join(json.dumps({"text": "x", "label": label}) for label in labels)
    else:
        table = io.StringIO()
        rows = [[label if isinstance(label, str) else json.dumps(label)] for label in labels]
        csv.writer(table).writerows([["text", "label"], *(["x", *row] for row in rows)])
        content = table.getvalue()
    texts = read_texts(write(tmp_path / f"a.{suffix}", content), Columns(separator=","))
    assert texts.label_sets() == [["law", "IT, science"], ["law", "war"], []]
    assert texts.label_names() == ("IT, science", "law", "war")


def test_objects_that_are_no_choices_are_refused(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"text": "x", "label": {"law": 1, "war": 0}}')
    with pytest.raises(ValueError, match=r"line 1: the label .* is not a single value; .* `label_columns`"):
        read_texts(path, Columns(separator=","))


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
    with pytest.raises(ValueError, match=r"has no column 'topic'; .*did you mean 'topics'"):
        read_texts(path, Columns(label="topic"))
    with pytest.raises(ValueError, match="has no column 'topic'"):
        read_texts(as_file(several[1:]), Columns(label="topic", separator=","))
    tasks[1]["annotations"][0]["result"] = [{"type": "choices"}]
    with pytest.raises(ValueError, match=r"element 2, has no annotations as Label Studio writes them .*; export it"):
        read_texts(write(tmp_path / "b.json", json.dumps(tasks)), Columns(label="topics"))


def test_what_was_not_accepted_in_prodigy_is_left_out_and_counted(tmp_path):
    rows = [{"text": "x", "label": label, "answer": label} for label in ("accept", "reject", "ignore")]
    texts = read_texts(as_file(rows))
    assert (texts.labels, texts.form) == (["accept"], "1 texts, 2 without an accepted annotation left out")
    assert read_texts(as_file(rows), Columns(label="answer")).labels == ["accept", "reject", "ignore"]
    with pytest.raises(ValueError, match="has no rows with an accepted annotation"):
        read_texts(as_file(rows[1:]))
    pairs = read_sentences(as_file(rows), Columns("text", "label"), TableFormat())
    assert (len(pairs), pairs.form) == (1, "1 rows of text, label, 2 not accepted left out")


@pytest.mark.parametrize("orient", ["columns", "index", "split", "values", "table", "records"])
def test_json_of_pandas(tmp_path, orient):
    pandas.DataFrame({"text": ["a", "b"], "label": ["x", "y"]}).to_json(tmp_path / "a.json", orient=orient)
    if orient in ("columns", "table", "records"):
        assert read_texts(tmp_path / "a.json").labels == ["x", "y"]
    else:
        with pytest.raises(ValueError, match=r'a\.json.*; pandas writes rows with to_json\(path, orient="records"\)'):
            read_texts(tmp_path / "a.json")


DECISIONS = "text,toxic,insult,threat\na,1,0,0\nb,0.0,1.0,0\nc,False,True,0\n"


def test_a_column_of_0_and_1_for_each_label(tmp_path):
    columns = Columns(separator=",", labels=("toxic", "insult", "threat"))
    for path in (write(tmp_path / "a.csv", DECISIONS), as_file(pandas.read_csv(io.StringIO(DECISIONS)))):
        texts = read_texts(path, columns)
        assert texts.label_names() == ("toxic", "insult", "threat")  # one that no text has is a label, too
        assert texts.labels == ["toxic", "insult", "insult"]
        assert texts.label_decisions(("threat", "insult", "toxic")).tolist() == [[0, 0, 1], [0, 1, 0], [0, 1, 0]]
    with pytest.raises(ValueError, match=r"must name a column for each label of the model: a, b\. Received: toxic, in"):
        texts.label_decisions(("a", "b"))


@pytest.mark.parametrize("value", ["-1", "", "0.3", "yes"])
def test_other_values_in_columns_of_labels_are_named(tmp_path, value):
    path = write(tmp_path / "a.csv", f"text,toxic\na,1\nb,{value}\n")
    with pytest.raises(ValueError, match=rf"a\.csv, line 3: 'toxic' must be 0 or 1, .* Received: '{value}'"):
        read_texts(path, Columns(separator=",", labels=("toxic",)))
    with pytest.raises(ValueError, match=r"has no column 'rude'; .* Choose one with --set label_columns"):
        read_texts(path, Columns(separator=",", labels=("rude",)))


def test_no_label_is_written_and_not_missing(tmp_path):
    columns = Columns(separator=",")
    texts = read_texts(write(tmp_path / "a.jsonl", '{"text": "x", "label": []}\n{"text": "x", "label": ""}'), columns)
    assert texts.label_sets() == [[], []]
    with pytest.raises(ValueError, match=r"line 1: the label \('label'\) is empty; fill it in"):
        read_texts(write(tmp_path / "b.jsonl", '{"text": "x", "label": null}'), columns)


def test_labels_of_any_type(tmp_path):
    values = {"text": ["x", "y"], "label": [decimal.Decimal("1.5"), decimal.Decimal("2.0")], "raw": [b"1", b"2"]}
    parquet.write_table(pyarrow.table(values), tmp_path / "a.parquet")
    assert read_texts(tmp_path / "a.parquet").label_values().tolist() == [1.5, 2.0]
    with pytest.raises(ValueError, match=r"row 1: the label \('raw'\) is binary; write it as text"):
        read_texts(tmp_path / "a.parquet", Columns(label="raw"))


def test_empty_fields_are_rows(tmp_path):
    alone = [row.fields for row in read_rows(write(tmp_path / "a.tsv", "text\na\n\nb\n\n"))]
    assert alone == [{"text": "a"}, {"text": ""}, {"text": "b"}]
    pairs = [
        row.fields for row in read_rows(write(tmp_path / "b.tsv", "a\tb\n\n\t\nc\td\n"), TableFormat(header=False))
    ]
    assert pairs == [{"0": "a", "1": "b"}, {"0": "", "1": ""}, {"0": "c", "1": "d"}]


SURVEY = "\ufeffNo;Date;Review Text;Sentiment\r\n1;2026-01-02;fine;good\r\n;;;\r\n;; ; \r\n4;;bad;poor\r\n;;;\r\n"


def test_rows_without_anything_to_read_are_left_out_and_counted(tmp_path):
    columns = Columns("Review Text", None, "Sentiment")
    texts = read_texts(write(tmp_path / "a.csv", SURVEY), columns)
    assert (list(texts.texts), texts.labels, list(texts.lines)) == (["fine", "bad"], ["good", "poor"], [2, 5])
    assert texts.form == "2 texts, separated by ';', 3 empty rows left out"
    for row in ("5;;a;", "5;;;", "5;;;good"):  # half of a row is a mistake, or a text without words
        content = write(tmp_path / "b.csv", f"{SURVEY}{row}\r\n")
        if row.endswith("good"):
            assert read_texts(content, columns).texts[-1] == ""
        else:
            with pytest.raises(ValueError, match=r"line 7: the label \('Sentiment'\) is empty; fill it in or delete"):
                read_texts(content, columns)
    with pytest.raises(ValueError, match="line 1: text is empty"):
        read_texts(write(tmp_path / "a.jsonl", '{"text": null, "label": "good"}\n{"text": null, "label": null}\n'))
    similar = read_sentences(write(tmp_path / "c.tsv", "a\tb\nx\ty\n\t\n"), Columns("a", "b"), TableFormat())
    assert similar.form == "1 rows of a, b, 1 empty row left out"


def test_several_rows_without_a_label_are_named_together(tmp_path):
    message = r"line 2: .* is empty; so are those of line 4, line 5, line 6, \.\.\. \(5 rows in all\); fill them in"
    with pytest.raises(ValueError, match=message):
        read_texts(write(tmp_path / "a.tsv", "text\tlabel\na\t\nb\t1\nc\t\nd\t\ne\t\nf\t\n"))


def test_numbers_to_predict(tmp_path):
    texts = read_texts(write(tmp_path / "a.tsv", "text\tlabel\nx\t1.5\nx\t-2e-1\n"))
    np.testing.assert_array_equal(texts.label_values(), np.array([1.5, -0.2], np.float32))
    for label in ("high", "nan", "inf"):
        with pytest.raises(ValueError, match=f"line 2: the label '{label}' is not a number"):
            read_texts(write(tmp_path / "b.tsv", f"text\tlabel\nx\t{label}\n")).label_values()
