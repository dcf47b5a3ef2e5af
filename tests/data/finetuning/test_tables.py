"""Proves that tables of every kind are read as they were written, and refused with file and line."""

import csv
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
from tests.data.written import write, write_rows

MAPS = pyarrow.map_(pyarrow.string(), pyarrow.string())
LONG, ZEROS = "a" * 100_000, np.zeros(10**8, np.int8)


def fields_of(path, *table):
    return [row.fields for row in read_rows(path, *table)]


def test_tsv_keeps_quotes_and_counts_lines(tmp_path):
    content = '\ufefftext\tpair\tlabel\r\n"Yes, he said\t it\'s "so"\t1\r\n\r\nsecond\t\t 0 \r\n'
    texts = read_texts(write(tmp_path / "a.tsv", content), Columns(pair="pair"))
    assert (list(texts.texts), list(texts.pairs)) == (['"Yes, he said', "second"], [' it\'s "so"', ""])
    assert (texts.labels, list(texts.lines)) == (["1", "0"], [2, 4])


def test_csv_has_commas_quotes_and_lines_inside_fields(tmp_path):
    path = tmp_path / "a.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["label", "text"], ["a", 'one, "two"\nthree'], ["b", "four"]])
    texts = read_texts(path)
    assert list(texts.texts) == ['one, "two"\nthree', "four"]
    assert (texts.labels, list(texts.lines), texts.pairs) == (["a", "b"], [2, 4], None)


def test_jsonl_takes_labels_of_any_simple_kind(tmp_path):
    rows = [{"text": "one\u2028line", "label": 2}, {"text": "", "label": "x"}, {"label": 0.5, "text": "\ud800"}]
    rows.append({"text": "a word as any other", "label": "null"})
    texts = read_texts(write(tmp_path / "a.jsonl", "\ufeff" + "\r\n\n".join(map(json.dumps, rows))))
    assert list(texts.texts) == [row["text"] for row in rows]
    assert (texts.labels, list(texts.lines)) == (["2", "x", "0.5", "null"], [1, 3, 5, 7])


