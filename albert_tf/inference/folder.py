"""Loads a Keras model and its tokenizer from a folder; the task is detected automatically."""

import dataclasses
import math
import pathlib
from typing import Any

from albert_tf import checkpoints, models
from albert_tf.data.finetuning.encoded import MAX_TOKENS
from albert_tf.files.hub import model_folder
from albert_tf.files.json import read_json
from albert_tf.inference.keras_network import KerasNetwork
from albert_tf.inference.network import Network
from albert_tf.inference.predictor import Predictor
from albert_tf.inference.settings import DEFAULT_THRESHOLD, Settings, Threshold
from albert_tf.layers.kernels import runs_on_cpu
from albert_tf.models.base import AlbertBase
from albert_tf.tasks import TASKS, WindowsName, find_task
from albert_tf.tokenization import AlbertTokenizer

_RECIPE_FILE, _REPORT_FILE = "recipe.json", "metrics.json"
_NUMBERS = ("max_length", "doc_stride", "max_question_length", "max_answer_length")
_CURE = "restore it, or remove it to use the defaults"


@dataclasses.dataclass(frozen=True)
class ModelFolder(Predictor):
    """A Keras model ready for raw text.

    Attributes:
        model: the task model.
        tokenizer: AlbertTokenizer.
        max_length: maximum number of tokens; longer texts are truncated.
        takes_pairs: whether it is a classifier of pairs of texts.
        threshold, label_separator: of a classifier of any number of labels, see Settings.
        doc_stride: distance in tokens of the starts of two windows of a long text. None: 128, or a third of
            `max_length` if that is less.
        windows: how a classifier of single texts joins the logits of the windows of a long text, see Settings.
        max_question_length: maximum number of tokens of a question, or in multiple choice of its end with a choice.
            None: as in fine-tuning.
        max_answer_length: maximum number of tokens of an answer.
        no_answer_threshold: a question is not answered if its score of "no answer" is above this; None: never.
        tags_words: whether tags were trained on words, not on spans of characters.
        batch_size: maximum number of rows that are computed at once.
        max_tokens: maximum number of their tokens; None: no limit, the default on accelerators.
        network, settings: see Predictor; they follow from the others.
    """

    model: AlbertBase
    tokenizer: AlbertTokenizer
    max_length: int
    takes_pairs: bool = False
    threshold: Threshold = DEFAULT_THRESHOLD
    label_separator: str = ","
    doc_stride: int | None = None
    windows: WindowsName | None = None
    max_question_length: int | None = None
    max_answer_length: int = 30
    no_answer_threshold: float | None = None
    tags_words: bool = False
    batch_size: int = 32
    max_tokens: int | None = MAX_TOKENS

    network: Network = dataclasses.field(init=False, repr=False, compare=False)
    settings: Settings = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self):
        shared = {field.name for field in dataclasses.fields(Settings)} & self.__dict__.keys()
        object.__setattr__(self, "network", KerasNetwork(self.model))
        settings = settings_of(self.model, {name: getattr(self, name) for name in shared})
        object.__setattr__(self, "settings", settings)


def settings_of(model: AlbertBase, options: dict[str, Any]) -> Settings:
    """The settings of a task model with some options, `max_length` among them."""
    task = next(row.name for row in TASKS if row.model == type(model).__name__)
    own = {
        name: getattr(model, name) for name in ("problem", "normalize", "pooling", "dense_size") if hasattr(model, name)
    }
    return Settings(task, labels=tuple(getattr(model, "labels", None) or ()), **own, **options)


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
    options = read_options(folder, checkpoint.config.max_position_embeddings)
    model = kind.from_pretrained(folder, dtype=dtype)
    if isinstance(model, models.AlbertForSentenceEmbedding):
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


def read_record(folder: pathlib.Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The recipe and the report that `finetune` left in a folder; empty if it did not.

    Raises:
        ValueError: they are damaged.
    """
    files = (folder / _RECIPE_FILE, folder / _REPORT_FILE)
    recipe, report = (read_json(file, cure=_CURE) if file.is_file() else {} for file in files)
    return recipe, report


def read_options(folder: pathlib.Path, longest: int) -> dict[str, Any]:
    """The fields of ModelFolder as recorded by `finetune`, for a model of `longest` positions."""
    recipe, report = read_record(folder)
    numbers = {name: recipe[name] for name in _NUMBERS if recipe.get(name) is not None}
    threshold, pairs = report.get("no_answer_threshold"), recipe.get("pair_column")
    if threshold is None:
        threshold = recipe.get("no_answer_threshold")
    for name, value in numbers.items():
        low, high = (3, longest) if name == "max_length" else (1, math.inf)
        if type(value) is not int or not low <= value <= high:
            expected = f"from {low} to {high}" if name == "max_length" else f"of at least {low}"
            raise ValueError(
                f"{folder / _RECIPE_FILE}: `{name}` must be an integer {expected}. Received: {str(value)[:60]}; "
                f"{_CURE}."
            )
    if not isinstance(pairs, str | None):
        raise ValueError(f"{folder / _RECIPE_FILE}: `pair_column` must be a name or null. Received: {pairs}; {_CURE}.")
    if not isinstance(threshold, float | int | None):
        raise ValueError(f"{folder / _REPORT_FILE}: `no_answer_threshold` must be a number; {_CURE}.")
    tags_words = report.get("tags_words", recipe.get("tag_words")) is True
    others = {"takes_pairs": pairs is not None, "no_answer_threshold": threshold, "tags_words": tags_words}
    others |= {"windows": recipe.get("windows")}
    labels = {"threshold": report.get("threshold"), "label_separator": recipe.get("label_separator")}
    others |= {name: value for name, value in labels.items() if value is not None}
    return {"max_length": longest, **numbers, **others}
