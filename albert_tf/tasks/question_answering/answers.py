"""From a model's scores of starts and ends to answers in the original passages.

Letters: W windows, L sequence, K starts, J ends of each start.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from albert_tf.data.finetuning.encoded import IMPOSSIBLE
from albert_tf.tasks.outputs import Computed
from albert_tf.tasks.question_answering.questions import QuestionWindows
from albert_tf.tokenization.spans import trim_span

# The arrays of SpanScores, in order.
_ARRAYS = ("starts", "start_scores", "ends", "end_scores", "no_answer")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible answer.

    Attributes:
        text: the text in the passage, without surrounding white space.
        start, end: where it is in the passage, `end` exclusive, in characters.
        start_score, end_score: logits or log probabilities; the candidate with the highest sum is the answer.
        probability: softmax of the sums over all candidates of the question.
    """

    text: str
    start: int
    end: int
    start_score: float
    end_score: float
    probability: float


@dataclass(frozen=True, slots=True)
class Answer:
    """The candidates of a question.

    Attributes:
        candidates: the best first; at least one.
        no_answer_score: high if the passage has no answer; only differences between questions count.
    """

    candidates: tuple[Candidate, ...]
    no_answer_score: float

    @property
    def text(self) -> str:
        """The best candidate's text."""
        return self.candidates[0].text


@dataclass(frozen=True)
class SpanScores:
    """The best starts and ends of some windows.

    Attributes:
        starts: positions in the window, most probable first, int [W, K].
        start_scores: float [W, K].
        ends: positions for each start, int [W, K, J], or [W, 1, J] if they are the same for all starts.
        end_scores: float, of the same shape.
        no_answer: score of "no answer", float [W].
        is_relative: whether `no_answer` is on the scale of a candidate's score, which is then subtracted from it.
    """

    starts: np.ndarray
    start_scores: np.ndarray
    ends: np.ndarray
    end_scores: np.ndarray
    no_answer: np.ndarray
    is_relative: bool

    @classmethod
    def from_outputs(
        cls, outputs: Mapping[str, np.ndarray], n_best: int = 20, p_mask: np.ndarray | None = None
    ) -> "SpanScores":
        """Reduces a model's outputs for a batch of windows to the best starts and ends.

        Args:
            outputs: outputs of AlbertForQuestionAnswering without `start_positions` in its inputs.
            n_best: K and J for `head="span"`; the beam head has its own.
            p_mask: int [W, L], 1 where no answer can be, which `head="span"` does not know. Without it, as in the
                reference, tokens of question and padding may be among the best starts and ends.
        """
        outputs = {name: np.asarray(value) for name, value in outputs.items()}
        if "cls_logits" in outputs:
            shape = (*outputs["start_top_index"].shape, -1)
            return cls(
                outputs["start_top_index"],
                outputs["start_top_log_probs"],
                outputs["end_top_index"].reshape(shape),
                outputs["end_top_log_probs"].reshape(shape),
                outputs["cls_logits"],
                is_relative=False,
            )
        logits = {edge: outputs[f"{edge}_logits"] for edge in ("start", "end")}
        if p_mask is not None:
            logits = {edge: np.where(p_mask == 0, scores, IMPOSSIBLE) for edge, scores in logits.items()}
        (starts, start_scores), (ends, end_scores) = (_best(logits[edge], n_best) for edge in ("start", "end"))
        no_answer = outputs["start_logits"][:, 0].astype(np.float64) + outputs["end_logits"][:, 0]
        return cls(starts, start_scores, ends[:, None], end_scores[:, None], no_answer, is_relative=True)

    @classmethod
    def joined(cls, parts: Sequence["SpanScores"], order: np.ndarray) -> "SpanScores":
        """The windows of several batches, in this order."""
        arrays = (np.concatenate([getattr(part, name) for part in parts])[order] for name in _ARRAYS)
        return cls(*arrays, is_relative=parts[0].is_relative)


