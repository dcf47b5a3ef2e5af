"""Proves that `albert-tf predict --data -` reads tables, JSON and lines of text as it reads files of them."""

import io
import json

import pytest

from .terminal import mistake, output_of


def test_lines_from_standard_input(folders, monkeypatch):
    types(monkeypatch, "one text\nanother\n")
    rows = [
        json.loads(line)
        for line in output_of("predict", folders["regression"], "--data", "-", "--format", "text").splitlines()
    ]
    assert [row["text"] for row in rows] == ["one text", "another"]
    assert [row["line"] for row in rows] == [1, 2]
    assert all(set(row) == {"line", "text", "score"} for row in rows)


def types(monkeypatch, content):
    """Makes the content standard input."""
    content = content if isinstance(content, bytes) else content.encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


QUOTED = 'id,text,label\n1,"one, ""or"" so",x\n2,two,y\n'
TABLES = {
    "csv": (QUOTED, ()),
    "csv of another separator": (QUOTED.replace(",", ";").replace("one;", "one,"), ()),
    "tsv": ('id\ttext\tlabel\n1\tone, "or" so\tx\n2\ttwo\ty\n', ()),
    "jsonl": ('{"id": "1", "text": "one, \\"or\\" so", "label": "x"}\n{"id": "2", "text": "two", "label": "y"}\n', ()),
    "json": (
        '[\n {"id": "1", "text": "one, \\"or\\" so", "label": "x"}, {"id": "2", "text": "two", "label": "y"}]',
        (),
    ),
    "no header": (QUOTED.partition("\n")[2], ("--set", "header=false", "--text-column", "1")),
    "encoding": (QUOTED.replace("two", "셋").encode("cp949"), ("--set", "encoding=cp949")),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_on_standard_input_is_read_as_its_file_is(name, folders, tmp_path, monkeypatch):
    content, options = TABLES[name]
    form = name if name in ("tsv", "jsonl", "json") else "csv"
    path = tmp_path / f"table.{form}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    command = ("predict", folders["classifier"], "--output", tmp_path / "of.jsonl", "--data")
    output_of(*command, path, *options)
    expected = (tmp_path / "of.jsonl").read_text("utf-8")
    assert len(expected.splitlines()) == 2
    types(monkeypatch, content)
    output_of(*command, "-", "--format", form, *options)
    assert (tmp_path / "of.jsonl").read_text("utf-8") == expected


def test_the_format_is_given_and_not_guessed(folders, monkeypatch):
    command = ("predict", folders["classifier"], "--data", "-")
    assert "`--format` must be given with `--data -`, and only there: text (one in each line)" in mistake(*command)
    lines = ['He said: "one, two".', "[MASK] is, {so}", "", "a,b", "id\treview", '{"a": 1}', "[" * 100_000, "5"]
    types(monkeypatch, "\n".join(lines))
    assert [json.loads(row)["text"] for row in output_of(*command, "--format", "text").splitlines()] == lines
    for form, content, message in (
        ("csv", "id,review\n1,fine\n", "standard input has no column 'text'; its columns are 'id', 'review'."),
        ("jsonl", '{"review": "fine"}\n', "standard input, line 1, has no column 'text'"),
        ("csv", 'text,label\n"a"b,c\n', "standard input, line 2, is not valid CSV"),
    ):
        types(monkeypatch, content)
        assert message in mistake(*command, "--format", form)
    types(monkeypatch, '{"text": "a"}\n')
    message = mistake(*command, "--format", "jsonl", "--set", "delimiter=;")
    assert "`delimiter` is not for .jsonl tables. Received: standard input" in message
    types(monkeypatch, "a\nb\n")
    assert "leave out the options of columns" in mistake(*command, "--format", "text", "--text-column", "b")
