"""Training runs: recipes, folders, checkpoints, callbacks; loaded when first used."""

from typing import TYPE_CHECKING

from albert_tf.lazy import lazy_names

if TYPE_CHECKING:
    from albert_tf.trainer.finetuning import FinetuneOptions, FinetuneReport, finetune
    from albert_tf.trainer.plot import plot_losses
    from albert_tf.trainer.pretraining import PretrainReport, pretrain
    from albert_tf.trainer.recipe import Recipe, load_recipe, parse_recipe
    from albert_tf.trainer.report import RunReport, write_report

_MODULE_OF = {
    "FinetuneOptions": "finetuning",
    "FinetuneReport": "finetuning",
    "PretrainReport": "pretraining",
    "Recipe": "recipe",
    "RunReport": "report",
    "finetune": "finetuning",
    "load_recipe": "recipe",
    "parse_recipe": "recipe",
    "plot_losses": "plot",
    "pretrain": "pretraining",
    "write_report": "report",
}

__all__ = [
    "FinetuneOptions",
    "FinetuneReport",
    "PretrainReport",
    "Recipe",
    "RunReport",
    "finetune",
    "load_recipe",
    "parse_recipe",
    "plot_losses",
    "pretrain",
    "write_report",
]

__getattr__, __dir__ = lazy_names(__name__, _MODULE_OF)
