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


def _wrapped(paragraphs, between):
    return between.join(textwrap.fill(paragraph, 70) for paragraph in paragraphs)


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(PARAGRAPHS),
        _wrapped(PARAGRAPHS, "\n\n"),
        _wrapped(PARAGRAPHS, "\n \n\n\n"),
        _wrapped(PARAGRAPHS, "\n"),
    ],
    ids=["a line each", "empty lines", "several empty lines", "early ends"],
)
def test_each_paragraph_becomes_a_document(tmp_path, text):
    book, output = tmp_path / "Book.txt", tmp_path / "paragraphs"
    book.write_text(f"\n\n{text}\n", encoding="utf-8")
    command = [sys.executable, SCRIPT, book, "--output", output]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert printed == "Book.txt: 48 paragraphs\n"
    assert (output / "Book.txt").read_text(encoding="utf-8").split("\n\n") == [*PARAGRAPHS[:-1], PARAGRAPHS[-1] + "\n"]
    documents = list(read_documents(output / "Book.txt", split=True, gap=1))
    assert len(documents) == len(PARAGRAPHS)


def test_an_empty_book_has_none(tmp_path):
    (tmp_path / "Book.txt").write_text("\n \n")
    command = [sys.executable, SCRIPT, tmp_path / "Book.txt", "--output", tmp_path / "paragraphs"]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "Book.txt: 0 paragraphs\n"
