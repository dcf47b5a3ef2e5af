"""Proves that text files are found by name, folder and pattern, and that packed and broken ones are read or named."""

import gzip
import tracemalloc

import pytest

from albert_tf.files.text import MAX_LINE_BYTES, find_files, read_lines

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
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"empty holds no \.txt"):
        find_files([tmp_path / "empty"])
    with pytest.raises(ValueError, match=r"No file matches .*nothing\*'; correct"):
        find_files([tmp_path / "nothing*"])


def test_a_file_that_several_paths_lead_to_is_read_once(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "b.txt").symlink_to("a.txt")
    monkeypatch.chdir(tmp_path)
    found = find_files(["a.txt", tmp_path, tmp_path / ".." / tmp_path.name / "*.txt"])
    assert [str(path) for path in found] == ["a.txt"]


def test_a_packed_file_has_the_lines_of_the_plain_one(tmp_path):
    (tmp_path / "a.txt").write_bytes(TEXT.encode())
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(TEXT.encode()))
    plain, packed = (list(read_lines(tmp_path / name)) for name in ("a.txt", "a.txt.gz"))
    assert [line.text for line in plain] == [line.text for line in packed] == ["one é", "", "two"]
    assert [line.end for line in plain] == [10, 11, 18]
    assert packed[-1].end == (tmp_path / "a.txt.gz").stat().st_size


CP949 = "안녕하세요, 정말 재미있는 영화였다.\n".encode("cp949") * 20
GUESS = r"is not UTF-8: byte 0xbe at .* 0\. .* it may be cp949: `iconv -f cp949 -t"
COMPLETE, INCOMPLETE = gzip.compress(b"words " * 1000), r"a\.txt\.gz is not a complete gzip file"
BAD = {
    "another encoding": ("a.txt", CP949, GUESS),
    "another encoding, packed": ("a.txt.gz", gzip.compress(CP949), GUESS),
    "byte": ("a.txt", b"one\ntw\xff\n", r"a\.txt is not UTF-8: byte 0xff at byte offset 6\. Convert the"),
    "UTF-16": ("a.txt", "a\n".encode("utf-16"), "byte 0xff at byte offset 0"),
    "a lone surrogate": ("a.txt", b"a\n\xed\xa0\x80\n", "byte 0xed at byte offset 2"),
    "cut inside a character": ("a.txt", b"\xef\xbb\xbfa\n\xc3", "byte 0xc3 at byte offset 5"),
    "byte of the unpacked text": ("b.txt.gz", gzip.compress(b"one\ntw\xff\n"), "b.txt.gz is not .* byte offset 6"),
    "plain": ("a.txt.gz", b"plain", INCOMPLETE),
    "no end": ("a.txt.gz", COMPLETE[:-20], INCOMPLETE),
    "damaged": ("a.txt.gz", COMPLETE[:12] + b"\xff" * 9 + COMPLETE[21:], INCOMPLETE),
    "another checksum": ("a.txt.gz", COMPLETE[:-8] + b"\0" * 8, INCOMPLETE),
}


@pytest.mark.parametrize("kind", BAD)
def test_damaged_files_are_named(tmp_path, kind):
    name, content, message = BAD[kind]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        list(read_lines(tmp_path / name))


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_a_long_line_is_refused_in_bounded_memory(tmp_path, name):
    """Reading a line of 300 MB must not cost 300 MB, as it does from 300 kB of gzip."""
    with gzip.open(tmp_path / name, "wb", 1) if name.endswith("gz") else (tmp_path / name).open("wb") as file:
        file.write(b"short\n")
        for _ in range(300):
            file.write(b"words " * (10**6 // 6))
    tracemalloc.start()
    with pytest.raises(ValueError, match=rf"{name}, line 2, is longer than 16,777,216 bytes; break it"):
        list(read_lines(tmp_path / name))
    assert tracemalloc.get_traced_memory()[1] < 5 * MAX_LINE_BYTES
    tracemalloc.stop()


def test_a_limit_and_a_cure_of_the_caller(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"12345678\n123456789\n")
    with pytest.raises(ValueError, match=r"a\.txt, line 2, is longer than 9 bytes; cut it\."):
        list(read_lines(tmp_path / "a.txt", max_bytes=9, cure="cut it"))


def test_a_gzip_bomb_of_short_lines_is_refused(tmp_path):
    with gzip.open(tmp_path / "a.txt.gz", "wb") as file:
        for _ in range(64):
            file.write(b"a" * 999_999 + b"\n")
    with pytest.raises(ValueError, match=r"a\.txt\.gz expands to more than 500 times its size"):
        list(read_lines(tmp_path / "a.txt.gz"))
