"""Reads tagged texts: rows of words and tags or of labelled spans, and files with a word or a character a line."""

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from albert_tf.data.finetuning.forms import Examples, Form, read_examples, string_of, value_of
from albert_tf.data.finetuning.table_format import TableFormat
from albert_tf.data.finetuning.tables import TableRow, check_exists, is_table, listed, read_rows
from albert_tf.files.encodings import text_lines
from albert_tf.files.origins import name_of, where
from albert_tf.metrics.entities import find_entities
from albert_tf.tasks.token_classification.tagged import OUTSIDE, TAG, TaggedText

_WORDS, _TAGS = ("words", "tokens"), ("tags", "ner_tags", "labels", "pos_tags", "upos")
_SPANS = ("spans", "entities", "ents", "label", "labels")
# Tags of other styles, which would be taken for labels; and names of columns in a header.
_MISWRITTEN = re.compile("[BIESLUM]([_:].*)?|.*[-_][BIESLUM]")
_HEADERS = ("tag", "tags", "label", "labels", "ner", "ner_tag", "ner_tags", "entity")
# Numbers of words in CoNLL-U, and those of contractions and of words that are not in the text.
_NUMBER, _NO_WORD = re.compile(r"\d+([-.]\d+)?"), re.compile(r"\d+[-.]\d+")
# In a last column of flags of spaces, or of references.
_NO_TAG, _OUTSIDE_MARKS = re.compile(r"SpaceAfter=\w+|(?!\d+$)[\W\d_]+"), {"-", "_"}
_ROWS_TO_LOOK_AT = 1000
_START, _END = ("start", "start_offset"), ("end", "end_offset")
_CURE = "give CoNLL's columns (.conll, .tsv, .txt), or JSON lines with `text` and `spans`, or `words` and `tags`"


def read_tagged(
    path: str | Path, labelled: bool = True, table: TableFormat | None = None, names: Sequence[str] | None = None
) -> Examples[TaggedText]:
    r"""Reads tagged texts.

    Args:
        path: a table of JSON or Parquet, see `read_rows`: rows with `words` and `tags` (or `tokens` and `ner_tags`),
            which are names or indices into `names`; or with `text` and `spans`, as Prodigy, doccano and spaCy write
            them, in characters. Any other suffix: a word per line, its tag in the last column; columns are separated by
            tabs, or by spaces in lines without tabs; an empty line ends a text; lines with "-DOCSTART-", and comments
            in front of a text, which begin with "# ", are skipped. Of CoNLL-U, words and UPOS are read. Where the words
            are single characters, and some are spaces, as in KLUE-NER, entities are spans of characters.
        labelled: whether the file must have labels. Otherwise they are ignored and may be missing, and `.txt` has a
            text per line.
        table: TableFormat; its encoding counts for all files.
        names: the tags in order, for files that number them.

    Raises:
        ValueError: the file has no texts, or is damaged; the message names the line.
    """
    path, table, tags = Path(path), table or TableFormat(), _Tags(names)
    left_out: list[str] = []
    check_exists(path, _CURE)
    if is_table(path) and path.suffix.lower() != ".tsv":
        forms = _forms(labelled, tags, left_out, _has_characters(path, table))
        form, rows = read_examples(path, forms, table, "token classification")
    elif not labelled and path.suffix.lower() == ".txt":
        lines = enumerate(text_lines(path, table.encoding), start=1)
        form, rows = "a text a line", (TaggedText(where(path, n), line.strip()) for n, line in lines if line.strip())
    else:
        lines = _Lines(path, table, labelled)
        form, rows = lines.form, lines.texts(tags)
    texts = Examples(rows)
    if not texts or (labelled and not any(text.text.strip() for text in texts)):
        raise ValueError(f"{name_of(path)} has no texts{', only empty ones' if texts else ''}; {_CURE}.")
    if tags.are_of_entities:
        texts = Examples(map(_prefixed, texts))
    left = f"; {len(left_out):,} left out that were not accepted, as {left_out[0]}" if left_out else ""
    texts.form = f"{len(texts):,} texts ({form}{left})"
    return texts