def test_parquet_keeps_types(tmp_path):
    texts = ["one", "two\ntwo", "세 번째"]
    columns = {"text": texts, "label": [1, 0, 1], "labels": [{"x": 0.5}, {"x": 1.5}, {"x": 2.0}]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    found = read_texts(tmp_path / "a.parquet")
    assert (list(found.texts), found.labels, list(found.lines)) == (texts, ["1", "0", "1"], [1, 2, 3])
    assert read_texts(tmp_path / "a.parquet", Columns(label="labels.x")).labels == ["0.5", "1.5", "2.0"]


def test_damaged_parquet_is_refused(tmp_path):
    columns, path = {"text": ["one"], "label": [1]}, tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table(columns), path)
    content = path.read_bytes()
    for damaged in (b"", content[: len(content) // 2], content[:-9], content.replace(b"one", b"\xffne")):
        with pytest.raises(ValueError, match=r"a\.parquet is not a Parquet file, or is damaged .*; write or download"):
            read_texts(write(path, damaged))
    for features, message in (
        ('{"label": ', "is not a Parquet file, or is damaged"),
        ('{"label": {"_type": "ClassLabel", "namez": ["a", "b"]}}', "row 1: a class label is not .*'names'"),
    ):
        metadata = {"huggingface": f'{{"info": {{"features": {features}}}}}'}
        parquet.write_table(pyarrow.table(columns).replace_schema_metadata(metadata), path)
        with pytest.raises(ValueError, match=message):
            read_texts(path)
    twice = pyarrow.Table.from_arrays([pyarrow.array(["a"])] * 2, ["text", "text"])
    parquet.write_table(twice, path)
    for table, name in ((path, "a.parquet"), (twice, "The Table")):
        with pytest.raises(ValueError, match=f"{name} has two columns 'text'; rename"):
            read_texts(as_file(table))


def test_parquet_that_is_far_larger_in_memory_than_on_disk(tmp_path):
    path = tmp_path / "a.parquet"
    for column in ([LONG] * 1000, [[LONG] * 1000], [{"b": {"c": [LONG]}}] * 1000, [{LONG: LONG}] * 1000, ZEROS):
        array = pyarrow.array(column, MAPS if column[0] == {LONG: LONG} else None)
        parquet.write_table(pyarrow.table({"a": array}), path, compression="zstd")
        with pytest.raises(ValueError, match=r"a\.parquet expands to more than 500 times its size.*; check the file"):
            next(read_rows(path))


def test_parquet_of_long_texts(tmp_path):
    random = np.random.default_rng(0)
    texts = [random.bytes(100_000).hex() for _ in range(5)]
    columns = {"text": texts * 100, "label": [1] * 500, "maps": pyarrow.array([[("a", "b")]] * 500, MAPS)}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    for row, text in zip(read_rows(tmp_path / "a.parquet"), texts * 100, strict=True):
        assert row.fields == {"text": text, "label": 1, "maps": [("a", "b")]}


@pytest.mark.parametrize("suffix", ["tsv", "csv", "jsonl"])
def test_long_and_odd_texts_are_read(tmp_path, suffix):
    long, mark = "word " * 300_000, "," if suffix == "csv" else "\t"
    content = f"text{mark}label\n{long}{mark}1\na b{mark}2\n"
    if suffix == "jsonl":
        content = f'{{"text": "{long}", "label": 1}}\n{{"text": "a\\u0000b", "label": 2}}'
    texts = read_texts(write(tmp_path / f"a.{suffix}", content))
    assert (texts.texts[0], len(texts)) == (long, 2)


def test_without_header_columns_are_numbers_and_rows_may_differ_in_length(tmp_path):
    path = write(tmp_path / "cola.txt", "gj04\t1\t\tThe sailors rode.\ngj04\t0\t*\tThe weights.\tremark\n")
    texts = read_texts(path, Columns(text="3", label="1"), TableFormat(header=False))
    assert (list(texts.texts), texts.labels) == (["The sailors rode.", "The weights."], ["1", "0"])


def test_empty_rows_are_left_out_and_numbered(tmp_path):
    rows = list(read_rows(write(tmp_path / "a.tsv", "a\tb\n\n\t\nc\t\n"), TableFormat(header=False)))
    assert [row.fields for row in rows] == [{"0": "a", "1": "b"}, {"0": "c", "1": ""}]
    assert [(row.line, row.index) for row in rows] == [(1, 0), (4, 2)]


DOCCANO = '{"text": "x", "annotations": [{"label": 1, "user": 1}]}'
# File, content, what the error says; other columns than the default ones.
BAD = {
    "missing column": ("a.tsv", "txt\tlabel\nx\t1\n", r"a\.tsv, line 2, has no .*mean 'txt'\? Choose .* --text-column"),
    "SST-2 as GLUE has it": ("a.tsv", "sentence\tlabel\nx\t1\n", r"are 'sentence', 'label'\. Choose .* --text-column"),
    "missing key": ("a.jsonl", '{"text": "x", "label": 1}\n{"text": "x"}', r"line 2, has no column .*--label-column"),
    "missing number": ("a.tsv", "x\t1\nx\n", "line 2, has no column '1'", Columns("0", None, "1")),
    "empty file": ("a.tsv", "", r"a\.tsv has no rows"),
    "empty csv": ("a.csv", "\ufeff", r"a\.csv has no rows"),
    "header alone": ("a.tsv", "text\tlabel\n", "has no rows"),
    "short row": ("a.tsv", "text\tlabel\nx\t1\nx\n", r"a\.tsv, line 3, has 1 fields, but the header has 2"),
    "long row": ("a.csv", "text,label\nx,1,2\n", r"a\.csv, line 2, has 3 fields, but the header has 2"),
    "labels of doccano": ("a.jsonl", DOCCANO, "no column 'label'; .*`annotations` of doccano .*export them as JSONL"),
    "text a number": ("a.jsonl", '{"text": 7, "label": 1}', "line 1: text=7 is not a string"),
    "text null": ("a.jsonl", '{"text": null, "label": "good"}', "line 1: text is empty"),
    "broken json": ("a.jsonl", '{"text": "x", "label": 1}\n{"text"', "line 2, is not valid JSON .*; correct or delete"),
    "json not UTF-8": ("a.jsonl", b'{"text": "\xff", "label": 1}', "not UTF-8: byte 0xff at byte offset 10"),
    "json list": ("a.jsonl", "[1, 2]", "line 1, is not a JSON object: .*; correct or delete it"),
    "list in json lines": ("a.jsonl", '[{"text": "a", "label": 1}]\n', "is not a JSON object"),
    "open quote": ("a.csv", 'text,label\n"x,1\n', r"a\.csv, line 2, is not valid CSV"),
    "not UTF-8": ("a.tsv", b"text\tlabel\nxy\xff\t1\n", r"a\.tsv is not UTF-8: byte 0xff at byte offset 13"),
    "NUL": ("a.tsv", b"text\tlabel\nx\t1\na\0b\t1\n", r"a\.tsv, line 3, has a NUL character, .*; correct the file"),
    "NUL of csv": ("a.csv", b'text,label\n"x\n\0",1\n', r"a\.csv, line 3, has a NUL character"),
    "column twice": ("a.tsv", "text\tlabel\tlabel\nx\t1\t2\n", "two columns 'label'"),
    "other kind": ("a.xlsx", "x", r"a\.xlsx is not a table of a known format; convert it to '\.tsv', "),
    "none": ("none.tsv", None, r"none\.tsv does not exist; give a table"),
    "folder": ("", None, "is a folder; give a table"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_tables_are_refused_in_one_sentence(tmp_path, name):
    file, content, message, *columns = BAD[name]
    path = tmp_path / file if content is None else write(tmp_path / file, content)
    with pytest.raises(ValueError, match=message) as raised:
        read_texts(path, *columns, table=TableFormat(header=not columns))
    assert "\n" not in str(raised.value)


def test_json_lines_in_a_json_file(tmp_path):
    path = write(tmp_path / "a.json", '{"text": "a", "label": 1}\n{"text": "b", "label": 2}\n')
    assert fields_of(path) == [{"text": "a", "label": 1}, {"text": "b", "label": 2}]


@pytest.mark.parametrize("orient", ["columns", "index", "split", "values", "table", "records"])
def test_json_of_pandas(tmp_path, orient):
    pandas.DataFrame({"text": ["a", "b"], "label": ["x", "y"]}).to_json(tmp_path / "a.json", orient=orient)
    if orient in ("columns", "table", "records"):
        assert read_texts(tmp_path / "a.json").labels == ["x", "y"]
    else:
        with pytest.raises(ValueError, match=r'a\.json.*; pandas writes rows with to_json\(path, orient="records"\)'):
            read_texts(tmp_path / "a.json")


@pytest.mark.parametrize("level", ["[", "[1, ", '{"a": 1, "b": ', '{"a":"\\"]}",\n"b": ', '{"' + "a" * 99_999 + '": '])
def test_json_that_is_nested_deeply(tmp_path, level):
    path = write(tmp_path / "b.json", f'[{{"text": "a", "label": "1", "other": {level * 101}')
    with pytest.raises(ValueError, match="nested too deeply, in more than 100 lists and objects; correct or delete it"):
        fields_of(path)


@pytest.mark.parametrize("text", ["[{" * 99_999, '\\"[' * 99_999, "\\" * 200_000, "가[" * 99_999])
def test_brackets_of_texts_are_not_nested(tmp_path, text):
    for start in range(3):  # of a part that is read at once
        rows = [{"text": text + " " * start, "label": "1", "other": [[[{}] * 99] * 99] * 9}] * 2
        assert fields_of(write(tmp_path / "a.json", " " * start + json.dumps(rows))) == rows


def test_columns_can_change_names(tmp_path):
    path = write_rows(tmp_path, [{"text": "a", "label": "b", "note": 1}])
    for names, expected in (
        ({"text": "label", "label": "text"}, {"label": "a", "text": "b", "note": 1}),
        ({"note": "text"}, {"text": 1, "label": "b"}),
    ):
        assert fields_of(path, TableFormat(rename=names)) == [expected]
    with pytest.raises(ValueError, match=r"line 1, has no column 'notes'.* did you mean 'note'\?"):
        fields_of(path, TableFormat(rename={"notes": "text"}))
    with pytest.raises(ValueError, match="must give different names"):
        TableFormat(rename={"a": "text", "b": "text"})
