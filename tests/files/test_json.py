"""Reading JSON and TOML: an error names the file, says what is wrong with it and ends with the cure."""

import contextlib
import json
import os
import pathlib

import pytest

from albert_tf.files.json import (
    has_file,
    optional_json,
    parse_json,
    read_bytes,
    read_json,
    read_toml,
    verify_checksum,
    with_checksum,
    with_settings,
)


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
        (b"a" + b".a" * 1000 + b" = 1", "a key has more than 16 parts"),
        (b'["a" ' + b""". 'b c' . "d\\"" """ * 8 + b"]", "a key has more than 16 parts"),
        (b"a = 1\n" * 200_000, "larger than 1,048,576 bytes"),
    ],
)
def test_a_damaged_toml_file_is_named(tmp_path, content, message):
    path = tmp_path / "recipe.toml"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"(?s)recipe.toml.*{message}"):
        read_toml(path)


def test_files_that_cannot_be_read(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "large.json").write_bytes(b"[" + b"0," * 20 + b"0]")
    for read, name, message in (
        (read_json, "missing.json", r"missing\.json does not exist"),
        (read_json, "", "is not a file"),
        (read_json, "pipe.json", "is not a file"),
        (lambda path: read_bytes(path, max_bytes=10), "large.json", "larger than"),
    ):
        with pytest.raises(ValueError, match=message):
            read(tmp_path / name)


@pytest.mark.parametrize(
    "make",
    [
        pathlib.Path.mkdir,
        os.mkfifo,
        lambda path: path.symlink_to("nowhere"),
        lambda path: path.symlink_to(path),
        lambda path: path.symlink_to(path.parent),
    ],
    ids=["folder", "pipe", "broken", "circle", "link"],
)
def test_what_is_no_file_does_not_count_as_absent(make, tmp_path):
    assert optional_json(tmp_path / "model.json") == {}
    assert not has_file(tmp_path / "model.json" / "of_a_file.json")
    make(tmp_path / "model.json")
    for read in (has_file, optional_json):
        with pytest.raises(ValueError, match=r"model\.json is not a file, .*restore the file, or remove it\.$"):
            read(tmp_path / "model.json")


def test_what_is_read(tmp_path):
    (tmp_path / "a.json").write_text('{"name": "가"}', encoding="utf-8")
    (tmp_path / "b.json").write_text("[1, 2]", encoding="utf-8")
    (tmp_path / "c.toml").write_text('name = "가"', encoding="utf-8")
    assert read_json(tmp_path / "a.json") == {"name": "가"} == read_toml(tmp_path / "c.toml")
    (tmp_path / "c.toml").write_text("\ufeffseed = 1", encoding="utf-8")  # as some editors of Windows write it
    assert read_toml(tmp_path / "c.toml") == {"seed": 1}
    assert read_json(tmp_path / "b.json", kind=list) == [1, 2]
    dots = "a." * 99
    texts = f"""a = "{dots}"\nb = '{dots}' # {dots}\nc = \"\"\"\n{dots}"\n{dots}\"\"\"\nd = '''\n{dots}'\n'''\n"""
    (tmp_path / "d.toml").write_text(f"{texts}e = [{'0.5, ' * 99}]", encoding="utf-8")
    expected = {"a": dots, "b": dots, "c": f'{dots}"\n{dots}', "d": f"{dots}'\n", "e": [0.5] * 99}
    assert read_toml(tmp_path / "d.toml") == expected


def test_one_flipped_bit_is_seen_by_the_checksum():
    values = {"step": 400, "loss": 1.2345678, "shards": [{"file": "가-0", "examples": 7}], "weights": None}
    text = json.dumps(with_checksum(values), indent=2).encode()
    assert verify_checksum(parse_json(text, "a.json"), "a.json") == values
    taken = 0
    for position in range(8 * len(text)):
        flipped = bytearray(text)
        flipped[position // 8] ^= 1 << position % 8
        with contextlib.suppress(ValueError):
            # Only white space may have changed, or the way in which the same value is written.
            assert verify_checksum(parse_json(bytes(flipped), "a.json"), "a.json") == values
            taken += 1
    assert taken < 8 * len(text) / 20


def test_values_without_their_checksum_are_refused():
    with pytest.raises(ValueError, match=r"^a.json has no checksum .*; prepare it again\.$"):
        verify_checksum({"step": 400}, "a.json", "prepare it again")
    with pytest.raises(ValueError, match=r"^a.json was changed after it was written .*; prepare it again\.$"):
        verify_checksum({**with_checksum({"step": 400}), "step": 401}, "a.json", "prepare it again")


def test_settings_are_toml_or_bare_texts():
    changed = with_settings(
        {"epochs": 3, "rename_columns": {"a": "text"}, "class_weights": "balanced"},
        [
            *("epochs = 4", "optimizer=lamb", "delimiter=;", "encoding=utf-8", "patience=2", "patience=3"),
            *("from_scratch=true", 'positive_label="1"', "learning_rate=1e-3", 'labels=["a", "b"]', "empty="),
            *("rename_columns.meta.text=pair", "class_weights.질문=5", "text=a\nepochs = 5"),
        ],
    )
    assert changed == {
        **{"epochs": 4, "rename_columns": {"a": "text", "meta.text": "pair"}, "class_weights": {"질문": 5}},
        **{"optimizer": "lamb", "delimiter": ";", "encoding": "utf-8", "patience": 3, "from_scratch": True},
        **{"positive_label": "1", "learning_rate": 1e-3, "labels": ["a", "b"], "empty": "", "text": "a\nepochs = 5"},
    }


@pytest.mark.parametrize("setting", ["epochs", "=3", "", "training.=3", "labels=[a]", 'label="a', "a=" + "[" * 100_000])
def test_wrong_settings(setting):
    with pytest.raises(ValueError, match="`--set` must"):
        with_settings({}, [setting])
