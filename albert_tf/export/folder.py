"""Loads a model and its tokenizer from one folder; the task is detected automatically."""

import dataclasses
import pathlib

from albert_tf import checkpoints, models
from albert_tf.json_files import read_json
from albert_tf.models import AlbertForMaskedLM, AlbertForPreTraining, AlbertForSequenceClassification
from albert_tf.tasks import find_task
from albert_tf.tokenization import AlbertTokenizer

TaskModel = AlbertForSequenceClassification | AlbertForPreTraining | AlbertForMaskedLM

_RECIPE_FILE = "recipe.json"


@dataclasses.dataclass(frozen=True)
class ModelFolder:
    """A model ready for raw text.

    Attributes:
        model: the task model that the folder holds.
        tokenizer: AlbertTokenizer.
        max_length: tokens per text; longer texts are truncated.
        takes_pairs: whether it is a classifier of pairs of texts.
    """

    model: TaskModel
    tokenizer: AlbertTokenizer
    max_length: int
    takes_pairs: bool = False

    @property
    def is_classifier(self) -> bool:
        """Whether the model labels texts; otherwise it fills in masks."""
        return isinstance(self.model, AlbertForSequenceClassification)

    def check_pairs(self, given: bool) -> None:
        """Raises a ValueError unless pairs are given to a classifier of pairs, and to no other."""
        if given != self.takes_pairs:
            wanted, received = ("pairs of texts", "single texts") if self.takes_pairs else ("single texts", "pairs")
            raise ValueError(
                f"The classifier must get {wanted}, as in training. Received: {received}; give what it was trained on."
            )


def load_folder(folder: str | pathlib.Path) -> ModelFolder:
    """Loads a folder written by `finetune`, `pretrain` or Hugging Face transformers.

    Args:
        folder: a checkpoint of any kind with its vocabulary. Where `finetune` has left its recipe beside them, length
            and pairs are those of training.

    Returns:
        ModelFolder.

    Raises:
        ValueError: the checkpoint or the vocabulary is missing or damaged, they do not fit each other, or there is no
            head for a known task.
    """
    folder = pathlib.Path(folder)
    checkpoint = checkpoints.read(folder)
    kind = _kind(checkpoint)
    tokenizer = AlbertTokenizer.from_pretrained(folder)
    tokenizer.check_fits(checkpoint.config.vocab_size)
    max_length, takes_pairs = _recipe(folder / _RECIPE_FILE, checkpoint.config.max_position_embeddings)
    return ModelFolder(kind.from_pretrained(folder), tokenizer, max_length, takes_pairs)


def _kind(checkpoint: checkpoints.Checkpoint) -> type[TaskModel]:
    """The model class that the config names, or else the one that fits the heads of the checkpoint."""
    parts = {path.split("/", 1)[0] for path in checkpoint.arrays}
    named = checkpoint.settings.get("architectures")
    task = find_task(parts, named or ())
    if task is None or task.serving is None:
        raise ValueError(
            f"{checkpoint.source} ({' and '.join(named) if named else ', '.join(sorted(parts))}) neither labels texts "
            "nor fills in masks, so it cannot predict from text; fine-tune it first."
        )
    return getattr(models, task.model)


def _recipe(file: pathlib.Path, longest: int) -> tuple[int, bool]:
    """Tokens per text, and whether texts come in pairs, as `finetune` recorded them."""
    recipe = read_json(file, cure="restore it, or remove it to use the defaults") if file.is_file() else {}
    max_length, pairs = recipe.get("max_length") or longest, recipe.get("pair_column")
    if not isinstance(max_length, int) or not 3 <= max_length <= longest or not isinstance(pairs, str | None):
        raise ValueError(
            f"{file}: `max_length` must be an integer from 3 to {longest} and `pair_column` a name or null. Received: "
            f"{str(recipe.get('max_length'))[:60]} and {str(pairs)[:60]}; restore it, or remove it to use the defaults."
        )
    return max_length, pairs is not None
