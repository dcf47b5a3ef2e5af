"""Loads a model and its tokenizer from a folder; the task is detected automatically."""

import dataclasses
import functools
import math
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np

from albert_tf import checkpoints, models
from albert_tf.data.finetuning.choices import MAX_STATEMENT_LENGTH
from albert_tf.data.finetuning.encoded import MAX_TOKENS
from albert_tf.files.hub import model_folder
from albert_tf.files.json import read_json
from albert_tf.models import AlbertForSentenceEmbedding
from albert_tf.models.base import AlbertBase, runs_on_cpu
from albert_tf.tasks import TASKS, find_task
from albert_tf.tokenization import AlbertTokenizer

_RECIPE_FILE, _REPORT_FILE = "recipe.json", "metrics.json"
_NUMBERS = ("max_length", "doc_stride", "max_question_length", "max_answer_length")
_CURE = "restore it, or remove it to use the defaults"
# Texts on which an export is compared with its Keras model.
SAMPLES = ("A first text.", "", "Another text, longer than the first, with 1,000 words: 둘.", "word " * 600)


@dataclasses.dataclass(frozen=True)
class ModelFolder:
    """A model ready for raw text.

    Attributes:
        model: the task model.
        tokenizer: AlbertTokenizer.
        max_length: maximum number of tokens; longer texts are truncated.
        takes_pairs: whether it is a classifier of pairs of texts.
        doc_stride: distance in tokens of the starts of two windows of a long text. None: 128, or a third of
            `max_length` if that is less.
        max_question_length: maximum number of tokens of a question, or in multiple choice of its end with a choice.
        max_answer_length: maximum number of tokens of an answer.
        no_answer_threshold: a question is not answered if its score of "no answer" is above this; None: never.
        tags_words: whether tags were trained on words, not on spans of characters.
        batch_size: maximum number of rows that are computed at once.
        max_tokens: maximum number of their tokens; None: no limit, the default on accelerators.
    """

    model: AlbertBase
    tokenizer: AlbertTokenizer
    max_length: int
    takes_pairs: bool = False
    doc_stride: int | None = None
    max_question_length: int = 64
    max_answer_length: int = 30
    no_answer_threshold: float | None = None
    tags_words: bool = False
    batch_size: int = 32
    max_tokens: int | None = MAX_TOKENS

    @property
    def task(self) -> str:
        """Name of the first task of `albert_tf.tasks.TASKS` that the model is for."""
        return next(task.name for task in TASKS if task.model == type(self.model).__name__)

    @functools.cached_property
    def compute(self) -> Callable[[Mapping[str, np.ndarray]], dict[str, Any]]:
        """Computes the model's outputs for a batch of inputs, without dropout.

        On TensorFlow, the first batch is computed op by op; the second traces a graph, which takes the time of about
        four texts and is 1.5 to 10 times as fast, as it fuses operations.
        """
        if keras.backend.backend() == "tensorflow":
            return _traced_at_second_call(self.model)
        return lambda inputs: self.model(inputs, training=False)

    def check_pairs(self, given: bool) -> None:
        """Raises ValueError if a classifier of pairs gets single texts, or the reverse."""
        if given != self.takes_pairs:
            if self.takes_pairs:
                raise ValueError(
                    "The classifier was trained on pairs of texts, but received single texts; give the second text of "
                    "each as its pair (`--pair`)."
                )
            raise ValueError("The classifier was trained on single texts, but received pairs; leave out the second.")


