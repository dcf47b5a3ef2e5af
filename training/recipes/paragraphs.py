"""Writes books anew, a paragraph a line and an empty line behind it, so that each paragraph is a document.

    python training/recipes/paragraphs.py novels/train/*.txt --output novels/paragraphs/train

Plain text has paragraphs in three forms, told apart by the lines of a file: long lines are paragraphs; else empty lines
stand between them; else all lines are broken at about one width, and a line that ends early ends its paragraph.
"""

import argparse
import itertools
from pathlib import Path

# Characters. Lines are broken at some 70; what is this much shorter than the longest ends early.
_LONG, _EARLY = 120, 15
_ENDS = (".", "!", "?", '"', "'", "”", "’")


def split_paragraphs(text: str) -> list[str]:
    """Returns the paragraphs of a book, each in one line.

    >>> split_paragraphs("A broken\\nline.\\n\\nThe next.\\n")
    ['A broken line.', 'The next.']
    """
    lines = [" ".join(line.split()) for line in text.splitlines()]
    lengths = sorted(len(line) for line in lines if line)
    longest = lengths[int(0.98 * (len(lengths) - 1))] if lengths else 0  # but for a few headings and verses
    if longest > _LONG:
        return [line for line in lines if line]
    if lines.count("") > 0.05 * len(lines):
        groups = itertools.groupby(lines, bool)
        return [" ".join(group) for is_text, group in groups if is_text]
    paragraphs, parts = [], []
    for line in filter(None, lines):
        parts.append(line)
        if len(line) < longest - _EARLY and line.endswith(_ENDS):
            paragraphs.append(" ".join(parts))
            parts = []
    return [*paragraphs, *([" ".join(parts)] if parts else [])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("books", nargs="+", type=Path, help="text files, UTF-8")
    parser.add_argument("--output", required=True, type=Path, help="folder for files of the same names")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    for book in arguments.books:
        paragraphs = split_paragraphs(book.read_text(encoding="utf-8"))
        (arguments.output / book.name).write_text("\n\n".join(paragraphs) + "\n", encoding="utf-8")
        print(f"{book.name}: {len(paragraphs)} paragraphs")


if __name__ == "__main__":
    main()
