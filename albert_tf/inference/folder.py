"""Loads a Keras model and its tokenizer from a folder; the task is detected automatically."""

import dataclasses
import pathlib

from albert_tf import checkpoints, models
from albert_tf.data.finetuning.encoded import MAX_TOKENS
from albert_tf.files.hub import model_folder
from albert_tf.inference.keras_network import KerasNetwork
from albert_tf.inference.network import Network
from albert_tf.inference.predictor import Predictor
from albert_tf.layers.kernels import runs_on_cpu
from albert_tf.models.base import AlbertBase
from albert_tf.models.task_settings import facts_of
from albert_tf.tasks.settings import read_settings
from albert_tf.tasks.table import find_task, task_class
from albert_tf.tokenization import AlbertTokenizer


@dataclasses.dataclass(frozen=True)
class ModelFolder(Predictor):
    """A Keras model ready for raw text.

    Attributes:
        network: see Predictor; it follows from the model.
        tokenizer, settings, batch_size: see Predictor.
        max_tokens: see Predictor; by default there is no limit on accelerators.
        few_shapes: see Predictor; by default on accelerators, where each shape is compiled.
        model: the task model.
        traces_first: see KerasNetwork.
    """

    network: Network = dataclasses.field(init=False, repr=False, compare=False)
    max_tokens: int | None = dataclasses.field(default_factory=lambda: MAX_TOKENS if runs_on_cpu() else None)
    few_shapes: bool = dataclasses.field(default_factory=lambda: not runs_on_cpu())
    model: AlbertBase = dataclasses.field(kw_only=True)
    traces_first: bool = False

    def __post_init__(self):
        object.__setattr__(self, "network", KerasNetwork(self.model, self.traces_first, self.few_shapes))


def load_folder(folder: str | pathlib.Path, dtype: str | None = None) -> ModelFolder:
    """Loads a folder written by `finetune`, `pretrain` or Hugging Face transformers.

    Args:
        folder: a checkpoint of any format with its vocabulary, or the name of a model on huggingface.co. Settings are
            read from `model.json` if it is there.
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
    return ModelFolder(tokenizer, settings, model=model)


def _kind(checkpoint: checkpoints.Checkpoint) -> type[AlbertBase]:
    """The model class in the config, or else the one that matches the heads of the checkpoint."""
    named = checkpoint.settings.get("architectures") or ()
    task = find_task(checkpoint.parts, named)
    if task is None:
        heads = " and ".join(named) or ", ".join(sorted(checkpoint.parts))
        raise ValueError(f"{checkpoint.source} ({heads}) has no head for a task; fine-tune it first.")
    return getattr(models, task.model)
