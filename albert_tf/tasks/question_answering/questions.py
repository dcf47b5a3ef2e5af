"""Questions about passages, and the windows in which a model reads them.

Letters: Q questions, W windows, N tokens of a passage.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from albert_tf.data.finetuning.encoded import (
    EncodedTexts,
    Inputs,
    best_windows,
    encode_with_spans,
    flat_rows,
    parts_of,
    window_stride,
)
from albert_tf.data.finetuning.stored_arrays import Ragged, gather
from albert_tf.data.finetuning.text_counts import counts_of, report_parts
from albert_tf.tokenization.batching import BatchLayout, choose_windows
from albert_tf.tokenization.spans import find_tokens

if TYPE_CHECKING:
    from albert_tf.tokenization import AlbertTokenizer

_MAX_QUESTION_LENGTH = 64


@dataclass(frozen=True)
class Question:
    """A question about a passage.

    Attributes:
        id: unique in its file.
        text: the question.
        context: the passage.
        answers: the accepted answers; none if the passage has no answer, or the file does not tell.
        starts: index in `context` of the first character of each answer; -1 if the answer is not there.
    """

    id: str
    text: str
    context: str
    answers: tuple[str, ...] = ()
    starts: tuple[int, ...] = ()


@dataclass(frozen=True)
class QuestionWindows:
    """Questions with parts of their passages that fit into a model: [CLS] question [SEP] part [SEP].

    Attributes:
        questions: the Q questions.
        encoded: EncodedTexts of the W windows, those of one question next to each other.
        question: index of the question of each window, int32 [W].
        position: position in the window of the first token of the passage, int32 [W].
        start: which token of the passage this is, int32 [W].
        count: number of tokens of the passage in the window, int32 [W].
        spans: for each question, start and exclusive end of the tokens of its passage in characters, int32 [N, 2].
    """

    questions: Sequence[Question]
    encoded: EncodedTexts
    question: np.ndarray
    position: np.ndarray
    start: np.ndarray
    count: np.ndarray
    spans: Ragged

    def __len__(self) -> int:
        return len(self.question)

    @property
    def lengths(self) -> np.ndarray:
        """Number of ids of each window."""
        return self.encoded.lengths

    def best_windows(self, question: int) -> tuple[slice, np.ndarray]:
        """The windows of a question, and for each token of its passage the one that shows most of its surroundings.

        Returns:
            A slice of W, and the index in this slice, int [N].
        """
        windows = slice(*np.searchsorted(self.question, [question, question + 1]).tolist())
        return windows, best_windows(len(self.spans[question]), self.start[windows], self.count[windows])

    def labels(self) -> dict[str, np.ndarray]:
        """Labels for training: `start_positions`, `end_positions` and `is_impossible`, int32 [W].

        A window without the whole first answer of its question is impossible, with both positions 0.
        """
        starts, ends = np.zeros([2, len(self)], np.int32)
        edges = np.searchsorted(self.question, np.arange(len(self.questions) + 1))
        for question, spans, (begin, end) in zip(self.questions, self.spans, itertools.pairwise(edges)):
            if not question.answers or question.starts[0] < 0:
                continue
            tokens = find_tokens(spans, question.starts[0], question.starts[0] + len(question.answers[0]))
            for window in range(begin, end):
                first, last = tokens.start - self.start[window], tokens.stop - 1 - self.start[window]
                if first >= 0 and last < self.count[window]:
                    starts[window], ends[window] = self.position[window] + first, self.position[window] + last
        return {"start_positions": starts, "end_positions": ends, "is_impossible": (starts == 0).astype(np.int32)}

    def batch(self, rows: np.ndarray, multiple: int | None = 8) -> Inputs:
        """The model's inputs for some windows, as `EncodedTexts.batch`, with `p_mask`: 1 where no answer can be."""
        inputs = self.encoded.batch(rows, multiple)
        index = np.arange(inputs["input_ids"].shape[1])
        position, count = self.position[rows, None], self.count[rows, None]
        is_open = (index == 0) | ((index >= position) & (index < position + count))
        return {**inputs, "p_mask": (~is_open).astype(np.int32)}


