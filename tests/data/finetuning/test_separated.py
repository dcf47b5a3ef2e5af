"""Proves that separated tables are read as spreadsheets write them: other separators, quotes, rows of other lengths."""

import pytest

from albert_tf.data.finetuning.classification import read_texts
from albert_tf.data.finetuning.table_format import TableFormat
from tests.data.written import write

ROWS = [("영화가 정말 재미있었고 감동적이었다", "긍정"), ("이야기가 지루해서 졸았다; 다시는", "부정")] * 4
# What is said of each.
SEPARATORS = {",": "", ";": ", separated by ';'", "\t": ", separated by tabs", "|": ", separated by '|'"}


def table(separator):
    lines = [f"text{separator}label", *(f'"{text}"{separator}{label}' for text, label in ROWS)]
    return "\r\n".join(lines) + "\r\n"


def read(path, **options):
    texts = read_texts(path, table=TableFormat(**options))
    return list(zip(texts.texts, texts.labels)), texts.form


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("separator", SEPARATORS)
def test_the_separator_is_that_of_the_header(tmp_path, separator, encoding):
    path = write(tmp_path / "a.csv", table(separator).encode(encoding))
    unusual = SEPARATORS[separator] + (", in utf-16" if encoding == "utf-16" else "")
    assert read(path) == (ROWS, f"8 texts{unusual}")


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("sep=;\r\ntext;label\r\na,b;1\r\n", {}),
        ("text;label;a,b\r\na,b;1;2\r\n", {"delimiter": ";"}),
        ("text\tlabel\r\na,b\t1\r\n", {"delimiter": "tab"}),
        ('text;label\r\n"a,b";1\r\n', {}),
    ],
)
def test_separators_that_a_header_does_not_tell(tmp_path, content, options):
    assert read(write(tmp_path / "a.csv", content), **options)[0] == [("a,b", "1")]


def test_a_tsv_file_of_commas_is_one_of_quoted_fields(tmp_path):
    path = write(tmp_path / "a.tsv", 'text,label\n"a, ""b""\nc",1\n')
    assert read(path) == ([('a, "b"\nc', "1")], "1 texts, separated by ','")


def test_fields_in_quotes_of_a_tsv_file_are_noticed(tmp_path):
    path = write(tmp_path / "a.tsv", 'text\tlabel\n"he said ""hi"""\t1\n')
    with pytest.warns(UserWarning, match="1 rows have fields in quotes .*--set delimiter=tab"):
        assert read(path)[0] == [('"he said ""hi"""', "1")]
    assert read(path, delimiter="tab")[0] == [('he said "hi"', "1")]


@pytest.mark.parametrize("suffix", ["tsv", "csv"])
def test_ragged_rows_are_left_out_on_request_and_named(tmp_path, suffix):
    rows = ["text,label", "one,1", "two", "three,3", *["a,b,c"] * 3, "four,4"]
    path = write(tmp_path / f"a.{suffix}", "\n".join(rows).replace(",", "\t" if suffix == "tsv" else ","))
    with pytest.warns(UserWarning, match=rf"a\.{suffix}: 4 rows were left out, .*: lines 3, 5, 6, \.\.\.\.") as caught:
        texts = read_texts(path, table=TableFormat(drop_ragged=True))
    assert len(caught) == 1
    assert (list(texts.texts), texts.labels) == (["one", "three", "four"], ["1", "3", "4"])
    assert list(texts.lines) == [2, 4, 8]
    with pytest.raises(ValueError, match="`finetune --set ragged_rows=drop` leaves out such lines"):
        read_texts(path)


@pytest.mark.parametrize("delimiter", ["", ";;", '"', "\n"])
def test_a_delimiter_is_one_character(delimiter):
    with pytest.raises(ValueError, match="`delimiter` must be one character"):
        TableFormat(delimiter=delimiter)
