"""Reads multiple-choice questions in the forms of RACE, SWAG, CommonsenseQA, ARC, OpenBookQA, COPA and their like."""

import collections
import dataclasses
import itertools
import string
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from albert_tf.data.finetuning.forms import Examples, Form, read_examples, value_of
from albert_tf.data.finetuning.table_format import TableFormat
from albert_tf.data.finetuning.tables import TableRow
from albert_tf.files.json import read_json
from albert_tf.files.origins import name_of
from albert_tf.tasks.multiple_choice.choices import ChoiceQuestion

_CURE = "give RACE's files, or rows with `context`, `question`, `choices` and `label`"
_CONTEXT, _CHOICES = ("context", "article", "passage", "flores_passage"), ("choices", "options", "endings")
_LABEL = ("label", "answer", "answerKey", "answer_key", "cop", "correct_answer_num")
# Names of the columns of choices that have one each, before a number.
_NUMBERED = ("ending", "choice", "option", "alternative", "answer", "mc_answer", "sol", "op")
# The questions that a word in COPA's column `question` stands for.
_COPA = {"cause": "What was the cause of this?", "effect": "What happened as a result?"}
_UNKNOWN = -1


def read_choices(path: str | Path, labelled: bool = True, table: TableFormat | None = None) -> Examples[ChoiceQuestion]:
    """Reads multiple-choice questions.

    Args:
        path: a folder of RACE (a JSON file per passage, in subfolders such as `middle` and `high`), or a table, see
            `read_rows`, whose rows are passages of RACE, or questions with `context`, `question`, `choices` and
            `label`, under the names that the published data sets use. The answer is an index from 0, a letter, the name
            of a choice (as `answerKey`) or its text.
        labelled: whether the questions must have labels.
        table: TableFormat; `drop_ragged` leaves out questions with another number of choices than most, with a warning.

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
    questions, counted = _counted(_of_equal_numbers(path, questions, table.drop_ragged))
    form += counted
    questions.form = f"{len(questions):,} questions ({form})"
    return questions


def _of_equal_numbers(path: Path, questions: Examples[ChoiceQuestion], drop_ragged: bool) -> Examples[ChoiceQuestion]:
    """The questions with the most frequent number of choices; raises ValueError if others must not be dropped."""
    first: dict[int, str] = {}
    counts: collections.Counter[int] = collections.Counter()
    for question in questions:
        counts[len(question.choices)] += 1
        first.setdefault(len(question.choices), question.id)
    if len(counts) == 1:
        return questions
    usual, other = (number for number, _ in counts.most_common(2))
    if not drop_ragged:
        raise ValueError(
            f"{first[other]}: {other} choices, but {usual} in {first[usual]}; all questions must have the same number, "
            "unless ragged_rows = 'drop' leaves out those with another number than most."
        )
    left_out = sum(counts.values()) - counts[usual]
    warnings.warn(
        f"{name_of(path)}: {left_out:,} questions were left out, because they have not {usual} choices, as "
        f"{first[other]}.",
        stacklevel=3,
    )
    return Examples(question for question in questions if len(question.choices) == usual)


def _forms(labelled: bool) -> list[Form[ChoiceQuestion]]:
    context, choices = "|".join(_CONTEXT), "|".join(_CHOICES)

    def of(make: Any) -> Any:
        return lambda row: make(row, labelled)

    stem = of(_of_columns(("fact1",), ("question_stem", "question.stem")))
    hellaswag, endings = of(_of_columns(("ctx_a", "ctx"), ("ctx_b",))), of(_of_columns(_CONTEXT, ()))
    return [
        Form("RACE, a row a passage", ("questions", "options", "answers"), of(_of_passage)),
        Form("ARC, as published", ("question.stem", "question.choices"), stem),
        Form("OpenBookQA", ("question_stem", "choices"), stem),
        Form("HellaSwag", ("ctx_a", "endings"), hellaswag),
        Form("HellaSwag", ("ctx", "endings"), hellaswag),
        Form("a row a question", ("question", choices), of(_of_question)),
        Form("SWAG", ("sent1", "sent2", "ending0"), of(_of_columns(("sent1",), ("sent2",)))),
        Form("WinoGrande", ("sentence", "option1", "option2"), of(_of_winogrande)),
        Form("PIQA", ("goal", "sol1", "sol2"), of(_of_columns((), ("goal",)))),
        Form("COPA", ("premise", "question", "choice1|alternative_1"), of(_of_copa)),
        Form("a passage and its endings", (context, f"{choices}|ending0|ending1|ending_0|ending_1"), endings),
        Form("a row a question, a column a choice", ("question", _FIRST), of(_of_question)),
    ]


_FIRST = "|".join([*(f"{name}{gap}{n}" for name in _NUMBERED for gap in ("", "_") for n in "01Aa"), "A", "a"])


def _of_folder(path: Path, labelled: bool) -> Iterator[ChoiceQuestion]:
    for file in sorted(path.rglob("*.txt")):
        row = _Passage(file, 1, read_json(file, cure=_CURE))
        group = "" if file.parent == path else file.parent.name
        yield from (dataclasses.replace(question, group=group) for question in _of_passage(row, labelled))


class _Passage(TableRow):
    """The only object of a file."""

    @property
    def where(self) -> str:
        """The file."""
        return str(self.source)


def _of_passage(row: TableRow, labelled: bool) -> Iterator[ChoiceQuestion]:
    names = ("questions", "options", "answers") if labelled else ("questions", "options")
    fields = [row.fields.get(name) for name in names]
    if not all(isinstance(field, list) for field in fields) or len({len(field or ()) for field in fields}) != 1:
        raise ValueError(
            f"{row.where}: `questions`, `options` and `answers` must be lists of the same length; {_CURE}."
        )
    answers = row.fields.get("answers") or [None] * len(fields[0] or ())
    for number, (question, options, answer) in enumerate(zip(*(field or () for field in fields[:2]), answers)):
        place = f"{row.where}, question {number}"
        yield _checked(row, row.fields.get("article"), question, options, answer, labelled, place)


def _of_question(row: TableRow, labelled: bool) -> Iterator[ChoiceQuestion]:
    context, question = value_of(row.fields, *_CONTEXT), row.fields.get("question")
    yield _checked(row, "" if context is None else context, question, _choices(row), _label(row), labelled)


def _of_columns(
    context: Sequence[str], question: Sequence[str]
) -> Callable[[TableRow, bool], Iterator[ChoiceQuestion]]:
    """Reads rows with these names of the columns of context and question; one that a row has not is empty."""

    def read(row: TableRow, labelled: bool) -> Iterator[ChoiceQuestion]:
        known = [[name for name in names if name in row.fields] for names in (context, question)]
        context_text, question_text = (value_of(row.fields, *names) if names else "" for names in known)
        yield _checked(row, context_text, question_text, _choices(row), _label(row), labelled)

    return read


def _of_copa(row: TableRow, labelled: bool) -> Iterator[ChoiceQuestion]:
    question = row.fields["question"]
    question = _COPA.get(question, question) if isinstance(question, str) else question
    yield _checked(row, row.fields["premise"], question, _choices(row), _label(row), labelled)


def _of_winogrande(row: TableRow, labelled: bool) -> Iterator[ChoiceQuestion]:
    named = {"text": _choices(row), "label": ["1", "2"]}  # from 1
    yield _checked(row, "", row.fields["sentence"], named, _label(row), labelled)


def _label(row: TableRow) -> Any:
    return value_of(row.fields, *_LABEL)


def _choices(row: TableRow) -> Any:
    """The choices of a row: its list, or its columns with a choice each."""
    choices = value_of(row.fields, *_CHOICES, "question.choices")
    return _numbered(row.fields) if choices is None else choices


def _numbered(fields: Mapping[str, Any]) -> Any:
    """The choices of the columns of one kind, and the names of those whose data sets count from 1."""
    letters = [string.ascii_uppercase, string.ascii_lowercase]
    numbers = [[str(n) for n in range(start, 100)] for start in (0, 1)]
    prefixes = ["", *(f"{name}{gap}" for name in _NUMBERED for gap in ("", "_"))]
    for prefix, ends in itertools.product(prefixes, [*letters, *numbers]):
        columns = itertools.takewhile(lambda column: column in fields, (f"{prefix}{end}" for end in ends))
        if prefix + ends[0] in fields and (prefix or not ends[0].isdigit()):
            texts = [fields[column] for column in columns]
            texts = texts[: max((n for n, value in enumerate(texts, 1) if value is not None), default=0)]
            is_from_one = prefix == "mc_answer" or (prefix == "answer" and ends[0] == "A")  # Belebele, SocialIQA
            return {"text": texts, "label": [str(n) for n in range(1, 1 + len(texts))]} if is_from_one else texts
    return []


def _checked(
    row: TableRow, context: Any, question: Any, choices: Any, label: Any, labelled: bool, place: str | None = None
) -> ChoiceQuestion:
    place, (texts, names) = place or row.where, _texts_and_names(choices)
    if not isinstance(context, str) or not isinstance(question, str):
        raise ValueError(f"{place}: passage and question must be strings; {_CURE}.")
    if len(texts) < 2 or not all(isinstance(choice, str) for choice in texts):
        raise ValueError(f"{place}: there must be at least two choices, all of them strings; {_CURE}.")
    index, is_number = _index(place, label, texts, names)
    if index is None and (labelled or label not in (None, "", _UNKNOWN)):
        raise _wrong_answer(place, len(texts), label)
    kind = _Numbered if is_number else ChoiceQuestion
    return kind(place, context, question, tuple(texts), _UNKNOWN if index is None else index, _group_of(row))


class _Numbered(ChoiceQuestion):
    """A question whose answer was given as a number; only the whole file shows whether they count from 0 or from 1."""


def _wrong_answer(place: str, count: int, label: Any) -> ValueError:
    letters = string.ascii_uppercase[:count]
    return ValueError(
        f"{place}: the answer must be a number from 0 to {count - 1}, or a letter from A to {letters[-1]}, "
        f"or one of the choices. Received: {label!r}."
    )


def _counted(questions: Examples[ChoiceQuestion]) -> tuple[Examples[ChoiceQuestion], str]:
    """The questions with answers from 0, and a remark if they were counted from 1.

    They were if all numbers from 1 to that of the choices occur, and no 0.
    """
    labels: set[int] = set()
    beyond: ChoiceQuestion | None = None
    for one in questions:
        if isinstance(one, _Numbered):
            labels.add(one.label)
            beyond = one if beyond is None and one.label == len(one.choices) else beyond
    if beyond is None:
        return questions, ""
    if labels != set(range(1, beyond.label + 1)):
        raise _wrong_answer(beyond.id, len(beyond.choices), beyond.label)
    moved = (dataclasses.replace(one, label=one.label - 1) if isinstance(one, _Numbered) else one for one in questions)
    return Examples(moved), ", answers counted from 1"


def _texts_and_names(choices: Any) -> tuple[list[Any], list[Any]]:
    """Texts of choices and, where they have them, their names, such as "A"."""
    if isinstance(choices, Mapping):
        choices, names = choices.get("text"), choices.get("label")
    elif isinstance(choices, list) and choices and all(isinstance(choice, Mapping) for choice in choices):
        choices, names = ([choice.get(name) for choice in choices] for name in ("text", "label"))
    else:
        names = None
    if not isinstance(choices, Iterable) or isinstance(choices, str):
        return [], []
    return list(choices), list(names or [])


def _index(place: str, label: Any, texts: list[str], names: list[Any]) -> tuple[int | None, bool]:
    """Which choice a label means by its name, text, letter or number, None if none; and whether it is a number."""
    if label in names:
        return names.index(label), False
    matches = {index for index, text in enumerate(texts) if text == label}
    if isinstance(label, str) and len(label) == 1 and label.isascii() and label.isalpha():
        matches |= {string.ascii_uppercase.index(label.upper())} & set(range(len(texts)))
    number = int(label) if _is_number(label) and 0 <= int(label) <= len(texts) else None
    if len(matches | ({number} - {None})) > 1:
        raise ValueError(f"{place}: the answer {label!r} may be a choice or its number; give the names of choices.")
    return (number, True) if number is not None else (min(matches, default=None), False)


def _is_number(label: Any) -> bool:
    """Whether a label is an integer, also as text or, of a column in which some are missing, as a float."""
    if isinstance(label, str):
        return label.strip().isdecimal()
    return type(label) is int or (isinstance(label, float) and label.is_integer())


def _group_of(row: TableRow) -> str:
    """`middle` or `high`, with which names of RACE's passages begin."""
    name = str(value_of(row.fields, "example_id", "id"))
    return next((group for group in ("middle", "high") if name.startswith(group)), "")