def question_length(max_length: int, max_question_length: int | None) -> int:
    """How many ids of a question are read: 64 by default, and at most half a window."""
    return max_question_length or max(1, min(_MAX_QUESTION_LENGTH, max_length // 2, max_length - 4))


def encode_questions(
    tokenizer: "AlbertTokenizer",
    questions: Sequence[Question],
    max_length: int = 384,
    doc_stride: int | None = None,
    max_question_length: int | None = None,
) -> QuestionWindows:
    """Tokenizes questions and passages, and splits passages into windows.

    Args:
        tokenizer: AlbertTokenizer.
        questions: the questions; those about one passage should be next to each other.
        max_length: maximum number of ids of a window.
        doc_stride: distance in tokens of the starts of two windows. None: 128, or a third of `max_length` if that is
            less.
        max_question_length: longer questions are cut to this number of ids. None: see `question_length`.

    Raises:
        ValueError: `max_length` leaves no room for a passage beside a question, or a question or passage has no tokens.

    References:
        `convert_examples_to_features` in squad_utils.py of google-research/albert.
    """
    if max_length < 5:
        raise ValueError(
            f"`max_length` must be at least 5 for a question and a passage with [CLS], [SEP] and [SEP]. Received: "
            f"max_length={max_length}."
        )
    stride = window_stride(max_length, doc_stride)
    max_question_length = question_length(max_length, max_question_length)
    parts = _parts(tokenizer, questions, BatchLayout(max_length, doc_stride=stride), max_question_length)
    columns = gather(parts)
    cause = f"had more than {max_question_length} tokens, and their ends were left out; raise `max_question_length`"
    report_parts(columns.pop("counts"), "questions", cause)
    encoded = EncodedTexts.take(columns, tokenizer, max_length)
    spans = Ragged(columns.pop("spans").reshape(-1, 2), columns.pop("span_starts"), columns.pop("span_lengths"))
    return QuestionWindows(questions, encoded, spans=spans, **columns)


def _parts(
    tokenizer: "AlbertTokenizer", questions: Sequence[Question], layout: BatchLayout, max_question_length: int
) -> Iterator[dict[str, np.ndarray]]:
    """Yields the windows of some questions at a time, the spans of their passages, and which are each question's."""
    passages: dict[str, tuple[np.ndarray, int]] = {}  # ids, and where its spans begin
    num_questions = num_spans = 0
    for part in parts_of(questions, lambda question: question.context):
        whole = tokenizer.encode_batch([question.text for question in part])
        asked = [ids[:max_question_length] for ids in whole]
        if empty := next((one for one, ids in zip(part, whole) if not len(ids)), None):
            raise ValueError(f"The question about {empty.context[:60]!r} has no tokens; write one, or delete it.")
        longest = max(range(len(part)), key=lambda index: len(asked[index]))
        if len(asked[longest]) > layout.max_length - 4:
            raise ValueError(
                f"`max_length` must leave room for a passage beside every question. Received: max_length="
                f"{layout.max_length}, a question of {len(asked[longest])} ids, {part[longest].text[:60]!r}; lower "
                f"`max_question_length` to at most {layout.max_length - 4}."
            )
        contexts = dict.fromkeys(question.context for question in part)
        spans = [np.empty([0, 2], np.int32)]
        new = [context for context in contexts if context not in passages]
        for context, (ids, offsets) in zip(new, encode_with_spans(tokenizer, new)):
            passages[context] = ids, num_spans
            spans.append(offsets)
            num_spans += len(ids)
        passages = {context: passages[context] for context in contexts}
        texts, span_starts = zip(*(passages[question.context] for question in part))
        counts = np.array([len(ids) for ids in texts], np.int64)
        if not counts.all():
            empty = part[int(np.argmin(counts))]
            raise ValueError(f"The passage of question {empty.text[:60]!r} has no tokens; delete it.")
        lengths = np.array([len(ids) for ids in whole], np.int64)
        windows = choose_windows(np.minimum(lengths, max_question_length), counts, layout)
        yield {
            **flat_rows(tokenizer, asked, texts, layout),
            "question": (num_questions + windows.samples).astype(np.int32),
            "position": (windows.first + 2).astype(np.int32),
            "start": windows.starts.astype(np.int32),
            "count": windows.second.astype(np.int32),
            "spans": np.concatenate(spans).reshape(-1),
            "span_starts": np.array(span_starts, np.int64),
            "span_lengths": counts.astype(np.int32),
            "counts": counts_of(lengths, lengths > max_question_length),
        }
        num_questions += len(part)
