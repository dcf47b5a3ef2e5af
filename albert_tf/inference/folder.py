"""Loads a Keras model and its tokenizer from a folder; the task is detected automatically."""

import dataclasses
import pathlib
from typing import Any

from albert_tf import checkpoints, models
from albert_tf.data.finetuning.encoded import MAX_TOKENS
from albert_tf.files.hub import model_folder
from albert_tf.inference.keras_network import KerasNetwork
from albert_tf.inference.network import Network
from albert_tf.inference.predictor import Predictor
from albert_tf.layers.kernels import runs_on_cpu
from albert_tf.models.base import AlbertBase
from albert_tf.tasks.settings import Settings, read_settings
from albert_tf.tasks.table import TASKS, find_task, task_class
from albert_tf.tokenization import AlbertTokenizer


@dataclasses.dataclass(frozen=True)
class ModelFolder(Predictor):
    """A Keras model ready for raw text.

    Attributes:
        model: the task model.
        tokenizer: AlbertTokenizer.
        settings: Settings of its task.
        batch_size: maximum number of rows that are computed at once.
        max_tokens: maximum number of their tokens; None: no limit, the default on accelerators.
        traces_first: see KerasNetwork.
        few_shapes: whether batches have few shapes, each of which is compiled; the default on accelerators.
        network: see Predictor; it follows from the model.
    """

    model: AlbertBase
    tokenizer: AlbertTokenizer
    settings: Settings
    batch_size: int = 32
    max_tokens: int | None = dataclasses.field(default_factory=lambda: MAX_TOKENS if runs_on_cpu() else None)
    traces_first: bool = False
    few_shapes: bool = dataclasses.field(default_factory=lambda: not runs_on_cpu())

    network: Network = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self):
        object.__setattr__(self, "network", KerasNetwork(self.model, self.traces_first, self.few_shapes))


def facts_of(model: AlbertBase) -> dict[str, Any]:
    """The settings that a model knows, whatever is recorded: its task, labels, problem and embeddings."""
    task = next(row.name for row in TASKS if row.model == type(model).__name__)
    names = ("labels", "problem", "normalize", "pooling", "max_length")
    facts = {name: getattr(model, name) for name in names if hasattr(model, name)}
    if "labels" in facts:
        facts["labels"] = () if facts.get("problem") == "regression" else tuple(facts["labels"] or ())
    return {**facts, "task": task}


def load_folder(folder: str | pathlib.Path, dtype: str | None = None) -> ModelFolder:
    """Loads a folder written by `finetune`, `pretrain` or Hugging Face transformers.

    Args:
        folder: a checkpoint of any format with its vocabulary, or the name of a model on huggingface.co. Settings are
            read from `model.json`, or from what earlier versions of `finetune` wrote, if it is there.
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
    model = kind.from_pretrained(folder, dtype=dtype)
    facts = facts_of(model)
    longest = checkpoint.config.max_position_embeddings
    settings = read_settings(folder, longest, task_class(facts["task"]).settings_class, **facts)
    return ModelFolder(model, tokenizer, settings)


def _kind(checkpoint: checkpoints.Checkpoint) -> type[AlbertBase]:
    """The model class in the config, or else the one that matches the heads of the checkpoint."""
    named = checkpoint.settings.get("architectures") or ()
    task = find_task(checkpoint.parts, named)
    if task is None:
        found = " and ".join(named) or ", ".join(sorted(checkpoint.parts))
        raise ValueError(f"{checkpoint.source} ({found}) has no head for a task; fine-tune it first.")
    return getattr(models, task.model)