class _Tags:
    """Tags as they are written; it knows whether they have prefixes.

    Args:
        names: the tags in order, for files that number them.
    """

    def __init__(self, names: Sequence[str] | None = None):
        self._names = names
        self._first: dict[bool, tuple[str, str]] = {}  # the first tag with a prefix, and without one, and their places
        self._has_outside = False

    def name(self, place: str, tag: Any) -> str:
        """The name of a tag; raises ValueError, which begins with its place, if it is none."""
        if not isinstance(tag, str):
            tag = self._of_number(place, tag)
        if tag == OUTSIDE:
            self._has_outside = True
            return tag
        has_prefix = TAG.fullmatch(tag) is not None
        if not has_prefix and _MISWRITTEN.fullmatch(tag):
            raise ValueError(f"{place}: the tag {tag!r} must be written as B-label, I-label or O; convert the tags.")
        if tag.lower() in _HEADERS and not self._first:
            raise ValueError(f"{place}: {tag!r} is the name of a column, not a tag; delete the line.")
        self._first.setdefault(has_prefix, (tag, place))
        if len(self._first) == 2:
            (bare, first), (prefixed, second) = self._first[False], self._first[True]
            raise ValueError(f"{first}: the tag {bare!r} has no prefix, unlike {prefixed!r} of {second}; correct it.")
        return tag

    @property
    def are_of_entities(self) -> bool:
        """Whether tags are labels of entities without prefixes, beside O; without O they are parts of speech."""
        return False in self._first and self._has_outside

    def _of_number(self, place: str, tag: Any) -> str:
        if type(tag) is not int:
            raise ValueError(f"{place}: a tag must be a name or a number. Received: {tag!r}.")
        if self._names is None:
            raise ValueError(
                f"{place}: the tags are numbers; set `labels` to their names in order "
                """(--set 'labels=["O", "B-PER", ...]')."""
            )
        if not 0 <= tag < len(self._names):
            raise ValueError(f"{place}: the tag {tag} is not the number of one of {listed(self._names)}, from 0.")
        return self._names[tag]


def _prefixed(text: TaggedText) -> TaggedText:
    """A text with B- and I- before its labels; neighbours of the same label are one entity."""
    pairs = zip((OUTSIDE, *text.tags), text.tags)
    tags = (tag if tag == OUTSIDE else f"{'I' if tag == old else 'B'}-{tag}" for old, tag in pairs)
    return dataclasses.replace(text, tags=tuple(tags))


def _forms(labelled: bool, tags: _Tags, left_out: list[str], has_characters: bool) -> list[Form[TaggedText]]:
    # Prodigy and Label Studio leave out spans where there are none.
    words, spans = "|".join(_WORDS), "|".join([*_SPANS, "_input_hash", "annotation_id"])

    def accepted(make: Callable[[TableRow], TaggedText]) -> Callable[[TableRow], Iterator[TaggedText]]:
        def read(row: TableRow) -> Iterator[TaggedText]:
            if row.is_rejected or (labelled and row.is_annotated is False):
                left_out.append(row.where)
            else:
                yield make(row)

        return read

    def of_words(row: TableRow) -> TaggedText:
        place, tokens, values = row.where, value_of(row.fields, *_WORDS), value_of(row.fields, *_TAGS)
        if not labelled:
            if "text" in row.fields and not _are_strings(tokens):  # such as Prodigy's, whose tokens are objects
                return _of_spans(row, [])
            values = [OUTSIDE] * len(tokens if isinstance(tokens, list) else ())
        if not _are_strings(tokens) or not isinstance(values, list) or len(tokens) != len(values) or not tokens:
            raise ValueError(f"{place}: `words` and `tags` must be lists of strings of the same length; {_CURE}.")
        names = [tags.name(f"{place}, tags[{index}]", value) for index, value in enumerate(values)]
        return (_of_characters if has_characters else _joined)(place, tokens, names)

    def of_spans(row: TableRow) -> TaggedText:
        return _of_spans(row, value_of(row.fields, *_SPANS) or [])

    if not labelled:
        return [Form("texts or words", (f"text|{words}",), accepted(of_words))]
    return [
        Form(f"{'characters' if has_characters else 'words'} and tags", (words, "|".join(_TAGS)), accepted(of_words)),
        Form("texts and labelled spans", ("text", spans), accepted(of_spans)),
    ]


def _has_characters(path: Path, table: TableFormat) -> bool:
    """Whether the tokens of rows are characters, among them spaces, as those of KLUE-NER are."""
    tokens = (value_of(row.fields, *_WORDS) for row in itertools.islice(read_rows(path, table), _ROWS_TO_LOOK_AT))
    lists = [row for row in tokens if _are_strings(row)]
    return any(" " in row for row in lists) and all(len(token) == 1 for row in lists for token in row)


