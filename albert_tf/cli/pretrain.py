"""`albert-tf pretrain`: a recipe and a folder."""

from pathlib import Path
from typing import Annotated

import typer

NAME = "pretrain"
KEPT = "checkpoints are kept, and the same command goes on from the newest"


def run(
    recipe: Annotated[Path, typer.Argument(help="A recipe (.toml); see training/recipes.")],
    output: Annotated[Path, typer.Option(help="Folder of the run; the same recipe goes on there.")],
    examples: Annotated[Path | None, typer.Option(help="Instead of the recipe's: folder made by prepare.")] = None,
    documents: Annotated[Path | None, typer.Option(help="The same, made with --format documents.")] = None,
    heldout: Annotated[Path | None, typer.Option(help="Instead of the recipe's: held-out examples.")] = None,
    skip_corrupt: Annotated[bool, typer.Option("--skip-corrupt", help="Go on without damaged shards.")] = False,
    allow_changed: Annotated[
        bool, typer.Option("--allow-changed", help="Go on though the recipe has changed.")
    ] = False,
) -> None:
    """Pretrains a model, or takes up a run that was stopped, with the same command.

    Example: albert-tf pretrain training/recipes/base_v2.toml --examples examples --output runs/base
    """
    from albert_tf.cli.tables import print_table
    from albert_tf.trainer import load_recipe

    checked_recipe = load_recipe(recipe, examples=examples, documents=documents, heldout=heldout)
    checked_recipe.check_vocabulary()
    from albert_tf.trainer import pretrain  # TensorFlow is imported only for a recipe that can run

    report = pretrain(checked_recipe, output, skip_corrupt=skip_corrupt, allow_changed=allow_changed)
    end_if_stopped(report)
    if not report.is_chief:
        return
    if report.results:
        rows = ((name.replace("_", " "), f"{value:.4f}") for name, value in report.results.items())
        print_table("", ("held-out examples", "value"), rows)
    typer.echo(f"model in {report.model_folder}, {report.num_train_steps:,} updates")


def end_if_stopped(report) -> None:
    """Exits with status 0 and a message if pretraining was interrupted."""
    if not report.finished:
        if report.is_chief:
            typer.echo(
                f"Interrupted at step {report.num_train_steps:,}; the state is saved, and the same command resumes "
                "from there."
            )
        raise typer.Exit
