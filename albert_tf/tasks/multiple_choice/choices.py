"""Multiple-choice questions about passages, as in RACE.

Letters: N questions, C choices of each, B batch, L sequence.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from albert_tf.data.finetuning.encoded import EncodedTexts, Inputs, parts_of
from albert_tf.data.finetuning.stored_arrays import gather
from albert_tf.data.finetuning.text_counts import counts_of, report_parts

if TYPE_CHECKING:
    from albert_tf.tokenization import AlbertTokenizer

# Of the end of a question with its choice, as in the reference.
MAX_STATEMENT_LENGTH = 128


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
            return [choice.join(re.split("_+", self.question)) for choice in self.choices]
        return [f"{self.question} {choice}".lstrip() for choice in self.choices]


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

    def batch(self, rows: np.ndarray, multiple: int | None = 8) -> Inputs:
        """The model's inputs for some questions: a dict of int32 [B, C, L], see `EncodedTexts.batch`."""
        rows = (rows[:, None] * self.num_choices + np.arange(self.num_choices)).reshape(-1)
        inputs = self.encoded.batch(rows, multiple)
        return {name: array.reshape(-1, self.num_choices, array.shape[1]) for name, array in inputs.items()}

    def training_batch(self, rows: np.ndarray, multiple: int | None = 8) -> tuple[Inputs, np.ndarray]:
        """Inputs and labels of some questions."""
        return self.batch(rows, multiple), self.labels[rows]


def encode_choices(
    tokenizer: "AlbertTokenizer",
    questions: Sequence[ChoiceQuestion],
    max_length: int = 512,
    max_question_length: int | None = None,
) -> EncodedChoices:
    """Tokenizes each choice as [CLS] passage [SEP] question with choice [SEP].

    Args:
        tokenizer: AlbertTokenizer.
        questions: with the same number of choices; those about one passage should be next to each other.
        max_length: maximum number of ids; longer passages are truncated.
        max_question_length: of longer questions with their choice, only the last ids are kept. None: 128.

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
    longest = min(max_question_length or MAX_STATEMENT_LENGTH, max_length - 4)
    parts = _parts(tokenizer, questions, max_length, longest)
    columns = gather(parts)
    cause = (
        f"did not fit with passage and choice into {max_length} tokens, of which question and choice get {longest}; "
        "parts were left out: raise `max_length` or `max_question_length`"
    )
    report_parts(columns.pop("counts"), "questions", cause)
    encoded = EncodedTexts.take(columns, tokenizer, max_length)
    return EncodedChoices(encoded, columns["labels"], len(questions[0].choices))


def _parts(
    tokenizer: "AlbertTokenizer", questions: Sequence[ChoiceQuestion], max_length: int, longest: int
) -> Iterator[dict[str, np.ndarray]]:
    """Yields the ids of some questions at a time; statements are cut to their last `longest` ids."""
    passages: dict[str, np.ndarray] = {}
    for part in parts_of(questions, lambda question: question.context):
        contexts = dict.fromkeys(question.context for question in part)
        new = [context for context in contexts if context not in passages]
        passages.update(zip(new, tokenizer.encode_batch(new)))
        passages = {context: passages[context] for context in contexts}
        statements = iter(tokenizer.encode_batch([text for question in part for text in question.statements()]))
        cls, sep = (np.array([index], np.int32) for index in (tokenizer.cls_token_id, tokenizer.sep_token_id))
        rows, lengths, is_cut = [], [], []
        for question in part:
            for _ in question.choices:
                whole, context = next(statements), passages[question.context]
                ids = whole[-longest:]
                passage = context[: max_length - 3 - len(ids)]
                rows += [cls, passage, sep, ids, sep]
                lengths.append((len(passage) + 2, len(ids) + 1))
                is_cut.append(len(ids) < len(whole) or len(passage) < len(context))
        shape = len(part), -1
        shortest = np.reshape(lengths, (*shape, 2))[:, :, 1].min(axis=1) - 1  # statement of each question
        yield {
            "ids": np.concatenate(rows),
            "token_types": np.repeat(np.tile(np.array([0, 1], np.int8), len(lengths)), np.ravel(lengths)),
            "lengths": np.array(lengths, np.int32).sum(axis=1, dtype=np.int32),
            "labels": np.array([question.label for question in part], np.int32),
            "counts": counts_of(shortest, np.reshape(is_cut, shape).any(axis=1)),
        }
