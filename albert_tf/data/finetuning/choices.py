"""Multiple-choice questions about passages, as in RACE.

Letters: N questions, C choices of each, B batch, L sequence.
"""

import re
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from albert_tf.data.finetuning.encoded import EncodedTexts, Inputs, parts_of
from albert_tf.data.finetuning.stored_arrays import gather
from albert_tf.data.finetuning.stored_rows import StoredRows
from albert_tf.data.finetuning.tables import read_objects
from albert_tf.files.json import read_json

if TYPE_CHECKING:
    from albert_tf.tokenization import AlbertTokenizer

# Of the end of a question with its choice, as in the reference.
MAX_STATEMENT_LENGTH = 128
_CURE = "give RACE's files, or JSON lines with `context`, `question`, `choices` and `label`"


@dataclass(frozen=True)
class ChoiceQuestion:
    """A question with several answers of which one is right.

    Attributes:
        id: file or line, and number.
        context: the passage.
        question: with "_", or several in a row, where the answer belongs, or a question before the answer.
        choices: the C answers.
        label: index of the right one, -1 if it is unknown.
        group: such as "middle" or "high" in RACE; "" if there are no groups.
    """

    id: str
    context: str
    question: str
    choices: tuple[str, ...]
    label: int
    group: str = ""

    def statements(self) -> list[str]:
        """The question with each of its choices."""
        if "_" in self.question:
            return [re.sub("_+", lambda _, choice=choice: choice, self.question) for choice in self.choices]
        return [f"{self.question} {choice}" for choice in self.choices]


def read_choices(path: str | Path, labelled: bool = True) -> StoredRows[ChoiceQuestion]:
    """Reads multiple-choice questions.

    Args:
        path: a folder of RACE (a JSON file per passage, in subfolders such as `middle` and `high`), or a `.jsonl` file
            in which a line is a passage of RACE, or a question with `context`, `question`, `choices` and `label`.
        labelled: whether the questions of a `.jsonl` file must have labels.

    Raises:
        ValueError: there are no questions, they differ in the number of choices, or a file is damaged; the message
            names it.
    """
    path, questions, first = Path(path), StoredRows[ChoiceQuestion](), None
    for question in _of_folder(path) if path.is_dir() else _of_lines(path, labelled):
        first = first or question
        if len(question.choices) != len(first.choices):
            raise ValueError(
                f"{question.id}: {len(question.choices)} choices, but {len(first.choices)} in {first.id}; all "
                "questions must have the same number."
            )
        questions.append(question)
    if not questions:
        raise ValueError(f"{path} has no questions; {_CURE}.")
    return questions


def _of_folder(path: Path) -> Iterator[ChoiceQuestion]:
    for file in sorted(path.rglob("*.txt")):
        passage = read_json(file, cure=_CURE)
        yield from _of_passage(passage, str(file), "" if file.parent == path else file.parent.name)


def _of_lines(path: Path, labelled: bool) -> Iterator[ChoiceQuestion]:
    for row in read_objects(path, _CURE):
        where, content = row.where, row.fields
        if "options" in content and "questions" in content:
            yield from _of_passage(content, where, _group_of(content))
        else:
            yield _of_question(content, where, labelled)


def _of_question(content: Mapping[str, Any], where: str, labelled: bool) -> ChoiceQuestion:
    context = content.get("context", content.get("article"))
    question, choices = content.get("question"), content.get("choices", content.get("options"))
    label = content.get("label", content.get("answer"))
    is_unknown = label is None and not labelled
    checked = _checked(where, context, question, choices, 0 if is_unknown else label, _group_of(content))
    return replace(checked, label=-1) if is_unknown else checked


def _of_passage(content: Mapping[str, Any], where: str, group: str) -> Iterator[ChoiceQuestion]:
    fields = [content.get(name) for name in ("questions", "options", "answers")]
    if not all(isinstance(field, list) for field in fields) or len({len(field or ()) for field in fields}) != 1:
        raise ValueError(f"{where}: `questions`, `options` and `answers` must be lists of the same length; {_CURE}.")
    for number, (question, choices, answer) in enumerate(zip(*(field or () for field in fields))):
        yield _checked(f"{where}, question {number}", content.get("article"), question, choices, answer, group)


def _checked(where: str, context: Any, question: Any, choices: Any, label: Any, group: str) -> ChoiceQuestion:
    if not isinstance(context, str) or not isinstance(question, str):
        raise ValueError(f"{where}: passage and question must be strings; {_CURE}.")
    if not isinstance(choices, list) or len(choices) < 2 or not all(isinstance(choice, str) for choice in choices):
        raise ValueError(f"{where}: there must be at least two choices, all of them strings; {_CURE}.")
    letters = string.ascii_uppercase[: len(choices)]
    index = letters.find(label.upper()) if isinstance(label, str) and len(label) == 1 else label
    if type(index) is not int or not 0 <= index < len(choices):
        raise ValueError(
            f"{where}: the answer must be a number from 0 to {len(choices) - 1}, or a letter from A to {letters[-1]}. "
            f"Received: {label!r}."
        )
    return ChoiceQuestion(where, context, question, tuple(choices), index, group)


