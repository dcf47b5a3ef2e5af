"""Proves that text files are found by name, folder and pattern, and that packed and broken ones are read or named."""

import gzip

import pytest

from albert_tf.text_files import find_files, read_lines

TEXT = "\ufeffone é\n\n two \r\n"


def test_files_of_folders_patterns_and_names(tmp_path):
    (tmp_path / "sub").mkdir()
    names = ["b.txt", "a.txt.gz", "sub/c.txt", "d.md"]
    for name in names:
        (tmp_path / name).write_text("x")
    found = find_files([tmp_path / "d.md", tmp_path, str(tmp_path / "*.md")])
    assert [str(path.relative_to(tmp_path)) for path in found] == ["d.md", "a.txt.gz", "b.txt", "sub/c.txt"]
    (tmp_path / "notes.txt").mkdir()
    (tmp_path / "notes.txt" / "e.txt").write_text("x")
    assert find_files([tmp_path])[2:] == [tmp_path / "notes.txt" / "e.txt", tmp_path / "sub" / "c.txt"]
    with pytest.raises(ValueError, match=r"Received: .*nothing\*"):
        find_files([tmp_path / "nothing*"])


def test_a_packed_file_has_the_lines_of_the_plain_one(tmp_path):
    plain, packed = tmp_path / "a.txt", tmp_path / "a.txt.gz"
    plain.write_bytes(TEXT.encode())
    packed.write_bytes(gzip.compress(TEXT.encode()))
    assert [line.text for line in read_lines(plain)] == ["one é", "", "two"]
    assert [line.text for line in read_lines(packed)] == ["one é", "", "two"]
    assert [line.end for line in read_lines(plain)] == [10, 11, 18]
    assert [line.end for line in read_lines(packed)][-1] == packed.stat().st_size


WHOLE = gzip.compress(b"words " * 1000)


@pytest.mark.parametrize(
    "content", [b"plain", WHOLE[:-20], WHOLE[:12] + b"\xff" * 9 + WHOLE[21:], WHOLE[:-8] + b"\0" * 8], ids=range(4)
)
def test_what_is_no_whole_gzip_file_is_named(tmp_path, content):
    (tmp_path / "a.txt.gz").write_bytes(content)
    with pytest.raises(ValueError, match=r"must be a whole gzip file. Received: .*a\.txt\.gz"):
        list(read_lines(tmp_path / "a.txt.gz"))


def test_the_byte_that_is_not_utf8_is_that_of_the_unpacked_text(tmp_path):
    for name, content in {"a.txt": b"one\ntw\xff\n", "b.txt.gz": gzip.compress(b"one\ntw\xff\n")}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=f"Received: .*{name} with byte 0xff at byte offset 6"):
            list(read_lines(tmp_path / name))
