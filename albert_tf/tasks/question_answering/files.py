"""Reads questions about passages in the forms of SQuAD, KorQuAD, KLUE-MRC and XQuAD, nested or a row each."""

import dataclasses
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from albert_tf.data.finetuning.forms import Examples, Form, read_examples, string_of, value_of
from albert_tf.data.finetuning.table_format import TableFormat
from albert_tf.data.finetuning.tables import TableRow
from albert_tf.files.origins import name_of
from albert_tf.tasks.question_answering.questions import Question

Misplaced = Literal["refuse", "drop"]

_CONTEXT, _ANSWER, _ID = ("context", "passage", "paragraph"), ("answers", "answer", "answer_text"), ("id", "guid")
_IMPOSSIBLE = (True, "True", "true", "TRUE", "1")
# Of an answer whose start the file does not give.
_UNKNOWN = -(1 << 62)


def read_questions(
    path: str | Path, misplaced: Misplaced = "refuse", table: TableFormat | None = None
) -> Examples[Question]:
    """Reads questions.

    Args:
        path: a table, see `read_rows`, whose rows are articles of SQuAD 1.1 or 2.0 (as those of KorQuAD 1.0, KLUE-MRC
            and XQuAD), its paragraphs, or questions with `context`, `question` and `answers`. Answers are a dict of the
            lists `text` and `answer_start`, a list of dicts, or texts; where they do not tell their starts, answers are
            searched in their passages, and the first occurrence is taken, as a word of its own if there is one.
        misplaced: what to do if an answer is not in its passage at `answer_start`: refuse the file, or drop the
            position, so that the answer still counts in scores but is not trained on.
        table: TableFormat.

    Raises:
        ValueError: the file is in none of these forms, has no questions, has two questions of one id or an empty
            passage, or an answer is misplaced; the message names the file and the question.
    """
    path = Path(path)
    form, rows = read_examples(path, _FORMS, table or TableFormat(), "question answering")
    questions, seen, wrong, ambiguous = Examples[Question](), set(), [], 0
    known: dict[bool, str] = {}  # where the first question with and without answers, or their absence, is
    for row, question in rows:
        is_known = row.fields.get("is_impossible") in _IMPOSSIBLE or any(name in row.fields for name in _ANSWER)
        known.setdefault(is_known, row.where)
        if len(known) == 2:
            raise ValueError(
                f"{known[False]}: the question has no `answers`, unlike that of {known[True]}; correct it, or give an "
                "empty list if the passage has no answer."
            )
        if question.id in seen:
            raise ValueError(f"{row.where}: the id {question.id!r} is that of an earlier question; give each its own.")
        seen.add(question.id)
        starts = _starts_in_passage(question)
        ambiguous += question.starts[:1] == (_UNKNOWN,) and question.context.count(question.answers[0]) > 1
        if -1 in starts:
            wrong.append(f"{row.where} ({question.answers[starts.index(-1)][:30]!r})")
        questions.append(dataclasses.replace(question, starts=starts))
    if not questions:
        raise ValueError(f"{name_of(path)} has no questions; is it the right file?")
    if wrong and misplaced == "refuse":
        raise ValueError(
            f"{wrong[0]}: the answer is not in its passage at `answer_start`, one of {len(wrong):,} such questions; "
            "correct them, or set `misplaced_answers` to 'drop'."
        )
    searched = f"; {ambiguous:,} answers without a start occur again" if ambiguous else ""
    questions.form = f"{len(questions):,} questions ({form}{searched})"
    return questions


def _of_article(row: TableRow) -> Iterator[tuple[TableRow, Question]]:
    for number, paragraph in enumerate(_list(row, "paragraphs")):
        yield from _of_paragraph(_inner(row, paragraph, f"paragraphs[{number}]"))


def _of_paragraph(row: TableRow) -> Iterator[tuple[TableRow, Question]]:
    context = _context(row)
    for number, content in enumerate(_list(row, "qas")):
        question = _inner(row, content, f"qas[{number}]")
        yield question, _question(question, context)


def _of_row(row: TableRow) -> Iterator[tuple[TableRow, Question]]:
    yield row, _question(row, _context(row), str(row.line - 1))


