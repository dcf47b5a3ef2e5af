"""Rewrites books with one paragraph per line, followed by an empty line, so that each paragraph is a document.

    python training/recipes/paragraphs.py texts/train/*.txt --output novels/paragraphs/train

Three layouts of plain text are detected: one paragraph per line; paragraphs separated by empty lines; and lines wrapped
at a fixed width, where a short line ends a paragraph.
"""

import argparse
import itertools
from pathlib import Path

# In characters. Text is usually wrapped at about 70; a line this much shorter than the longest ends a paragraph.
_MIN_LONG_LINE, _MIN_MISSING = 120, 15
_ENDS = (".", "!", "?", '"', "'", "”", "’")


def split_paragraphs(text: str) -> list[str]:
    """Returns the paragraphs of a book, each as one line.

    >>> split_paragraphs("A broken\\nline.\\n\\nThe next.\\n")
    ['A broken line.', 'The next.']
    """
    lines = [" ".join(line.split()) for line in text.splitlines()]
    lengths = sorted(len(line) for line in lines if line)
    longest = lengths[int(0.98 * (len(lengths) - 1))] if lengths else 0  # except a few headings and verses
    if longest > _MIN_LONG_LINE:
        return [line for line in lines if line]
    if lines.count("") > 0.05 * len(lines):
        groups = itertools.groupby(lines, bool)
        return [" ".join(group) for is_text, group in groups if is_text]
    paragraphs, parts = [], []
    for line in filter(None, lines):
        parts.append(line)
        if len(line) < longest - _MIN_MISSING and line.endswith(_ENDS):
            paragraphs.append(" ".join(parts))
            parts = []
    return [*paragraphs, *([" ".join(parts)] if parts else [])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("books", nargs="+", type=Path, help="UTF-8 text files")
    parser.add_argument("--output", required=True, type=Path, help="folder to write files of the same names to")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    for book in arguments.books:
        paragraphs = split_paragraphs(book.read_text(encoding="utf-8"))
        (arguments.output / book.name).write_text("\n\n".join(paragraphs) + "\n", encoding="utf-8")
        print(f"{book.name}: {len(paragraphs)} paragraphs")


if __name__ == "__main__":
    main()
