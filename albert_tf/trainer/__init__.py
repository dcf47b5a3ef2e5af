"""Training runs: recipes, folders, checkpoints, callbacks; loaded when first used."""

from typing import TYPE_CHECKING

from albert_tf.lazy import lazy_names

if TYPE_CHECKING:
    from albert_tf.trainer.evaluation import evaluate_folder
    from albert_tf.trainer.examples import load_examples
    from albert_tf.trainer.finetune_report import FinetuneReport
    from albert_tf.trainer.finetuning import finetune
    from albert_tf.trainer.fit_loop import TrainingStopped
    from albert_tf.trainer.pretraining import PretrainReport, pretrain
    from albert_tf.trainer.recipe import Recipe, load_recipe, parse_recipe
    from albert_tf.trainer.task_options import FinetuneOptions

__all__ = [
    "FinetuneOptions",
    "FinetuneReport",
    "PretrainReport",
    "Recipe",
    "TrainingStopped",
    "evaluate_folder",
    "finetune",
    "load_examples",
    "load_recipe",
    "parse_recipe",
    "pretrain",
]
__getattr__, __dir__ = lazy_names(__name__)
