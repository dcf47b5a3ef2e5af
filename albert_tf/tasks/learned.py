"""What a task provides beside a TextTask, so that `finetune` trains its model and `evaluate` and `predict` read files.

Letters: N examples.
"""

import abc
import dataclasses
import itertools
import pathlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from albert_tf.data.finetuning.separated import separated_line
from albert_tf.data.finetuning.tables import listed
from albert_tf.files.atomic import atomic_open
from albert_tf.metrics import ConstantScore, LabelScores
from albert_tf.tasks.base import SettingsT, TextTask
from albert_tf.tasks.outputs import Computed, Rows
from albert_tf.tasks.table import TASKS, task_class


class Compute(Protocol):
    """What computes the outputs of tokenized rows with the model's current weights, batch by batch."""

    def __call__(self, rows: Any, /, *, shows_progress: bool = False) -> Iterator[Computed]: ...


class Evaluation(Protocol):
    """The predictions for one file and their scores.

    Attributes:
        scores: a dataclass of all scores of the task.
        main_score: the score that decides which of two models is better; higher is better.
        is_constant: whether the prediction is the same for every example, as of a model that has learnt nothing.
        constant_score: score of the best prediction that is the same for every example, None where there is none.
        notes: what a user should know of the scores: why one is undefined, or tells little.
    """

    @property
    def scores(self) -> Any: ...
    @property
    def main_score(self) -> float: ...
    @property
    def is_constant(self) -> bool: ...
    @property
    def constant_score(self) -> ConstantScore | None: ...
    @property
    def notes(self) -> Sequence[str]: ...


@dataclasses.dataclass(frozen=True)
class LabelledRows:
    """Tokenized rows to train on.

    Attributes:
        rows: the N rows.
        labels: of each row, or several by name.
        weights: float32 [N]; None: all are equal.
        inputs: names of the labels that the model reads.
    """

    rows: Rows
    labels: Any
    weights: np.ndarray | None = None
    inputs: tuple[str, ...] = ()

    @property
    def lengths(self) -> np.ndarray:
        """Number of ids of each row: int [N]."""
        return self.rows.lengths

    def training_batch(self, rows: np.ndarray, multiple: int | None = 8) -> tuple[Any, ...]:
        """Inputs, labels and, if there are some, weights of some rows, as `model.fit` takes them."""
        is_one = isinstance(self.labels, np.ndarray)
        labels = self.labels[rows] if is_one else {name: array[rows] for name, array in self.labels.items()}
        inputs = {**self.rows.batch(rows, multiple), **{name: labels[name] for name in self.inputs}}
        return (inputs, labels) if self.weights is None else (inputs, labels, self.weights[rows])


class LearnedTask(TextTask[SettingsT]):
    """A task whose models learn from files of examples.

    Attributes:
        predictions_file: name of the file of predictions.
    """

    predictions_file: str

    @property
    @abc.abstractmethod
    def main_score(self) -> str:
        """Name of `Evaluation.main_score`."""

    @abc.abstractmethod
    def read(self, path: pathlib.Path) -> Any:
        """Reads a file; returns its N examples, with a length.

        Raises:
            ValueError: the file is not what the task needs.
        """

    def read_dev(self, path: pathlib.Path) -> Any:
        """Reads a file of examples to evaluate on."""
        return self.read(path)

    def read_unlabelled(self, path: pathlib.Path) -> Any:
        """Reads a file of examples to predict, which may have no labels."""
        return self.read_dev(path)

    @abc.abstractmethod
    def keys(self, data: Any) -> Iterable[Hashable]:
        """What identifies each example, without its label."""

    @abc.abstractmethod
    def model_arguments(self, train: Any) -> dict[str, Any]:
        """Arguments of the model's constructor, such as the labels in the training examples."""

    def learnt_settings(self, train: Any) -> dict[str, Any]:
        """Settings that follow from the training examples."""
        return {}

    def notes(self, train: Any) -> Iterator[str]:
        """What a user should know of the training examples."""
        yield from ()

    @abc.abstractmethod
    def rows(self, data: Any) -> Any:
        """Tokenizes examples, for `decode`; also for training, unless `training_examples` does more."""

    def training_examples(self, train: Any) -> Any:
        """Tokenizes examples to train on; as LabelledRows or with its methods.

        Raises:
            ValueError: the examples do not fit the model.
        """
        return self.rows(train)

    @abc.abstractmethod
    def evaluator(self, compute: Compute, data: Any) -> Callable[[], Evaluation]:
        """A function that evaluates the model's current weights; examples are tokenized once.

        Raises:
            ValueError: the examples do not fit the model.
        """

    def predictor(self, compute: Compute, data: Any) -> Callable[[], Any]:
        """A function that predicts examples of `read_unlabelled`, for `write_predictions`."""
        return self.evaluator(compute, data)

    @abc.abstractmethod
    def write_predictions(self, path: pathlib.Path, data: Any, evaluation: Any) -> None:
        """Writes the predictions for examples."""


def learned_task(name: str) -> type[LearnedTask]:
    """The class of a task whose models learn from examples; raises ValueError if it is none."""
    kind = task_class(name)
    if not issubclass(kind, LearnedTask):
        names = (task.name for task in TASKS if issubclass(task_class(task.name), LearnedTask))
        raise ValueError(f"`task` must be one of {', '.join(names)}. Received: {name}.")
    return kind


def write_table(path: pathlib.Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Writes a TSV file; lone surrogates, which labels from JSON may hold, are written as they are."""
    with atomic_open(path) as file:
        for row in itertools.chain([header], rows):
            file.write(separated_line(row, "\t").encode("utf-8", "surrogatepass"))


def label_notes(by_label: Mapping[str, LabelScores]) -> Iterator[str]:
    """Which scores of labels are undefined, and why."""
    absent = [name for name, scores in by_label.items() if not scores.examples]
    if absent:
        yield f"Recall is undefined for labels that no example to evaluate on has: {listed(absent)}."
    unused = [name for name, scores in by_label.items() if scores.precision is None]
    if unused:
        yield f"Precision is undefined for labels that are never predicted: {listed(unused)}."
