"""From raw texts to predictions, whatever computes the network in between.

Letters: B texts, C choices, D hidden.
"""

import abc
import dataclasses
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any, Self, cast

import numpy as np

from albert_tf.data.finetuning.encoded import MAX_TOKENS
from albert_tf.inference.network import Network, compute_rows
from albert_tf.tasks.base import TextTask
from albert_tf.tasks.masked_lm.task import MaskedInTurn, MaskedLM, SentenceOrder
from albert_tf.tasks.outputs import Computed, Rows
from albert_tf.tasks.predictions import (
    AnswerPrediction,
    ClassPrediction,
    Entity,
    LabelsPrediction,
    MaskPrediction,
)
from albert_tf.tasks.settings import Settings
from albert_tf.tasks.table import task_class
from albert_tf.tokenization import AlbertTokenizer


class Predictor(abc.ABC):
    """A model that takes texts.

    Attributes:
        network: what computes its outputs.
        tokenizer: AlbertTokenizer.
        settings: Settings.
        batch_size: maximum number of rows that are computed at once.
        max_tokens: maximum number of their tokens; None: no limit.
        few_shapes: see `compute_rows`.
    """

    network: Network
    tokenizer: AlbertTokenizer
    settings: Settings
    batch_size: int
    max_tokens: int | None
    few_shapes: bool = False

    @property
    def task(self) -> str:
        """Name of the first row of `albert_tf.tasks.table.TASKS` that the model is for."""
        return self.settings.task

    @property
    def text_task(self) -> TextTask:
        """What makes rows of texts, and predictions of the network's outputs for them."""
        return task_class(self.task)(self.tokenizer, self.settings)

    def compute(self, rows: Rows, max_tokens: int | None = None, shows_progress: bool = False) -> Iterator[Computed]:
        """Computes tokenized rows in batches, see `compute_rows`; `max_tokens` can lower the predictor's own limit."""
        limits = [limit for limit in (max_tokens, self.max_tokens) if limit is not None]
        limit = min(limits, default=None)
        return compute_rows(self.network, rows, self.batch_size, limit, shows_progress, self.few_shapes)

    def changed(self, **changes: Any) -> Self:
        """The model with other settings; raises ValueError as `Settings.changed`."""
        return dataclasses.replace(cast(Any, self), settings=self.settings.changed(**changes))

    def predict(self, *texts: Sequence[Any]) -> list[Any]:
        """The predictions of the model's task.

        Args:
            *texts: columns of B texts, in the order of `text_task.inputs`.

        Returns:
            B predictions.

        Raises:
            ValueError: the texts do not fit the model.
        """
        return self._decoded(self.text_task, *texts)

    def classify(
        self, texts: Sequence[str], pairs: Sequence[str] | None = None
    ) -> list[ClassPrediction] | list[LabelsPrediction]:
        """Labels texts, or pairs of texts.

        Args:
            texts: B texts.
            pairs: B second texts, for a classifier of pairs.

        Returns:
            B predictions; LabelsPrediction if a text may have any number of labels.

        Raises:
            ValueError: the model is not a classifier, or it was trained on pairs and gets single texts, or the reverse.
        """
        self._check("be a classifier", "fine-tune it first", "sequence_classification")
        return self.predict(*([texts] if pairs is None else [texts, pairs]))

    def find_entities(self, texts: Sequence[str]) -> list[list[Entity]]:
        """Finds entities, or whatever spans the model was trained on; long texts are read in windows.

        Args:
            texts: B texts.

        Returns:
            The entities of each text, in order. If the model was trained on words, its tag for the first token of a
            word counts: a run of letters and digits, or one other character.

        Raises:
            ValueError: the model is another one.
        """
        self._check("tag tokens", "fine-tune one first", "token_classification")
        return self.predict(texts)

    def choose(self, contexts: Sequence[str], choices: Sequence[Sequence[str]]) -> np.ndarray:
        """Probabilities of the choices that complete each passage.

        Args:
            contexts: B passages.
            choices: C statements for each, such as a question followed by one of its answers.

        Returns:
            float32 [B, C].

        Raises:
            ValueError: the model is another one, or the numbers of choices differ.
        """
        self._check("be one of multiple choice", "fine-tune one first", "multiple_choice")
        return np.array(self.predict(contexts, choices))

    def answer_questions(self, questions: Sequence[str], contexts: Sequence[str]) -> list[AnswerPrediction]:
        """Answers questions about passages; long passages are read in windows.

        Args:
            questions: B questions.
            contexts: B passages.

        Returns:
            B predictions. There is no answer if `null_odds` exceed the threshold that fine-tuning has found, if any.

        Raises:
            ValueError: the model is another one, or a passage is empty.
        """
        self._check("answer questions", "fine-tune one first", "question_answering")
        return self.predict(questions, contexts)

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Embeddings of sentences.

        Args:
            texts: B texts.

        Returns:
            float32 [B, D].

        Raises:
            ValueError: the model is another one.
        """
        self._check("embed sentences", "fine-tune one with task='sentence_embedding'", "sentence_embedding")
        return np.array(self.predict(texts))

    def fill_mask(
        self, texts: Sequence[str], top: int = 5, targets: Sequence[str] | None = None
    ) -> list[tuple[MaskPrediction, ...]]:
        """Predicts the piece for each [MASK] of each text.

        Args:
            texts: B texts, each with at least one [MASK], which stands for one piece.
            top: the number of candidates.
            targets: words that are the only candidates; of one of several pieces, the first counts, with a warning.
                Probabilities remain those among all pieces.

        Returns:
            For each text, a prediction for each [MASK], in their order.

        Raises:
            ValueError: the model has no masked-LM head, or a text has no [MASK].
        """
        self._check("have a masked-LM head", "use a pretrained model", "masked_lm", "pretraining")
        return self._decoded(MaskedLM(self.tokenizer, self.settings, top, targets), texts)

    def pseudo_log_likelihood(self, texts: Sequence[str]) -> list[float]:
        """How likely texts are: the sum of the log probabilities of their tokens, each masked in turn.

        Args:
            texts: B texts.

        Returns:
            B sums, in nats.

        Raises:
            ValueError: the model has no masked-LM head, or a text has no tokens, or more than the model takes.

        References:
            Masked Language Model Scoring, arXiv 1910.14659.
        """
        self._check("have a masked-LM head", "use a pretrained model", "masked_lm", "pretraining")
        if not len(texts):
            return []
        rows = MaskedInTurn(self.tokenizer, texts, self.text_task.max_length)
        return rows.sums(self.compute(rows, MaskedLM.max_tokens))

    def sentence_order(self, texts: Sequence[str], pairs: Sequence[str]) -> list[float]:
        """Probability that each text precedes its pair, rather than follows it.

        Args:
            texts: B segments.
            pairs: B adjacent segments.

        Returns:
            B probabilities.

        Raises:
            ValueError: the model has no sentence-order head.
        """
        self._check("have a sentence-order head", "use a pretrained model", "pretraining")
        return self._decoded(SentenceOrder(self.tokenizer, self.settings), texts, pairs)

    def _decoded(self, task: TextTask, *texts: Sequence[Any]) -> list[Any]:
        task.check_rows(texts)
        if not len(texts[0]):
            return []
        encoded = task.encode(*texts)
        task.check(encoded, *texts)
        return task.decode(encoded, self.compute(encoded, task.max_tokens))

    def _check(self, expected: str, cure: str, *names: str) -> None:
        if self.task not in names:
            kind = self.task.replace("_", " ")
            raise ValueError(f"The model must {expected}. Received: a model of {kind}; {cure}.")


@dataclasses.dataclass(frozen=True)
class LoadedModel(Predictor):
    """A model of which no more is known than what predictions need.

    Attributes:
        network, tokenizer, settings, batch_size, max_tokens: see Predictor.
        folder: folder of the version; None for a model that was not exported.
    """

    network: Network
    tokenizer: AlbertTokenizer
    settings: Settings
    batch_size: int = 32
    max_tokens: int | None = MAX_TOKENS
    folder: pathlib.Path | None = None