_FORMS = (
    Form("SQuAD, one row an article", ("paragraphs",), _of_article),
    Form("SQuAD, one row a paragraph", ("|".join(_CONTEXT), "qas"), _of_paragraph),
    Form("SQuAD, one row a question", ("|".join(_CONTEXT), "question", "|".join(_ANSWER)), _of_row),
    Form("questions without answers", ("|".join(_CONTEXT), "question"), _of_row),
)


@dataclasses.dataclass(frozen=True)
class _Inner(TableRow):
    """A part of a row."""

    part: str = ""

    @property
    def where(self) -> str:
        """File, line and part."""
        return f"{super().where}, {self.part}"


def _inner(row: TableRow, fields: Any, part: str) -> _Inner:
    inner = _Inner(row.source, row.line, fields, f"{row.part}.{part}" if isinstance(row, _Inner) else part)
    if not isinstance(fields, Mapping):
        raise ValueError(f"{inner.where}, is not an object; give a file in SQuAD's format.")
    return inner


def _list(row: TableRow, name: str) -> list:
    value = row.fields.get(name)
    if not isinstance(value, list):
        raise ValueError(f"{row.where} has no list {name!r}; give a file in SQuAD's format.")
    return value


def _context(row: TableRow) -> str:
    return _filled(row, "passage", string_of(row, *_CONTEXT))


def _filled(row: TableRow, kind: str, text: str) -> str:
    if not text.strip():
        raise ValueError(f"{row.where}: the {kind} is empty; fill it in or delete it.")
    return text


def _question(row: TableRow, context: str, number: str | None = None) -> Question:
    identifier = value_of(row.fields, *_ID)
    identifier = number if identifier is None else str(identifier)
    if identifier is None:
        raise ValueError(f"{row.where} has no `id`; give each question one.")
    answers = [] if row.fields.get("is_impossible") in _IMPOSSIBLE else _answers(row, value_of(row.fields, *_ANSWER))
    texts, starts = zip(*answers) if answers else ((), ())
    return Question(identifier, _filled(row, "question", string_of(row, "question")), context, texts, starts)


def _answers(row: TableRow, value: Any) -> list[tuple[str, int]]:
    """Text and start of each answer, in whatever form they are."""
    if isinstance(value, list) and all(isinstance(answer, Mapping) for answer in value):
        texts, starts = ([answer.get(name) for answer in value] for name in ("text", "answer_start"))
    elif isinstance(value, Mapping):
        texts, starts = _as_list(value.get("text")), _as_list(value.get("answer_start"))
    else:
        texts, starts = _as_list(value), _as_list(row.fields.get("answer_start"))
    starts = starts or [None] * len(texts)
    if not all(isinstance(text, str) for text in texts) or len(texts) != len(starts):
        raise ValueError(f"{row.where}: answers must be texts, each with a start. Received: {str(value)[:60]}.")
    positions = [_UNKNOWN if start is None else _integer(start) for start in starts]
    if None in positions:
        raise ValueError(f"{row.where}: every answer must have an integer `answer_start`; correct the file.")
    return [(text, start) for text, start in zip(texts, positions) if start is not None]


def _as_list(value: Any) -> list:
    if value is None or value == "":
        return []
    return value if isinstance(value, list) else [value]


def _integer(start: Any) -> int | None:
    """A start as an integer, also from a table of texts; None if it is not one."""
    if isinstance(start, str) and start.strip().isdecimal():
        return int(start)
    if isinstance(start, float) and start.is_integer():  # of a column in which some are missing
        return int(start)
    return start if type(start) is int else None


def _starts_in_passage(question: Question) -> tuple[int, ...]:
    """The starts, -1 for answers that are not in the passage there."""

    def start_of(answer: str, start: int) -> int:
        if start == _UNKNOWN:
            return _search(question.context, answer)
        return start if answer and start >= 0 and question.context.startswith(answer, start) else -1

    return tuple(map(start_of, question.answers, question.starts))


def _search(context: str, answer: str) -> int:
    """Where an answer is in a passage: best as words of its own, then at the start of a word, then anywhere; or -1."""
    if not answer:
        return -1
    text, before = re.escape(answer), r"(?<!\w)" if answer[0].isalnum() else ""
    matches = (re.search(pattern, context) for pattern in (rf"{before}{text}(?!\w)", before + text, text))
    return next((match.start() for match in matches if match), -1)
