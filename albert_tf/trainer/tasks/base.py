"""What a task of `finetune` and `evaluate` has to provide.

Letters: N examples, B batch, L sequence.
"""

import abc
import itertools
import pathlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from albert_tf.data.finetuning.encoded import MAX_TOKENS
from albert_tf.data.finetuning.separated import separated_line
from albert_tf.data.finetuning.tables import listed
from albert_tf.files.atomic import atomic_open
from albert_tf.inference.predictor import LoadedModel, Predictor
from albert_tf.metrics import ConstantScore, LabelScores
from albert_tf.tokenization import AlbertTokenizer
from albert_tf.trainer.task_options import TaskOptions

if TYPE_CHECKING:
    # Examples are predicted without Keras and TensorFlow where the model is an ONNX folder.
    from albert_tf.data.finetuning.batches import TrainingExamples
    from albert_tf.models.base import AlbertBase


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


def predictor_of(
    model: "AlbertBase", tokenizer: AlbertTokenizer, options: TaskOptions, batch_size: int = 32
) -> LoadedModel:
    """A Keras model with its current weights as the tasks evaluate it."""
    from albert_tf.inference.folder import settings_of
    from albert_tf.inference.keras_network import KerasNetwork
    from albert_tf.layers.kernels import runs_on_cpu

    settings = settings_of(model, {"max_length": options.max_length})
    max_tokens = MAX_TOKENS if runs_on_cpu() else None
    return LoadedModel(KerasNetwork(model, traces_first=True), tokenizer, settings, batch_size, max_tokens)


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
    def constant_score(self) -> ConstantScore | None:
        """Score of the best prediction that is the same for every example, None where there is none."""
        ...

    @property
    def notes(self) -> list[str]:
        """What a user should know of the scores: why one is undefined, or tells little."""
        ...


class FinetuneTask(abc.ABC):
    """A task.

    Args:
        options: TaskOptions, with `max_length`.

    Attributes:
        predictions_file: name of the file of predictions.
        stored_ids: folder for the ids of examples; None: they are in memory.
    """

    predictions_file: str
    stored_ids: pathlib.Path | None = None

    def __init__(self, options: TaskOptions):
        self.options = options

    @property
    @abc.abstractmethod
    def main_score(self) -> str:
        """Name of `Evaluation.main_score`."""

    @property
    def max_length(self) -> int:
        """Maximum number of ids of an example; raises ValueError if it is not set yet."""
        if self.options.max_length is None:
            raise ValueError("`max_length` must be set before examples are tokenized. Received: None.")
        return self.options.max_length

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

    def tags_words(self, train: Any) -> bool | None:
        """Whether words are tagged, not tokens, see `TaskOptions.tag_words`; None for tasks without tags."""
        return None

    def notes(self, train: Any) -> Iterator[str]:
        """What a user should know of the training examples."""
        yield from ()

    @abc.abstractmethod
    def training_examples(self, model: "AlbertBase", tokenizer: AlbertTokenizer, train: Any) -> "TrainingExamples":
        """Tokenizes examples to train on.

        Raises:
            ValueError: the examples do not fit the model.
        """

    @abc.abstractmethod
    def evaluator(self, model: Predictor, data: Any) -> Callable[[], Evaluation]:
        """A function that evaluates the model's current weights; examples are tokenized once.

        Raises:
            ValueError: the examples do not fit the model.
        """

    def predictor(self, model: Predictor, data: Any) -> Callable[[], Any]:
        """A function that predicts examples of `read_unlabelled`, for `write_predictions`."""
        return self.evaluator(model, data)

    def baseline_score(self, train: Any, dev: Any, model: "AlbertBase") -> float:
        """The main score of a simple model on the same examples; raises ValueError for a task without one."""
        raise ValueError(f"There is no baseline for the task {self.options.task!r}.")

    @abc.abstractmethod
    def write_predictions(self, path: pathlib.Path, data: Any, evaluation: Any) -> None:
        """Writes the predictions for examples."""
