"""Text files become the documents they contain, whatever bytes they hold, and bad ones are named with the byte."""

import pytest

from albert_tf.data.documents import MAX_DOCUMENT, MAX_SENTENCE_BYTES, Document, read_documents, split_sentences


def read(path, data, **options):
    path = path / "text.txt"
    path.write_bytes(data)
    return [list(document.sentences) for document in read_documents(path, **options)]


LONG = "word " * 200_000
RUNNING = "One two\nthree. Four\n\nFive? “Six!” Seven\n"


@pytest.mark.parametrize(
    ("text", "options", "documents"),
    [
        ("\n\na\n  b \r\n\n \n\nc\nd", {}, [["a", "b"], ["c", "d"]]),
        *[("", {}, []), ("\n \n", {}, []), ("\ufeff", {}, [])],
        ("\ufeffa\n\ufeffb", {}, [["a", "\ufeffb"]]),  # a byte-order mark is one at the start only
        ("a\n\nb\n\n\nc\n", {"gap": 2}, [["a", "b"], ["c"]]),
        ("a\n\nb\n\n\nc\n", {"gap": 0}, [["a", "b", "c"]]),
        (RUNNING, {"split": True, "gap": 0}, [["One two three.", "Four", "Five?", "“Six!”", "Seven"]]),
        (f"a\0b\n{LONG}", {}, [["a\0b", LONG.strip()]]),
    ],
    ids=range(9),
)
def test_documents_of_texts(tmp_path, text, options, documents):
    assert read(tmp_path, text.encode(), **options) == documents


def test_sentences_of_other_scripts():
    sentences = ["今日は雨だ。", "「本当？」", "そうだ！", "3.14은 원주율이다.", "끝…"]
    assert split_sentences("今日は雨だ。「本当？」そうだ！3.14은 원주율이다. 끝…") == sentences
    assert split_sentences("  ") == []


def test_documents_do_not_grow_without_limit(tmp_path):
    line = b"x" * (MAX_SENTENCE_BYTES - 1) + b"\n"
    documents = read(tmp_path, line * 40)
    assert sum(map(len, documents)) == 40
    assert max(len("".join(document)) for document in documents) <= MAX_DOCUMENT + MAX_SENTENCE_BYTES


def test_documents_of_short_lines_do_not_grow_without_limit(tmp_path):
    lines = 2 * MAX_DOCUMENT // 64
    documents = read(tmp_path, b"a\n" * lines)
    assert sum(map(len, documents)) == lines
    assert max(map(len, documents)) < MAX_DOCUMENT // 64


def test_a_line_that_is_no_sentence_is_refused_with_its_cure(tmp_path):
    """Tokenising takes some 50 bytes of memory for each byte of the longest line."""
    text = b"A.\n" + b"One. " * (MAX_SENTENCE_BYTES // 5 + 1) + b"\n"
    with pytest.raises(ValueError, match=r"text\.txt, line 2, is longer than 1,048,576 bytes; .* \(--split-sentences"):
        read(tmp_path, text)
    assert len(read(tmp_path, text, split=True)[0]) == MAX_SENTENCE_BYTES // 5 + 2


def test_ends_tell_how_far_reading_is(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes("é\n\nb\n".encode())
    assert [document.end for document in read_documents(path)] == [3, 6]


def test_key_depends_on_the_text_and_its_lines():
    assert len({Document(lines).key for lines in [("a", "b"), ("b", "a"), ("a b",), ("ab",)]}) == 4
    assert Document(("a", "b"), end=1).key == Document(("a", "b"), end=9).key
    assert Document(("\ud800",)).key != Document(("\udfff",)).key