def _group_of(content: Mapping[str, Any]) -> str:
    """`middle` or `high`, with which names of RACE's passages begin."""
    name = str(content.get("example_id", content.get("id", "")))
    return next((group for group in ("middle", "high") if name.startswith(group)), "")


@dataclass(frozen=True)
class EncodedChoices:
    """Tokenized questions.

    Attributes:
        encoded: EncodedTexts of N times C rows, the choices of a question next to each other.
        labels: int32 [N].
        num_choices: C.
    """

    encoded: EncodedTexts
    labels: np.ndarray
    num_choices: int

    @property
    def lengths(self) -> np.ndarray:
        """Number of ids of the longest choice of each question: int32 [N]."""
        return self.encoded.lengths.reshape(-1, self.num_choices).max(axis=1)

    def batch(self, rows: np.ndarray, multiple: int = 8) -> Inputs:
        """The model's inputs for some questions: a dict of int32 [B, C, L], see `EncodedTexts.batch`."""
        rows = (rows[:, None] * self.num_choices + np.arange(self.num_choices)).reshape(-1)
        inputs = self.encoded.batch(rows, multiple)
        return {name: array.reshape(-1, self.num_choices, array.shape[1]) for name, array in inputs.items()}

    def training_batch(self, rows: np.ndarray) -> tuple[Inputs, np.ndarray]:
        """Inputs and labels of some questions."""
        return self.batch(rows), self.labels[rows]


def encode_choices(
    tokenizer: "AlbertTokenizer",
    questions: Sequence[ChoiceQuestion],
    max_length: int = 512,
    max_question_length: int = MAX_STATEMENT_LENGTH,
    folder: Path | None = None,
) -> EncodedChoices:
    """Tokenizes each choice as [CLS] passage [SEP] question with choice [SEP].

    Args:
        tokenizer: AlbertTokenizer.
        questions: with the same number of choices; those about one passage should be next to each other.
        max_length: maximum number of ids; longer passages are truncated.
        max_question_length: of longer questions with their choice, only the last ids are kept.
        folder: as in `gather`.

    Raises:
        ValueError: `max_length` leaves no space.

    References:
        `convert_examples_to_features` in race_utils.py of google-research/albert.
    """
    if max_length < 5:
        raise ValueError(
            f"`max_length` must be at least 5 for a passage and a choice with [CLS], [SEP] and [SEP]. Received: "
            f"max_length={max_length}."
        )
    longest = min(max_question_length, max_length - 4)
    parts = _parts(tokenizer, questions, max_length, longest)
    rows = ((question.context, question.question, question.choices, question.label) for question in questions)
    found = gather(parts, folder, [rows], [tokenizer.vocab_hash, max_length, longest])
    labels = np.concatenate(found["labels"])
    return EncodedChoices(EncodedTexts.take(found, tokenizer, max_length), labels, len(questions[0].choices))


def _parts(
    tokenizer: "AlbertTokenizer", questions: Sequence[ChoiceQuestion], max_length: int, longest: int
) -> Iterator[dict[str, np.ndarray]]:
    """Yields the ids of some questions at a time; statements are cut to their last `longest` ids."""
    passages: dict[str, np.ndarray] = {}
    for part in parts_of(questions, lambda question: question.context):
        own = dict.fromkeys(question.context for question in part)
        new = [context for context in own if context not in passages]
        passages.update(zip(new, tokenizer.encode_batch(new)))
        passages = {context: passages[context] for context in own}
        statements = iter(tokenizer.encode_batch([text for question in part for text in question.statements()]))
        cls, sep = (np.array([index], np.int32) for index in (tokenizer.cls_token_id, tokenizer.sep_token_id))
        rows, lengths = [], []
        for question in part:
            for _ in question.choices:
                ids = next(statements)[-longest:]
                passage = passages[question.context][: max_length - 3 - len(ids)]
                rows += [cls, passage, sep, ids, sep]
                lengths.append((len(passage) + 2, len(ids) + 1))
        yield {
            "ids": np.concatenate(rows),
            "token_types": np.repeat(np.tile(np.array([0, 1], np.int8), len(lengths)), np.ravel(lengths)),
            "lengths": np.array(lengths, np.int32).sum(axis=1, dtype=np.int32),
            "labels": np.array([question.label for question in part], np.int32),
        }