def _best(scores: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The positions with the highest of the scores [W, L], and these scores, both [W, count]; -1 for missing ones."""
    # The order of equal scores is that of their positions, as in the reference.
    order = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    missing = [(0, 0), (0, count - order.shape[1])]
    return np.pad(order, missing, constant_values=-1), np.pad(np.take_along_axis(scores, order, axis=1), missing)


def find_answers(
    windows: QuestionWindows, scores: SpanScores, n_best: int = 20, max_answer_length: int = 30
) -> dict[str, Answer]:
    """Finds the answers to all questions.

    A candidate begins and ends in the passage, is at most `max_answer_length` tokens long, and begins in the window
    that shows most of its surroundings.

    Args:
        windows: QuestionWindows.
        scores: SpanScores of all windows, in their order.
        n_best: how many candidates with different texts to keep.
        max_answer_length: in tokens.

    Returns:
        Answer by question id. A question without any candidate gets one with the text "".

    Raises:
        ValueError: `scores` are not those of all windows.

    References:
        `accumulate_predictions_v1`, `write_predictions_v1` and their v2 forms in squad_utils.py of
        google-research/albert.
    """
    if len(scores.starts) != len(windows):
        raise ValueError(f"`scores` must be of all {len(windows)} windows. Received: scores of {len(scores.starts)}.")
    return {
        question.id: _answer(windows, index, question.context, scores, n_best, max_answer_length)
        for index, question in enumerate(windows.questions)
    }


def _answer(
    windows: QuestionWindows, question: int, context: str, scores: SpanScores, n_best: int, max_answer_length: int
) -> Answer:
    window_rows, best_window = windows.best_windows(question)
    start, count, position = (
        array[window_rows, None, None].astype(np.int64) for array in (windows.start, windows.count, windows.position)
    )
    first = scores.starts[window_rows, :, None] - position  # [W, K, 1], tokens of the passage in the window
    last = scores.ends[window_rows] - position  # [W, K or 1, J]
    is_valid = (first >= 0) & (first <= last) & (last < count) & (last - first < max_answer_length)  # [W, K, J]
    last, end_scores = (np.broadcast_to(array, is_valid.shape) for array in (last, scores.end_scores[window_rows]))
    window, row, column = np.nonzero(is_valid)
    first, last = (start + first)[window, row, 0], (start[:, 0, 0][window] + last[window, row, column])
    is_best = best_window[first] == window
    window, row, column, first, last = (array[is_best] for array in (window, row, column, first, last))
    start_scores = scores.start_scores[window_rows][window, row].astype(np.float64)
    end_scores = end_scores[window, row, column].astype(np.float64)
    order = np.argsort(-(start_scores + end_scores), kind="stable")
    texts = _distinct(
        context,
        windows.spans[question],
        zip(*(array[order].tolist() for array in (first, last, start_scores, end_scores))),
        n_best,
    )
    no_answer = float(scores.no_answer[window_rows].min())
    candidates = _with_probabilities(texts or [("", 0, 0, 0.0, 0.0)])
    if scores.is_relative:
        no_answer -= candidates[0].start_score + candidates[0].end_score
    return Answer(candidates, no_answer)


def _distinct(
    context: str, spans: np.ndarray, spans_and_scores: Iterable[tuple[int, int, float, float]], n_best: int
) -> list[tuple[str, int, int, float, float]]:
    """The first candidates with different texts: text, start, end, score of the start, score of the end."""
    starts, ends = spans[:, 0].tolist(), spans[:, 1].tolist()
    texts: dict[str, tuple[str, int, int, float, float]] = {}
    for first, last, start_score, end_score in spans_and_scores:
        start, end = trim_span(context, starts[first], ends[last])
        text = context[start:end]
        if text not in texts:
            texts[text] = (text, start, end, start_score, end_score)
            if len(texts) == n_best:
                break
    return list(texts.values())


def _with_probabilities(candidates: Sequence[tuple[str, int, int, float, float]]) -> tuple[Candidate, ...]:
    sums = np.array([start_score + end_score for *_, start_score, end_score in candidates])
    weights = np.exp(sums - sums.max())
    return tuple(
        Candidate(*fields, probability) for fields, probability in zip(candidates, (weights / weights.sum()).tolist())
    )


def apply_threshold(answers: Mapping[str, Answer], threshold: float) -> dict[str, str]:
    """The text of each answer by question id, "" if its `no_answer_score` is above a threshold.

    At the threshold it is an answer, unlike in the reference, whose search for the threshold counts it as one, too.
    """
    return {
        question: answer.text if answer.no_answer_score <= threshold else "" for question, answer in answers.items()
    }


def span_scores(windows: QuestionWindows, computed: Iterable[Computed]) -> tuple[SpanScores, np.ndarray]:
    """Reduces the outputs of all windows to their best starts and ends, so that memory stays small.

    Returns:
        SpanScores of the W windows, and for each question the logarithm of what a start's probability times an end's is
        divided by, float64 [Q].
    """
    rows, parts, totals = [], [], np.zeros([len(windows), 2])  # logarithms of the sums of all starts, and of all ends
    for part in computed:
        p_mask = part.batch["p_mask"]
        if "start_logits" in part.outputs:  # a beam head gives probabilities in each window, and windows count alike
            for edge, name in enumerate(("start_logits", "end_logits")):
                logits = np.where(p_mask == 0, part.outputs[name], IMPOSSIBLE).astype(np.float64)
                totals[part.rows, edge] = np.logaddexp.reduce(logits, axis=1)
        parts.append(SpanScores.from_outputs(part.outputs, p_mask=p_mask))
        rows.append(part.rows)
    scores = SpanScores.joined(parts, np.argsort(np.concatenate(rows)))
    first_windows = np.searchsorted(windows.question, np.arange(len(windows.questions)))
    return scores, np.logaddexp.reduceat(totals, first_windows, axis=0).sum(axis=1)
