"""Reading JSON and TOML: an error names the file, says what is wrong with it and ends with the cure."""

import os

import pytest

from albert_tf.json_files import read_bytes, read_json, read_toml


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "not valid JSON .*line 1 column 2"),
        (b"\xff\xfe", "not valid JSON"),
        (b"[1]", "holds list where an object is expected"),
        (b"3", "holds int where"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": ' + b"9" * 10_000 + b"}", "not valid JSON .*digits"),
    ],
)
def test_a_damaged_json_file_is_named(tmp_path, content, message):
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"(?s)config.json.*{message}") as caught:
        read_json(path, cure="download it again")
    assert str(caught.value).endswith("download it again.")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a = ", "not valid TOML .*end of document"),
        (b"\xff", "not valid TOML"),
        (b"a = " + b"[" * 100_000, "nested too deeply"),
        (b"a = " + b"9" * 10_000, "not valid TOML .*digits"),
    ],
)
def test_a_damaged_toml_file_is_named(tmp_path, content, message):
    path = tmp_path / "recipe.toml"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"(?s)recipe.toml.*{message}"):
        read_toml(path)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ValueError, match=r"missing\.json does not exist"):
        read_json(tmp_path / "missing.json")
    with pytest.raises(ValueError, match="is not a file"):
        read_json(tmp_path)
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(ValueError, match="is not a file"):
        read_json(tmp_path / "pipe.json")
    (tmp_path / "large.json").write_bytes(b"[" + b"0," * 20 + b"0]")
    with pytest.raises(ValueError, match="larger than"):
        read_bytes(tmp_path / "large.json", max_bytes=10)


def test_what_is_read(tmp_path):
    (tmp_path / "a.json").write_text('{"name": "가"}', encoding="utf-8")
    (tmp_path / "b.json").write_text("[1, 2]", encoding="utf-8")
    (tmp_path / "c.toml").write_text('name = "가"', encoding="utf-8")
    assert read_json(tmp_path / "a.json") == {"name": "가"} == read_toml(tmp_path / "c.toml")
    assert read_json(tmp_path / "b.json", kind=list) == [1, 2]