def _traced_at_second_call(model: AlbertBase) -> Callable[[Mapping[str, np.ndarray]], dict[str, Any]]:
    """Calls the model, in a graph from the second call with the same names of inputs on; batches have any shape."""
    import tensorflow as tf

    graphs: dict[tuple[str, ...], Callable[..., dict[str, Any]]] = {}

    def compute(inputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
        tensors = {name: tf.convert_to_tensor(array) for name, array in inputs.items()}
        names = tuple(sorted(tensors))
        if names in graphs:
            return graphs[names](tensors)
        shapes = {name: tf.TensorSpec([None] * len(value.shape), value.dtype) for name, value in tensors.items()}
        graphs[names] = tf.function(
            lambda batch: model(batch, training=False), autograph=False, input_signature=[shapes]
        )
        return model(tensors, training=False)

    return compute


def load_folder(folder: str | pathlib.Path, dtype: str | None = None) -> ModelFolder:
    """Loads a folder written by `finetune`, `pretrain` or Hugging Face transformers.

    Args:
        folder: a checkpoint of any format with its vocabulary, or the name of a model on huggingface.co. `max_length`
            and `takes_pairs` are read from the recipe of `finetune`, if there is one.
        dtype: Keras' policy of the model, such as `"bfloat16"`. None: the current one.

    Raises:
        ValueError: checkpoint or vocabulary is missing or damaged, they do not match, or there is no head for a known
            task.
    """
    folder = model_folder(folder)
    checkpoint = checkpoints.read(folder)
    kind = _kind(checkpoint)
    tokenizer = AlbertTokenizer.from_pretrained(folder)
    tokenizer.check_fits(checkpoint.config.vocab_size)
    options = _options(folder, checkpoint.config.max_position_embeddings)
    if kind is models.AlbertForMultipleChoice:
        options = {"max_question_length": MAX_STATEMENT_LENGTH, **options}
    model = kind.from_pretrained(folder, dtype=dtype)
    if isinstance(model, AlbertForSentenceEmbedding):
        options |= {"max_length": model.max_length, "takes_pairs": False}
    return ModelFolder(model, tokenizer, **options, max_tokens=MAX_TOKENS if runs_on_cpu() else None)


def _kind(checkpoint: checkpoints.Checkpoint) -> type[AlbertBase]:
    """The model class in the config, or else the one that matches the heads of the checkpoint."""
    named = checkpoint.settings.get("architectures") or ()
    task = find_task(checkpoint.parts, named)
    if task is None:
        found = " and ".join(named) or ", ".join(sorted(checkpoint.parts))
        raise ValueError(f"{checkpoint.source} ({found}) has no head for a task; fine-tune it first.")
    return getattr(models, task.model)


def check_length(name: str, length: Any, longest: int) -> None:
    """Raises ValueError unless a model with `longest` positions can take `length` tokens, of which two are special."""
    if type(length) is not int or not 3 <= length <= longest:
        raise ValueError(f"`{name}` must be an integer from 3 to {longest}. Received: {name}={length!r}.")


def relative_difference(name: str, given: np.ndarray, expected: np.ndarray) -> float:
    """Maximum absolute difference of an output called `name`, in units of the largest number if that is above 1."""
    if "_top_" in name:  # starts with almost the same score may change places, and so may their ends
        given, expected = np.sort(given), np.sort(expected)
    return float(np.abs(given - expected).max() / max(1.0, np.abs(expected).max()))


def read_record(folder: pathlib.Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The recipe and the report that `finetune` left in a folder; empty if it did not.

    Raises:
        ValueError: they are damaged.
    """
    files = (folder / _RECIPE_FILE, folder / _REPORT_FILE)
    recipe, report = (read_json(file, cure=_CURE) if file.is_file() else {} for file in files)
    return recipe, report


def _options(folder: pathlib.Path, longest: int) -> dict[str, Any]:
    """The fields of ModelFolder as recorded by `finetune`."""
    recipe, report = read_record(folder)
    numbers = {name: recipe[name] for name in _NUMBERS if recipe.get(name) is not None}
    threshold, pairs = report.get("no_answer_threshold"), recipe.get("pair_column")
    if threshold is None:
        threshold = recipe.get("no_answer_threshold")
    for name, value in numbers.items():
        limits = (3, longest) if name == "max_length" else (1, math.inf)
        if type(value) is not int or not limits[0] <= value <= limits[1]:
            raise ValueError(
                f"{folder / _RECIPE_FILE}: `{name}` must be an integer from {limits[0]} to {limits[1]}. Received: "
                f"{str(value)[:60]}; {_CURE}."
            )
    if not isinstance(pairs, str | None):
        raise ValueError(f"{folder / _RECIPE_FILE}: `pair_column` must be a name or null. Received: {pairs}; {_CURE}.")
    if not isinstance(threshold, float | int | None):
        raise ValueError(f"{folder / _REPORT_FILE}: `no_answer_threshold` must be a number; {_CURE}.")
    tags_words = report.get("tags_words", recipe.get("tag_words")) is True
    others = {"takes_pairs": pairs is not None, "no_answer_threshold": threshold, "tags_words": tags_words}
    return {"max_length": longest, **numbers, **others}
