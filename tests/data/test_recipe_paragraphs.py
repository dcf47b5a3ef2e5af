"""Proves that the script beside the recipes finds the paragraphs of books, whichever way their lines are broken."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from albert_tf.data.documents import read_documents

SCRIPT = Path(__file__).parents[2] / "training" / "recipes" / "paragraphs.py"
PARAGRAPHS = [
    "It was a dark night, and " + "the rain fell in torrents, and " * 6 + "nobody was abroad. No lamp was lit.",
    '"Who is there?" she asked.',
    "Nobody answered her. " + "She waited a long while at the door, and heard the wind. " * 5 + "Then she went in.",
    '"Nobody," said he. "It was the wind."',
] * 12


WRAPPED = [textwrap.fill(paragraph, 70) for paragraph in PARAGRAPHS]
BOOKS = {
    "a line each": "\n".join(PARAGRAPHS),
    "empty lines": "\n\n".join(WRAPPED),
    "several empty lines": "\n \n\n\n".join(WRAPPED),
    "early ends": "\n".join(WRAPPED),
}


def paragraphs_of(book, output):
    command = [sys.executable, SCRIPT, book, "--output", output]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("name", BOOKS)
def test_each_paragraph_becomes_a_document(tmp_path, name):
    (tmp_path / "Book.txt").write_text(f"\n\n{BOOKS[name]}\n", encoding="utf-8")
    assert paragraphs_of(tmp_path / "Book.txt", tmp_path / "out") == "Book.txt: 48 paragraphs\n"
    assert (tmp_path / "out/Book.txt").read_text(encoding="utf-8") == "\n\n".join(PARAGRAPHS) + "\n"
    assert len(list(read_documents(tmp_path / "out/Book.txt", split=True, gap=1))) == len(PARAGRAPHS)


def test_an_empty_book_has_none(tmp_path):
    (tmp_path / "Book.txt").write_text("\n \n")
    assert paragraphs_of(tmp_path / "Book.txt", tmp_path / "out") == "Book.txt: 0 paragraphs\n"
