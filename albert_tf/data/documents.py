"""Reads text files as a stream of documents: one sentence a line, or running text, with empty lines between documents.

Memory is bounded by one document, and that by 16 MiB: a longer one is continued as the next document.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from albert_tf.text_files import read_lines

MAX_DOCUMENT = 16 * 2**20
# The longest sentence that anyone has published has about 100 kB; ten times that is running text, or no text.
MAX_SENTENCE_BYTES = 2**20
# What a Python string takes besides its characters, so that many short lines do not take more memory than long ones.
_STRING_OVERHEAD = 64

_ONE_SENTENCE_A_LINE = (
    "put one sentence on each line, or set split_sentences=True (--split-sentences) for running text, which is split "
    "after sentence-final punctuation"
)
# Marks that also stand inside numbers and names need a space after them; the CJK ones end a sentence by themselves.
_CLOSERS = "[\"'”’»›」』)\\]]*"
_SENTENCE_END = re.compile(rf"[.!?…]+{_CLOSERS}\s+|[。！？]+{_CLOSERS}\s*")


@dataclass(frozen=True)
class Document:
    """Consecutive sentences.

    Args:
        sentences: at least one, none empty.
        end: bytes of the file up to the end of the document, to tell how far reading is.
    """

    sentences: tuple[str, ...]
    end: int = 0

    @property
    def key(self) -> int:
        """64 bits of a hash of the text: what the document's shard and its random draws depend on."""
        text = "\n".join(self.sentences).encode("utf-8", "surrogatepass")
        return int.from_bytes(blake2b(text, digest_size=8).digest(), "little")


def split_sentences(text: str) -> list[str]:
    """Splits running text after sentence-final punctuation, closing quotes included, in any script.

    The rule knows no language: it also splits after abbreviations, which does the tasks of pretraining no harm.

    Example:

    >>> split_sentences("It rained. “Why?” she said. 비가 왔다. 雨だ。本当？")
    ['It rained.', '“Why?”', 'she said.', '비가 왔다.', '雨だ。', '本当？']
    """
    sentences, start = [], 0
    for match in _SENTENCE_END.finditer(text):
        sentences.append(text[start : match.end()].strip())
        start = match.end()
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if sentence]


def read_documents(path: Path, *, split: bool = False, gap: int = 1) -> Iterator[Document]:
    """Yields the documents of one file.

    Args:
        path: a UTF-8 text file; the start of a file is the start of a document.
        split: lines are running text, wrapped or not: lines between two empty ones are joined, then split by
            `split_sentences`. Otherwise each line is a sentence.
        gap: how many empty lines in a row end a document; 0: only the end of the file does.

    Raises:
        ValueError: the file is not UTF-8, or a line is longer than `MAX_SENTENCE_BYTES` (with `split`, than
            `text_files.MAX_LINE_BYTES`).
    """
    paragraphs: list[list[str]] = [[]]
    size = end = empty = 0
    for line in read_lines(path) if split else read_lines(path, MAX_SENTENCE_BYTES, _ONE_SENTENCE_A_LINE):
        if not line.text:
            empty += 1
            continue
        if paragraphs[0] and (empty >= gap > 0 or size > MAX_DOCUMENT):
            yield Document(_sentences(paragraphs, split), end)
            paragraphs, size = [[]], 0
        elif empty and paragraphs[-1]:
            paragraphs.append([])
        paragraphs[-1].append(line.text)
        size, end, empty = size + len(line.text) + _STRING_OVERHEAD, line.end, 0
    if paragraphs[0]:
        yield Document(_sentences(paragraphs, split), end)


def _sentences(paragraphs: list[list[str]], split: bool) -> tuple[str, ...]:
    if not split:
        return tuple(line for lines in paragraphs for line in lines)
    return tuple(sentence for lines in paragraphs for sentence in split_sentences(" ".join(lines)))
