"""Loads a model and its tokenizer from a folder; the task is detected automatically."""

import dataclasses
import pathlib

from albert_tf import checkpoints, models
from albert_tf.json_files import read_json
from albert_tf.models import (
    AlbertForMaskedLM,
    AlbertForPreTraining,
    AlbertForSentenceEmbedding,
    AlbertForSequenceClassification,
)
from albert_tf.tasks import find_task
from albert_tf.tokenization import AlbertTokenizer

TaskModel = AlbertForSequenceClassification | AlbertForPreTraining | AlbertForMaskedLM | AlbertForSentenceEmbedding

_RECIPE_FILE = "recipe.json"


@dataclasses.dataclass(frozen=True)
class ModelFolder:
    """A model ready for raw text.

    Attributes:
        model: the task model.
        tokenizer: AlbertTokenizer.
        max_length: maximum number of tokens; longer texts are truncated.
        takes_pairs: whether it is a classifier of pairs of texts.
    """

    model: TaskModel
    tokenizer: AlbertTokenizer
    max_length: int
    takes_pairs: bool = False

    @property
    def is_classifier(self) -> bool:
        """Whether the model labels texts."""
        return isinstance(self.model, AlbertForSequenceClassification)

    @property
    def is_embedding(self) -> bool:
        """Whether the model computes embeddings of sentences."""
        return isinstance(self.model, AlbertForSentenceEmbedding)

    def check_pairs(self, given: bool) -> None:
        """Raises ValueError if a classifier of pairs gets single texts, or the reverse."""
        if given != self.takes_pairs:
            trained, received = ("pairs of texts", "single texts") if self.takes_pairs else ("single texts", "pairs")
            raise ValueError(f"The classifier was trained on {trained}, but received {received}.")


def load_folder(folder: str | pathlib.Path) -> ModelFolder:
    """Loads a folder written by `finetune`, `pretrain` or Hugging Face transformers.

    Args:
        folder: a checkpoint of any format with its vocabulary. `max_length` and `takes_pairs` are read from the recipe
            of `finetune`, if there is one.

    Raises:
        ValueError: checkpoint or vocabulary is missing or damaged, they do not match, or there is no head for a known
            task.
    """
    folder = pathlib.Path(folder)
    checkpoint = checkpoints.read(folder)
    kind = _kind(checkpoint)
    tokenizer = AlbertTokenizer.from_pretrained(folder)
    tokenizer.check_fits(checkpoint.config.vocab_size)
    max_length, takes_pairs = _recipe(folder / _RECIPE_FILE, checkpoint.config.max_position_embeddings)
    model = kind.from_pretrained(folder)
    if isinstance(model, AlbertForSentenceEmbedding):
        max_length, takes_pairs = model.max_length, False
    return ModelFolder(model, tokenizer, max_length, takes_pairs)


def _kind(checkpoint: checkpoints.Checkpoint) -> type[TaskModel]:
    """The model class in the config, or else the one that matches the heads of the checkpoint."""
    parts = {path.split("/", 1)[0] for path in checkpoint.arrays}
    named = checkpoint.settings.get("architectures")
    task = find_task(parts, named or ())
    if task is None or task.serving is None:
        raise ValueError(
            f"{checkpoint.source} ({' and '.join(named) if named else ', '.join(sorted(parts))}) neither labels texts "
            "nor fills in masks, nor embeds sentences; fine-tune it first."
        )
    return getattr(models, task.model)


def _recipe(file: pathlib.Path, longest: int) -> tuple[int, bool]:
    """`max_length` and `takes_pairs` as recorded by `finetune`."""
    recipe = read_json(file, cure="restore it, or remove it to use the defaults") if file.is_file() else {}
    max_length, pairs = recipe.get("max_length") or longest, recipe.get("pair_column")
    if not isinstance(max_length, int) or not 3 <= max_length <= longest or not isinstance(pairs, str | None):
        raise ValueError(
            f"{file}: `max_length` must be an integer from 3 to {longest} and `pair_column` a name or null. Received: "
            f"{str(recipe.get('max_length'))[:60]} and {str(pairs)[:60]}; restore the file, or remove it to use the "
            "defaults."
        )
    return max_length, pairs is not None
