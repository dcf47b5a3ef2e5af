"""Reads text files as a stream of documents: one sentence per line, or running text, with blank lines in between.

At most one document is in memory; documents of more than 16 MiB are split.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from albert_tf.files.text import read_lines

MAX_DOCUMENT = 16 * 2**20
# The longest published sentences have about 100 kB.
MAX_SENTENCE_BYTES = 2**20
# Bytes of a Python string object besides its characters.
_STRING_OVERHEAD = 64

_LONG_LINE_CURE = (
    "put one sentence on each line, or set split_sentences=True (--split-sentences) for running text, which is split "
    "after sentence-final punctuation"
)
# Latin marks also occur inside numbers and names, so they need a space after them; CJK marks do not.
_CLOSERS = "[\"'”’»›」』)\\]]*"
_SENTENCE_END = re.compile(rf"[.!?…]+{_CLOSERS}\s+|[。！？]+{_CLOSERS}\s*")


@dataclass(frozen=True)
class Document:
    """Consecutive sentences.

    Args:
        sentences: at least one, none empty.
        end: offset in the file of the end of the document, in bytes, for progress reports.
    """

    sentences: tuple[str, ...]
    end: int = 0

    @property
    def key(self) -> int:
        """64-bit hash of the text, which determines the document's shard and its random draws."""
        text = "\n".join(self.sentences).encode("utf-8", "surrogatepass")
        return int.from_bytes(blake2b(text, digest_size=8).digest(), "little")


def split_sentences(text: str) -> list[str]:
    """Splits running text after sentence-final punctuation and closing quotes.

    The rule is the same for all languages: it also splits after abbreviations, which does no harm in pretraining.

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
        path: a UTF-8 text file.
        split: whether lines are running text: the lines of a paragraph are joined, then split by `split_sentences`.
            Otherwise each line is a sentence.
        gap: number of consecutive blank lines that end a document; 0: only the end of the file does.

    Raises:
        ValueError: the file is not UTF-8, or a line is longer than `MAX_SENTENCE_BYTES` (with `split`,
            `files.text.MAX_LINE_BYTES`).
    """
    paragraphs: list[list[str]] = [[]]
    size = end = empty = 0
    for line in read_lines(path) if split else read_lines(path, MAX_SENTENCE_BYTES, _LONG_LINE_CURE):
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