def _are_strings(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _joined(place: str, words: Sequence[str], tags: Sequence[str]) -> TaggedText:
    """A text of words with spaces between them."""
    ends = np.cumsum([len(word) + 1 for word in words]) - 1
    spans = tuple((int(end) - len(word), int(end)) for word, end in zip(words, ends))
    return TaggedText(place, " ".join(words), spans, tuple(tags))


def _of_characters(place: str, characters: Sequence[str], tags: Sequence[str]) -> TaggedText:
    """A text of characters, whose entities are spans."""
    spans = tuple((start, end, label) for label, start, end in find_entities(tags))
    return TaggedText(place, "".join(characters), spans=spans)


def _of_spans(row: TableRow, values: Any) -> TaggedText:
    text = string_of(row, "text")
    if not isinstance(values, list):
        raise ValueError(f"{row.where}: `text` must be a string and `spans` a list of spans; {_CURE}.")
    spans: list[tuple[int, int, str]] = []
    for start, end, label in sorted(_span(row.where, value) for value in values):
        if not 0 <= start < end <= len(text):
            raise ValueError(
                f"{row.where}: the span from {start} to {end} is not in the text of {len(text)} characters; correct it."
            )
        if spans and start < spans[-1][1]:
            raise ValueError(f"{row.where}: the spans {spans[-1][:2]} and {(start, end)} overlap; keep one of them.")
        spans.append((start, end, label))
    return TaggedText(row.where, text, spans=tuple(spans))


def _span(place: str, value: Any) -> tuple[int, int, str]:
    """Start, end and label of a span: an object, or a list of the three."""
    parts: list[Any] = list(value) if isinstance(value, list | tuple) else []
    if isinstance(value, Mapping):
        label = value_of(value, "label", "labels")  # Label Studio has a list
        label = label[0] if isinstance(label, list) and len(label) == 1 else label
        parts = [value_of(value, *_START), value_of(value, *_END), label]
    if [type(part) for part in parts] != [int, int, str] or not parts[2]:
        raise ValueError(
            f"{place}: a span must have integers `start` and `end` and a `label`, by its name. Received: {value}."
        )
    return parts[0], parts[1], str(parts[2])


class _Lines:
    """A file with a word and its tag, or a character and its tag, in each line.

    Args:
        path: the file.
        table: TableFormat.
        labelled: as for `read_tagged`.
    """

    def __init__(self, path: Path, table: TableFormat, labelled: bool):
        self._path, self._table, self._labelled = path, table, labelled
        first = list(itertools.islice(self._lines(), _ROWS_TO_LOOK_AT))
        # A space is no word of other files.
        self._is_characters = any(line.startswith(" \t") for line in first)
        rows = [_fields(line) for line in first if line.strip() and not line.startswith(("#", "-DOCSTART-"))]
        self._is_conllu = bool(rows) and all(len(row) == 10 and _NUMBER.fullmatch(row[0]) for row in rows)
        self._comment = "#" if self._is_conllu else "# "
        self._columns = 2 if self._is_characters else len(rows[0]) if rows else 0
        self.form = f"a word a line, {self._columns} columns"
        last = {row[-1] for row in rows if len(row) > 1}
        if labelled and not self._is_conllu and last - _OUTSIDE_MARKS and all(map(_NO_TAG.fullmatch, last)):
            raise ValueError(
                f"{path} has no tags in the last column, but {listed(sorted(last))}, such as flags of spaces; remove "
                "it, so that the tag of each word is in the last column."
            )
        if self._is_conllu:
            self.form = "CoNLL-U, words and UPOS"
        elif self._is_characters:
            self.form = "a character a line, as in KLUE-NER"
        elif self._columns > 2 and len(rows) > 1 and [row[0] for row in rows[:4]] == list("1234")[: len(rows)]:
            raise ValueError(f"{path} numbers its words in the first column; remove it, and keep the word and its tag.")

    def texts(self, tags: _Tags) -> Iterator[TaggedText]:
        """The texts of the file."""
        make = _of_characters if self._is_characters else _joined
        words: list[str] = []
        names: list[str] = []
        place = ""
        for number, line in enumerate(itertools.chain(self._lines(), [""]), start=1):
            if self._ends_text(line):
                if words:
                    yield make(place, words, names)
                words, names = [], []
            elif unit := self._unit(number, line, bool(words)):
                here = where(self._path, number)
                place = place if words else here
                words.append(unit[0])
                names.append(tags.name(here, unit[1]))

    def _lines(self) -> Iterator[str]:
        return (line.rstrip("\r\n") for line in text_lines(self._path, self._table.encoding))

    def _ends_text(self, line: str) -> bool:
        if self._is_characters:
            return not line or line.startswith(("## ", "##\t"))
        return not line.strip() or line.startswith("-DOCSTART-")

    def _unit(self, number: int, line: str, is_inside: bool) -> tuple[str, str] | None:
        """The word or character of a line and its tag; None for a comment."""
        if line.startswith(self._comment) and not is_inside:
            return None
        fields = line.split("\t") if self._is_characters else _fields(line)
        if self._columns and len(fields) != self._columns:
            raise ValueError(
                f"{where(self._path, number)}, has {len(fields)} columns, but those before have {self._columns}; "
                "correct the line."
            )
        if self._is_conllu:
            if _NO_WORD.fullmatch(fields[0]):
                return None
            fields = [fields[1], fields[3]]
        word = fields[0] if self._is_characters else fields[0].strip(" ")
        if not word or (self._labelled and (len(fields) < 2 or not fields[-1].strip())):
            raise ValueError(
                f"{where(self._path, number)}: a word and its tag are expected. Received: {line[:40]!r}; {_CURE}."
            )
        return word, fields[-1].strip() if self._labelled else OUTSIDE


def _fields(line: str) -> list[str]:
    line = line.strip(" \t")
    return line.split("\t") if "\t" in line else re.split(" +", line)
