"""Proves that tables are read as spreadsheets write them: other encodings, other separators, quoted line breaks."""

import json

import pytest

from albert_tf.data.finetuning.classification import read_texts
from albert_tf.data.finetuning.table_format import TableFormat

ROWS = [("영화가 정말 재미있었고 감동적이었다", "긍정"), ("이야기가 지루해서 졸았다; 다시는", "부정")] * 4
SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"}


def table(separator, header="text{}label"):
    lines = [header.format(separator), *(f'"{text}"{separator}{label}' for text, label in ROWS)]
    return "\r\n".join(lines) + "\r\n"


def read(path, **options):
    texts = read_texts(path, table=TableFormat(**options))
    return list(zip(texts.texts, texts.labels)), texts.form


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("separator", SEPARATORS)
def test_the_separator_is_that_of_the_header(tmp_path, separator, encoding):
    path = tmp_path / "a.csv"
    path.write_bytes(table(SEPARATORS[separator]).encode(encoding))
    rows, form = read(path)
    assert rows == ROWS
    unusual = {
        "comma": "",
        "semicolon": ", separated by ';'",
        "tab": ", separated by tabs",
        "bar": ", separated by '|'",
    }
    assert form == f"8 texts{unusual[separator]}{', in utf-16' if encoding == 'utf-16' else ''}"


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
    path = tmp_path / "a.csv"
    path.write_bytes(content.encode())
    assert read(path, **options)[0] == [("a,b", "1")]


def test_a_tsv_file_of_commas_is_one_of_quoted_fields(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_bytes(b'text,label\n"a, ""b""\nc",1\n')
    assert read(path) == ([('a, "b"\nc', "1")], "1 texts, separated by ','")


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "json"])
def test_another_encoding_is_named_and_can_be_given(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    lines = [f'{{"text": "{text}", "label": "{label}"}}' for text, label in ROWS]
    content = {
        "csv": table(","),
        "tsv": table("\t").replace('"', ""),
        "jsonl": "\n".join(lines),
        "json": f"[{','.join(lines)}]",
    }[suffix]
    path.write_bytes(content.encode("cp949"))
    with pytest.raises(ValueError, match=r"is not UTF-8: byte 0x\w\w at .*; it may be cp949, in .*--set"):
        read(path)
    assert read(path, encoding="cp949") == (ROWS, "8 texts, in cp949")


@pytest.mark.parametrize(
    ("written", "encoding", "message"),
    [
        ("utf-8", "klingon", "must be the name of an encoding, such as utf-8, utf-16 or cp949. Received: 'klingon'"),
        ("utf-8", "hex", "must be the name of an encoding"),
        ("utf-8", "cp949", "a.csv is UTF-8, not cp949; leave out `encoding`"),
        ("cp949", "utf-16", r"a\.csv is not UTF-16"),
    ],
)
def test_an_encoding_that_is_not_that_of_the_file(tmp_path, written, encoding, message):
    (tmp_path / "a.csv").write_bytes(table(",").encode(written))
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "a.csv", encoding=encoding)


LATIN = "text;label\nDas Wetter ist schön, die Straße ist naß.;gut\nschön;gut\n"
LIKELY = {
    "cp1252": LATIN,
    "cp1251": "Это хороший фильм, мне понравилось\n" * 3,
    "cp932": "text,label\nこの映画は本当に面白かったです,良い\n",
    "gb18030": "这部电影很好看，我很喜欢。\n" * 3,
}


@pytest.mark.parametrize("encoding", LIKELY)
def test_the_encodings_of_spreadsheets_are_told_apart(tmp_path, encoding):
    (tmp_path / "a.csv").write_bytes(LIKELY[encoding].encode(encoding))
    with pytest.raises(ValueError, match=f"it may be {encoding}, in which the line is"):
        read(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04\xff\xff", "is a spreadsheet or another zip archive; save it as CSV"),
        (b"\x1f\x8b\xff\xff", "is compressed; decompress it"),
        ("text\tlabel\n".encode("utf-16-le"), r"may be utf-16-le: set `encoding` \(--set encoding=utf-16-le\)"),
        ("text,label\n映画,1\n".encode("iso2022_jp"), "may be iso2022_jp"),
    ],
)
def test_files_of_other_kinds_are_named(tmp_path, content, message):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "a.csv")


def test_a_byte_order_mark_is_no_text_where_the_encoding_is_given(tmp_path):
    (tmp_path / "a.csv").write_bytes("text,label\na,1\n".encode("utf-8-sig"))
    assert read(tmp_path / "a.csv", encoding="utf-8")[0] == [("a", "1")]


def test_fields_in_quotes_of_a_tsv_file_are_noticed(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text('text\tlabel\n"he said ""hi"""\t1\n', encoding="utf-8")
    with pytest.warns(UserWarning, match="1 rows have fields in quotes .*--set delimiter=tab"):
        assert read(path)[0] == [('"he said ""hi"""', "1")]
    assert read(path, delimiter="tab")[0] == [('he said "hi"', "1")]


def test_json_lines_in_a_json_file_and_a_list_in_json_lines(tmp_path):
    lines = '{"text": "a", "label": 1}\n{"text": "b", "label": 2}\n'
    (tmp_path / "a.json").write_text(lines, encoding="utf-8")
    assert read(tmp_path / "a.json")[0] == [("a", "1"), ("b", "2")]
    (tmp_path / "a.jsonl").write_text('[{"text": "a", "label": 1}]\n', encoding="utf-8")
    with pytest.raises(ValueError, match="is not a JSON object"):
        read(tmp_path / "a.jsonl")


@pytest.mark.parametrize("level", ["[", "[1, ", '{"a": 1, "b": ', '{"a":"\\"]}",\n"b": ', '{"' + "a" * 99_999 + '": '])
def test_json_that_is_nested_deeply(tmp_path, level):
    (tmp_path / "b.json").write_text(f'[{{"text": "a", "label": "1", "other": {level * 101}', encoding="utf-8")
    with pytest.raises(ValueError, match="nested too deeply, in more than 100 lists and objects; correct or delete it"):
        read(tmp_path / "b.json")


@pytest.mark.parametrize("text", ["[{" * 99_999, '\\"[' * 99_999, "\\" * 200_000, "가[" * 99_999])
def test_brackets_of_texts_are_not_nested(tmp_path, text):
    for start in range(3):  # of a part that is read at once
        rows = [{"text": text + " " * start, "label": "1", "other": [[[{}] * 99] * 99] * 9}] * 2
        (tmp_path / "a.json").write_text(" " * start + json.dumps(rows), encoding="utf-8")
        assert read(tmp_path / "a.json")[0] == [(text + " " * start, "1")] * 2


@pytest.mark.parametrize("delimiter", ["", ";;", '"', "\n"])
def test_a_delimiter_is_one_character(delimiter):
    with pytest.raises(ValueError, match="`delimiter` must be one character"):
        TableFormat(delimiter=delimiter)
