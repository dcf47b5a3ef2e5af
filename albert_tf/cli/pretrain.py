"""`albert-tf pretrain`: runs a recipe."""

from pathlib import Path
from typing import Annotated

import typer

from albert_tf.cli.settings import Settings
from albert_tf.cli.tables import Quiet, print_table
from albert_tf.files.urls import location
from albert_tf.inference.progress import progress_line

NAME = "pretrain"
REMAINS = "checkpoints, if there are any, are kept, and the same command resumes from the newest"


def run(
    recipe: Annotated[Path, typer.Argument(help="A recipe (.toml); see training/recipes.")],
    output: Annotated[Path, typer.Option(help="Folder or URL of the run; an interrupted run is resumed.")],
    examples: Annotated[Path | None, typer.Option(help="Folder of prepared examples; overrides the recipe.")] = None,
    documents: Annotated[Path | None, typer.Option(help="Folder of prepared documents; overrides the recipe.")] = None,
    heldout: Annotated[Path | None, typer.Option(help="Folder of held-out examples; overrides the recipe.")] = None,
    settings: Settings = None,
    skip_corrupt: Annotated[bool, typer.Option("--skip-corrupt", help="Skip damaged shards.")] = False,
    allow_changed: Annotated[
        bool, typer.Option("--allow-changed", help="Resume even if the recipe has changed.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Pretrains a model, or resumes an interrupted run.

    Example: albert-tf pretrain training/recipes/base_v2.toml --examples examples --output runs/base

    Example: albert-tf pretrain recipe.toml --set training.batch_size=64 --output runs/small
    """
    from albert_tf.trainer import load_recipe

    checked_recipe = load_recipe(recipe, settings or (), examples=examples, documents=documents, heldout=heldout)
    checked_recipe.check_vocabulary()
    location(output)  # raises if it is a URL that cannot be reached
    with progress_line("start", shown=not quiet):
        from albert_tf.trainer import pretrain  # imports TensorFlow, so only after the recipe has been checked

    report = pretrain(checked_recipe, output, not quiet, skip_corrupt=skip_corrupt, allow_changed=allow_changed)
    if not report.is_chief:
        return
    if report.results:
        rows = ((name.replace("_", " "), f"{value:.4f}") for name, value in report.results.items())
        print_table("", ("held-out examples", "value"), rows)
    typer.echo(f"model in {report.model_folder}, {report.num_train_steps:,} updates")
