"""Proves that texts of other encodings are read where these are known, and that others are guessed and named."""

import json

import pytest

from albert_tf.data.finetuning.classification import read_texts
from albert_tf.data.finetuning.table_format import TableFormat
from tests.data.written import write

ROWS = [
    {"text": "영화가 정말 재미있었고 감동적이었다", "label": "긍정"},
    {"text": "졸았다; 다시는", "label": "부정"},
] * 4
LINES = [json.dumps(row, ensure_ascii=False) for row in ROWS]
CSV = "text,label\n" + "".join(f"{row['text']},{row['label']}\n" for row in ROWS)
FILES = {"csv": CSV, "tsv": CSV.replace(",", "\t"), "jsonl": "\n".join(LINES), "json": f"[{','.join(LINES)}]"}


@pytest.mark.parametrize("suffix", FILES)
def test_another_encoding_is_named_and_can_be_given(tmp_path, suffix):
    path = write(tmp_path / f"a.{suffix}", FILES[suffix].encode("cp949"))
    with pytest.raises(ValueError, match=r"is not UTF-8: byte 0x\w\w at .*; it may be cp949, in .*--set"):
        read_texts(path)
    texts = read_texts(path, table=TableFormat(encoding="cp949"))
    assert [{"text": text, "label": label} for text, label in zip(texts.texts, texts.labels)] == ROWS
    assert texts.form == "8 texts, in cp949"


def test_a_byte_order_mark_is_no_text_where_the_encoding_is_given(tmp_path):
    path = write(tmp_path / "a.csv", "text,label\na,1\n".encode("utf-8-sig"))
    assert read_texts(path, table=TableFormat(encoding="utf-8")).labels == ["1"]


LATIN = "text;label\nDas Wetter ist schön, die Straße ist naß.;gut\nschön;gut\n"
JAPANESE = "text,label\nこの映画は本当に面白かったです,良い\n"
# Bytes of a file, the encoding that was given, what the error says.
WRONG = {
    "unknown": (CSV.encode(), "klingon", "name of an encoding, such as utf-8, utf-16 or cp949. Received: 'klingon'"),
    "of no text": (CSV.encode(), "hex", "must be the name of an encoding"),
    "needless": (CSV.encode(), "cp949", "a.csv is UTF-8, not cp949; leave out `encoding`"),
    "another": (CSV.encode("cp949"), "utf-16", r"a\.csv is not UTF-16"),
    "cp1252": (LATIN.encode("cp1252"), None, "may be cp1252, in which the line is"),
    "cp1251": ("Это хороший фильм, мне понравилось\n".encode("cp1251") * 3, None, "may be cp1251, in which"),
    "cp932": (JAPANESE.encode("cp932"), None, "may be cp932, in which the line is"),
    "gb18030": ("这部电影很好看，我很喜欢。\n".encode("gb18030") * 3, None, "may be gb18030, in which the line is"),
    "zip": (b"PK\x03\x04\xff\xff", None, "is a spreadsheet or another zip archive; save it as CSV"),
    "gzip": (b"\x1f\x8b\xff\xff", None, "is compressed; decompress it"),
    "utf-16-le": ("text\tlabel\n".encode("utf-16-le"), None, r"`encoding` \(--set encoding=utf-16-le\)"),
    "iso2022_jp": ("text,label\n映画,1\n".encode("iso2022_jp"), None, "may be iso2022_jp"),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_encoding_that_is_not_that_of_the_file(tmp_path, name):
    content, encoding, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        read_texts(write(tmp_path / "a.csv", content), table=TableFormat(encoding=encoding))
