"""The texts of `quickstart` and `ablations`: a corpus for pretraining, and passages to classify by author.

Files are named `Author_Title_Year.txt`, with one paragraph per line and empty lines between chapters. Every fifth
chapter is held out from both corpus and passages.
"""

import itertools
import pathlib
import random
from collections.abc import Iterator
from typing import NamedTuple

import typer

from albert_tf.data.documents import split_sentences
from albert_tf.files.text import read_lines

HELDOUT_EVERY = 5  # chapters
PASSAGE_CHARACTERS = 200
TRAIN_PASSAGES, DEV_PASSAGES = 200, 100  # per author


class Chapter(NamedTuple):
    """One chapter of a novel."""

    author: str
    book: str
    paragraphs: list[str]
    is_heldout: bool


def read_chapters(folder: pathlib.Path) -> list[Chapter]:
    """All chapters of the novels in a folder, in order of file names.

    Raises:
        ValueError: there are no novels, or one is not UTF-8.
    """
    files = sorted(folder.glob("*_*.txt"))
    if not files:
        raise ValueError(f"{folder} has no novels; pass --data a folder of files named Author_Title_Year.txt.")
    return [
        Chapter(file.stem.split("_")[0], file.stem, paragraphs, number % HELDOUT_EVERY == HELDOUT_EVERY - 1)
        for file in files
        for number, paragraphs in enumerate(_split_chapters(file))
    ]


def _split_chapters(file: pathlib.Path) -> list[list[str]]:
    """The paragraphs of each chapter."""
    lines = itertools.groupby((line.text for line in read_lines(file)), key=bool)
    return [list(paragraphs) for is_text, paragraphs in lines if is_text]


def write_texts(data: pathlib.Path, folder: pathlib.Path) -> dict[str, list[pathlib.Path]]:
    """Splits the novels by chapters into `train` and `heldout`, and writes passages of both; returns the text files."""
    typer.echo("reading the novels")
    chapters = read_chapters(data)
    parts = {"train": [c for c in chapters if not c.is_heldout], "heldout": [c for c in chapters if c.is_heldout]}
    for name, part in parts.items():
        write_corpus(part, folder / name)
    write_passages(parts["train"], folder / "passages_train.tsv", TRAIN_PASSAGES, seed=0)
    write_passages(parts["heldout"], folder / "passages_dev.tsv", DEV_PASSAGES, seed=0)
    return {name: sorted((folder / name).glob("*.txt")) for name in parts}


def write_corpus(chapters: list[Chapter], folder: pathlib.Path) -> None:
    """Writes one text file per book, with empty lines between chapters."""
    folder.mkdir(parents=True, exist_ok=True)
    for book in sorted({chapter.book for chapter in chapters}):
        texts = ["\n".join(chapter.paragraphs) for chapter in chapters if chapter.book == book]
        (folder / f"{book}.txt").write_text("\n\n".join(texts) + "\n", encoding="utf-8")


def write_passages(chapters: list[Chapter], file: pathlib.Path, per_author: int, seed: int) -> None:
    """Writes a TSV of `author` and `text` with the same number of passages per author."""
    generator = random.Random(seed)
    lines = ["author\ttext"]
    for author in sorted({chapter.author for chapter in chapters}):
        passages = [text for chapter in chapters if chapter.author == author for text in _passages(chapter)]
        generator.shuffle(passages)
        lines += [f"{author}\t{passage}" for passage in passages[:per_author]]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _passages(chapter: Chapter) -> Iterator[str]:
    """Passages of consecutive sentences, of at least `PASSAGE_CHARACTERS`."""
    passage = ""
    for sentence in split_sentences(" ".join(chapter.paragraphs).replace("\t", " ")):
        passage = f"{passage} {sentence}".strip()
        if len(passage) >= PASSAGE_CHARACTERS:
            yield passage
            passage = ""
