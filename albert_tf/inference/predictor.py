"""From raw texts to predictions, whatever computes the network in between.

Letters: B texts.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, Self

from albert_tf.data.finetuning.encoded import MAX_TOKENS
from albert_tf.inference.network import Network, compute_rows
from albert_tf.tasks.base import TextTask
from albert_tf.tasks.outputs import Computed, Rows
from albert_tf.tasks.settings import Settings
from albert_tf.tasks.table import task_class
from albert_tf.tokenization import AlbertTokenizer


@dataclasses.dataclass(frozen=True)
class Predictor:
    """A network with its tokenizer and the settings of its task.

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
    batch_size: int = 32
    max_tokens: int | None = MAX_TOKENS
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
        return dataclasses.replace(self, settings=self.settings.changed(**changes))

    def predict(self, *texts: Sequence[Any], task: TextTask | None = None) -> list[Any]:
        """The predictions of a task.

        Args:
            *texts: columns of B texts, in the order of `task.inputs`.
            task: another task than `text_task` that the network can do.

        Returns:
            B predictions.

        Raises:
            ValueError: the texts do not fit the task.
        """
        task = self.text_task if task is None else task
        task.check_rows(texts)
        if not len(texts[0]):
            return []
        encoded = task.encode(*texts)
        task.check(encoded, *texts)
        return task.decode(encoded, self.compute(encoded, task.max_tokens))
