"""The texts of `quickstart` and `ablations`: a corpus to pretrain on, and passages to classify by author.

A file is named `Author_Title_Year.txt` and holds a paragraph a line and an empty line between chapters. Every fifth
chapter is held out completely, from the corpus and from the passages, so that no passage has a neighbour that was seen.
"""

import itertools
import pathlib
import random
from collections.abc import Iterator
from typing import NamedTuple

import typer

from albert_tf.data.documents import split_sentences
from albert_tf.text_files import read_lines

HELD_OUT = 5  # one chapter in so many
PASSAGE_CHARACTERS = 200
TRAIN_PASSAGES, DEV_PASSAGES = 200, 100  # for each author


class Chapter(NamedTuple):
    """One chapter of a novel."""

    author: str
    book: str
    paragraphs: list[str]
    is_heldout: bool


def read_chapters(folder: pathlib.Path) -> list[Chapter]:
    """All chapters of all novels of a folder, in order of file names.

    Raises:
        ValueError: where there are no novels, or one is not UTF-8.
    """
    files = sorted(folder.glob("*_*.txt"))
    if not files:
        raise ValueError(f"{folder} is without novels; give --data a folder of files named Author_Title_Year.txt.")
    return [
        Chapter(file.stem.split("_")[0], file.stem, paragraphs, number % HELD_OUT == HELD_OUT - 1)
        for file in files
        for number, paragraphs in enumerate(_split_chapters(file))
    ]


def _split_chapters(file: pathlib.Path) -> list[list[str]]:
    """The paragraphs of each chapter."""
    lines = itertools.groupby((line.text for line in read_lines(file)), key=bool)
    return [list(paragraphs) for is_text, paragraphs in lines if is_text]


def write_texts(data: pathlib.Path, folder: pathlib.Path) -> dict[str, list[pathlib.Path]]:
    """Splits the novels by chapters into `train` and `heldout`, and takes passages from both.

    Returns:
        The text files of each part.
    """
    typer.echo("reading the novels")
    chapters = read_chapters(data)
    parts = {"train": [c for c in chapters if not c.is_heldout], "heldout": [c for c in chapters if c.is_heldout]}
    for name, part in parts.items():
        write_corpus(part, folder / name)
    write_passages(parts["train"], folder / "passages_train.tsv", TRAIN_PASSAGES, seed=0)
    write_passages(parts["heldout"], folder / "passages_dev.tsv", DEV_PASSAGES, seed=0)
    return {name: sorted((folder / name).glob("*.txt")) for name in parts}


def write_corpus(chapters: list[Chapter], folder: pathlib.Path) -> None:
    """Writes one text file for each book into `folder`, an empty line between chapters."""
    folder.mkdir(parents=True, exist_ok=True)
    for book in sorted({chapter.book for chapter in chapters}):
        texts = ["\n".join(chapter.paragraphs) for chapter in chapters if chapter.book == book]
        (folder / f"{book}.txt").write_text("\n\n".join(texts) + "\n", encoding="utf-8")


def write_passages(chapters: list[Chapter], file: pathlib.Path, per_author: int, seed: int) -> None:
    """Writes a TSV of `author` and `text`, equally many passages for each author."""
    generator = random.Random(seed)
    lines = ["author\ttext"]
    for author in sorted({chapter.author for chapter in chapters}):
        passages = [text for chapter in chapters if chapter.author == author for text in _passages(chapter)]
        generator.shuffle(passages)
        lines += [f"{author}\t{passage}" for passage in passages[:per_author]]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _passages(chapter: Chapter) -> Iterator[str]:
    """Consecutive sentences, as many as make a passage."""
    passage = ""
    for sentence in split_sentences(" ".join(chapter.paragraphs).replace("\t", " ")):
        passage = f"{passage} {sentence}".strip()
        if len(passage) >= PASSAGE_CHARACTERS:
            yield passage
            passage = ""
