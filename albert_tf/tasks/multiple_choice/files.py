"""Reads multiple-choice questions: passages of RACE, and rows with a list of choices or a column for each."""

import itertools
import string
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from albert_tf.data.finetuning.forms import Examples, Form, read_examples, value_of
from albert_tf.data.finetuning.table_format import TableFormat
from albert_tf.data.finetuning.tables import TableRow
from albert_tf.files.json import read_json
from albert_tf.files.origins import name_of
from albert_tf.tasks.multiple_choice.choices import ChoiceQuestion

_CURE = (
    "give RACE's files, or rows with `question`, a list of texts `choices` and `label`, or with `question`, a column "
    "for each choice (`choice0`, `choice1`) and `label`; `context` may stand beside them"
)
_CONTEXT, _CHOICES, _LABEL = ("context", "article", "passage"), ("choices", "options"), ("label", "answer")
# The columns that have a choice each, before their numbers.
_NUMBERED = [name + gap for name in ("choice", "ending", "option", "alternative", "answer", "sol") for gap in ("", "_")]
_UNKNOWN = -1


def read_choices(path: str | Path, labelled: bool = True, table: TableFormat | None = None) -> Examples[ChoiceQuestion]:
    """Reads multiple-choice questions.

    Args:
        path: a folder of RACE (a JSON file per passage, in subfolders such as `middle` and `high`), or a table, see
            `read_rows`, whose rows are questions with `context`, `question`, `label` and a list `choices` or columns
            such as `choice0`. The answer is an index from 0, a letter or the text of a choice.
        labelled: whether the questions must have labels.
        table: TableFormat.

    Raises:
        ValueError: there are no questions, they differ in the number of choices, or a file is damaged; the message
            names it.
    """
    path, table = Path(path), table or TableFormat()
    if path.is_dir():
        form, rows = "RACE, a file a passage", _of_folder(path, labelled)
    else:
        form, rows = read_examples(path, _forms(labelled), table, "multiple choice")
    questions = Examples(rows)
    if not questions:
        raise ValueError(f"{name_of(path)} has no questions; {_CURE}.")
    first = questions[0]
    for question in questions:
        if len(question.choices) != len(first.choices):
            raise ValueError(
                f"{question.id}: {len(question.choices)} choices, but {len(first.choices)} in {first.id}; all "
                "questions must have the same number: leave out the others."
            )
    questions.form = f"{len(questions):,} questions ({form})"
    return questions


def _forms(labelled: bool) -> list[Form[ChoiceQuestion]]:
    def read(row: TableRow) -> Iterator[ChoiceQuestion]:
        yield _of_question(row, labelled)

    numbered = "|".join(f"{name}{start}" for name in _NUMBERED for start in (0, 1))
    return [
        Form("a row a question", ("question", "|".join(_CHOICES)), read),
        Form("a row a question, a column a choice", ("question", numbered), read),
    ]


def _of_folder(path: Path, labelled: bool) -> Iterator[ChoiceQuestion]:
    for file in sorted(path.rglob("*.txt")):
        passage = read_json(file, cure=_CURE)
        names = ("questions", "options", "answers") if labelled else ("questions", "options")
        columns = [passage.get(name) for name in names]
        if not all(isinstance(column, list) for column in columns) or len({*map(len, columns)}) != 1:
            raise ValueError(f"{file}: {', '.join(names)} must be lists of the same length; {_CURE}.")
        group = "" if file.parent == path else file.parent.name
        for number, (question, options, *answer) in enumerate(zip(*columns)):
            label = answer[0] if answer else None
            place = f"{file}, question {number}"
            yield _checked(place, passage.get("article"), question, options, label, labelled, group)


def _of_question(row: TableRow, labelled: bool) -> ChoiceQuestion:
    if "premise" in row.fields:  # of COPA, whose `question` is no question
        raise ValueError(f"{row.where}: `premise` is not read; {_CURE}.")
    context, choices = value_of(row.fields, *_CONTEXT), value_of(row.fields, *_CHOICES)
    choices = _numbered(row.fields) if choices is None else choices
    label, name = value_of(row.fields, *_LABEL), str(value_of(row.fields, "example_id", "id"))
    # RACE's passages have names that begin with their group.
    group = next((group for group in ("middle", "high") if name.startswith(group)), "")
    context = "" if context is None else context
    return _checked(row.where, context, row.fields["question"], choices, label, labelled, group)


def _numbered(fields: Mapping[str, Any]) -> list[Any]:
    """The choices of the columns of one kind, up to the last that is not empty."""
    for name, start in itertools.product(_NUMBERED, (0, 1)):
        columns = itertools.takewhile(fields.__contains__, (f"{name}{n}" for n in itertools.count(start)))
        if texts := [fields[column] for column in columns]:
            return texts[: max((n for n, value in enumerate(texts, 1) if value is not None), default=0)]
    return []


def _checked(
    place: str, context: Any, question: Any, choices: Any, label: Any, labelled: bool, group: str
) -> ChoiceQuestion:
    texts = [] if isinstance(choices, str | Mapping) else list(choices or [])
    if not isinstance(context, str) or not isinstance(question, str):
        raise ValueError(f"{place}: passage and question must be strings; {_CURE}.")
    if len(texts) < 2 or not all(isinstance(choice, str) for choice in texts):
        raise ValueError(f"{place}: there must be at least two choices, all of them strings; {_CURE}.")
    index = _index(place, label, texts)
    if index is None and (labelled or label not in (None, "", _UNKNOWN)):
        letters = string.ascii_uppercase[: len(texts)]
        raise ValueError(
            f"{place}: the answer must be a number from 0 to {len(texts) - 1}, or a letter from A to {letters[-1]}, "
            f"or one of the choices. Received: {label!r}."
        )
    return ChoiceQuestion(place, context, question, tuple(texts), _UNKNOWN if index is None else index, group)


def _index(place: str, label: Any, texts: list[str]) -> int | None:
    """Which choice a label means by its text, letter or number; None if none."""
    matches = {index for index, text in enumerate(texts) if text == label}
    if isinstance(label, str) and len(label) == 1 and label.isascii() and label.isalpha():
        matches |= {string.ascii_uppercase.index(label.upper())} & set(range(len(texts)))
    if _is_number(label) and 0 <= int(label) < len(texts):
        matches.add(int(label))
    if len(matches) > 1:
        raise ValueError(f"{place}: the answer {label!r} may be a choice or its number; give its letter.")
    return min(matches, default=None)


def _is_number(label: Any) -> bool:
    """Whether a label is an integer, also as text or, of a column in which some are missing, as a float."""
    if isinstance(label, str):
        return label.strip().isdecimal()
    return type(label) is int or (isinstance(label, float) and label.is_integer())
