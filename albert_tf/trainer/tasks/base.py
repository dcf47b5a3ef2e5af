"""What a task of `finetune` and `evaluate` has to provide.

Letters: N examples.
"""

import abc
import pathlib
from collections.abc import Callable, Hashable
from typing import Any, Protocol

from albert_tf.data.finetuning.batches import TrainingExamples
from albert_tf.models.base import AlbertBase
from albert_tf.tokenization import AlbertTokenizer
from albert_tf.trainer.task_options import TaskOptions


class Evaluation(Protocol):
    """The predictions for one file and their scores."""

    @property
    def scores(self) -> Any:
        """A dataclass of all scores of the task."""
        ...

    @property
    def main_score(self) -> float:
        """The score that decides which of two models is better; higher is better."""
        ...

    @property
    def is_constant(self) -> bool:
        """Whether the prediction is the same for every example, as of a model that has learnt nothing."""
        ...

    @property
    def majority_share(self) -> float | None:
        """Accuracy of predicting the most frequent label for every example, None without labels."""
        ...


class FinetuneTask(abc.ABC):
    """A task.

    Args:
        options: TaskOptions, with `max_length`.

    Attributes:
        predictions_file: name of the file of predictions.
    """

    predictions_file: str

    def __init__(self, options: TaskOptions):
        self.options = options

    @property
    @abc.abstractmethod
    def main_score(self) -> str:
        """Name of `Evaluation.main_score`."""

    @property
    def max_length(self) -> int:
        """Maximum number of ids of an example."""
        if self.options.max_length is None:
            raise ValueError("`max_length` must be set before examples are tokenized. Received: None.")
        return self.options.max_length

    @abc.abstractmethod
    def read(self, path: pathlib.Path) -> Any:
        """Reads a file; returns its N examples, with a length.

        Raises:
            ValueError: the file is not what the task needs.
        """

    @abc.abstractmethod
    def keys(self, data: Any) -> list[Hashable]:
        """What makes each example what it is, but for its label."""

    @abc.abstractmethod
    def model_arguments(self, train: Any) -> dict[str, Any]:
        """Arguments of the model's constructor, such as the labels in the training examples."""

    @abc.abstractmethod
    def training_examples(self, model: AlbertBase, tokenizer: AlbertTokenizer, train: Any) -> TrainingExamples:
        """Tokenizes examples to train on.

        Raises:
            ValueError: the examples do not fit the model.
        """

    @abc.abstractmethod
    def evaluator(
        self, model: AlbertBase, tokenizer: AlbertTokenizer, data: Any, batch_size: int = 32
    ) -> Callable[[], Evaluation]:
        """A function that evaluates the model's current weights; examples are tokenized once.

        Raises:
            ValueError: the examples do not fit the model.
        """

    @abc.abstractmethod
    def write_predictions(self, path: pathlib.Path, data: Any, evaluation: Any) -> None:
        """Writes the predictions for examples."""
