"""Reads questions about passages in the forms of SQuAD, KorQuAD, KLUE-MRC and XQuAD, nested or a row each."""

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from albert_tf.data.finetuning.forms import Examples, Form, read_examples, string_of, value_of
from albert_tf.data.finetuning.questions import Question
from albert_tf.data.finetuning.table_format import TableFormat
from albert_tf.data.finetuning.tables import Row

Misplaced = Literal["refuse", "drop"]

_CONTEXT, _ANSWER, _ID = ("context", "passage", "paragraph"), ("answers", "answer", "answer_text"), ("id", "guid")
# Of an answer whose start the file does not give.
_UNKNOWN = -2


def read_questions(
    path: str | Path, misplaced: Misplaced = "refuse", table: TableFormat | None = None
) -> Examples[Question]:
    """Reads questions.

    Args:
        path: a table, see `read_rows`, whose rows are articles of SQuAD 1.1 or 2.0 (as those of KorQuAD 1.0, KLUE-MRC
            and XQuAD), its paragraphs, or questions with `context`, `question` and `answers`. Answers are a dict of the
            lists `text` and `answer_start`, a list of dicts, or texts; where they do not tell their starts, answers are
            searched in their passages, and the first occurrence is taken.
        misplaced: what to do if an answer is not in its passage at `answer_start`: refuse the file, or drop the
            position, so that the answer still counts in scores but is not trained on.
        table: TableFormat.

    Raises:
        ValueError: the file is in none of these forms, has no questions, has two questions of one id or an empty
            passage, or an answer is misplaced; the message names the file and the question.
    """
    path = Path(path)
    form, found = read_examples(path, _FORMS, table or TableFormat(), "question answering")
    questions, seen, wrong, ambiguous = Examples[Question](), set(), [], 0
    for question in found:
        if question.id in seen:
            raise ValueError(f"{path} has two questions with the id {question.id!r}; give each its own.")
        seen.add(question.id)
        starts = _starts_in_passage(question)
        ambiguous += bool(starts) and question.starts[0] == _UNKNOWN and _occurs_again(question, starts[0])
        if -1 in starts:
            wrong.append(f"{question.id} ({question.answers[starts.index(-1)][:30]!r})")
        questions.append(dataclasses.replace(question, starts=starts))
    if not questions:
        raise ValueError(f"{path} has no questions; is it the right file?")
    if wrong and misplaced == "refuse":
        raise ValueError(
            f"{path}: the answers of {len(wrong):,} questions are not in their passages at `answer_start`, as of "
            f"{', '.join(wrong[:3])}; correct them, or set `misplaced_answers` to 'drop'."
        )
    searched = f"; of {ambiguous:,} answers without a start, the first of several occurrences" if ambiguous else ""
    questions.form = f"{len(questions):,} questions ({form}{searched})"
    return questions


def _of_article(row: Row) -> Iterator[Question]:
    for number, paragraph in enumerate(_list(row, "paragraphs")):
        yield from _of_paragraph(_inner(row, paragraph, f"paragraphs[{number}]"))


def _of_paragraph(row: Row) -> Iterator[Question]:
    context = _context(row)
    for number, question in enumerate(_list(row, "qas")):
        yield _question(_inner(row, question, f"qas[{number}]"), context)


def _of_row(row: Row) -> Iterator[Question]:
    yield _question(row, _context(row), str(row.line - 1))


_FORMS = (
    Form("SQuAD, one row an article", ("paragraphs",), _of_article),
    Form("SQuAD, one row a paragraph", ("|".join(_CONTEXT), "qas"), _of_paragraph),
    Form("SQuAD, one row a question", ("|".join(_CONTEXT), "question", "|".join(_ANSWER)), _of_row),
    Form("questions without answers", ("|".join(_CONTEXT), "question"), _of_row),
)


@dataclasses.dataclass(frozen=True)
class _Inner(Row):
    """A part of a row."""

    part: str = ""

    @property
    def where(self) -> str:
        """File, line and part."""
        return f"{super().where}, {self.part}"


def _inner(row: Row, fields: Any, part: str) -> _Inner:
    inner = _Inner(row.source, row.line, fields, f"{row.part}.{part}" if isinstance(row, _Inner) else part)
    if not isinstance(fields, Mapping):
        raise ValueError(f"{inner.where}, is not an object; give a file in SQuAD's format.")
    return inner


def _list(row: Row, name: str) -> list:
    value = row.fields.get(name)
    if not isinstance(value, list):
        raise ValueError(f"{row.where} has no list {name!r}; give a file in SQuAD's format.")
    return value


def _context(row: Row) -> str:
    context = string_of(row, *_CONTEXT)
    if not context.strip():
        raise ValueError(f"{row.where}: the passage is empty; fill it in or delete it.")
    return context


def _question(row: Row, context: str, number: str | None = None) -> Question:
    identifier = value_of(row.fields, *_ID)
    identifier = number if identifier is None else str(identifier)
    if identifier is None:
        raise ValueError(f"{row.where} has no `id`; give each question one.")
    answers = (
        []
        if row.fields.get("is_impossible") in (True, "True", "true")
        else _answers(row, value_of(row.fields, *_ANSWER))
    )
    texts, starts = zip(*answers) if answers else ((), ())
    return Question(identifier, string_of(row, "question"), context, texts, starts)


def _answers(row: Row, value: Any) -> list[tuple[str, int]]:
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
    found = [_UNKNOWN if start is None else _integer(start) for start in starts]
    if None in found:
        raise ValueError(f"{row.where}: every answer must have an integer `answer_start`; correct the file.")
    return [(text, start) for text, start in zip(texts, found) if start is not None]


def _as_list(value: Any) -> list:
    if value is None or value == "":
        return []
    return value if isinstance(value, list) else [value]


def _integer(start: Any) -> int | None:
    """A start as an integer, also from a table of texts; None if it is not one."""
    if isinstance(start, str) and start.strip().isdecimal():
        return int(start)
    return start if type(start) is int else None


def _starts_in_passage(question: Question) -> tuple[int, ...]:
    """The starts, -1 for answers that are not in the passage there."""
    return tuple(
        question.context.find(answer)
        if answer and start == _UNKNOWN
        else start
        if answer and start >= 0 and question.context.startswith(answer, start)
        else -1
        for answer, start in zip(question.answers, question.starts)
    )


def _occurs_again(question: Question, start: int) -> bool:
    return start >= 0 and question.context.find(question.answers[0], start + 1) >= 0
