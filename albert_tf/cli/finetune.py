"""`albert-tf finetune`: trains a classifier from a pretrained model."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

NAME = "finetune"
KEPT = "no model was written; the same command starts again"
_tables = partial(typer.Option, rich_help_panel="Columns of the tables")
_training = partial(typer.Option, rich_help_panel="Training")


def run(
    pretrained: Annotated[Path, typer.Argument(help="Folder with a pretrained model and its vocabulary.")],
    train: Annotated[Path, typer.Option(help="Training table: .tsv, .csv or .jsonl.")],
    dev: Annotated[Path, typer.Option(help="Table to evaluate on after each epoch.")],
    output: Annotated[Path, typer.Option(help="Folder to write.")],
    problem: Annotated[str, typer.Option(help="classification, or regression to predict numbers.")] = "classification",
    text_column: Annotated[str, _tables(help="Column with the text.")] = "text",
    pair_column: Annotated[str | None, _tables(help="Column with the second text of a pair.")] = None,
    label_column: Annotated[str, _tables(help="Column with the label.")] = "label",
    header: Annotated[bool, _tables(help="Whether the first row names the columns; else use numbers.")] = True,
    epochs: Annotated[int, _training(help="Passes over the training table.")] = 3,
    batch_size: Annotated[int, _training(help="Examples per batch.")] = 32,
    learning_rate: Annotated[float, _training(help="Peak learning rate; small models need more.")] = 3e-5,
    warmup_proportion: Annotated[float, _training(help="Fraction of updates for warm-up.")] = 0.1,
    weight_decay: Annotated[float, _training(help="Weight decay, except for biases and layer norms.")] = 0.01,
    optimizer: Annotated[str, _training(help="adamw or lamb.")] = "adamw",
    max_length: Annotated[int | None, _training(help="Maximum number of tokens; default: the model's.")] = None,
    from_scratch: Annotated[bool, _training("--from-scratch", help="Start from random weights.")] = False,
    keep: Annotated[str, _training(help="Weights to keep: best (epoch) or last.")] = "best",
    seed: Annotated[int, _training(help="Seed for new weights, dropout and shuffling.")] = 0,
) -> None:
    """Trains a classifier and writes it with scores and predictions on the dev table.

    Example: albert-tf finetune model --train train.tsv --dev dev.tsv --output out
    """
    values = dict(locals())
    from albert_tf.cli.tables import print_table, score_rows
    from albert_tf.trainer import FinetuneOptions, TrainingStopped, finetune
    from albert_tf.trainer.validation import checked

    known = {name: value for name, value in values.items() if name in FinetuneOptions.model_fields}
    try:
        report = finetune(checked(FinetuneOptions, known), show_progress=True)
    except TrainingStopped as stopped:
        typer.echo(str(stopped))
        raise typer.Exit from None
    if report.finished_before:
        typer.echo("This run has already finished; these are its results.")
    rows = score_rows(report.scores)
    if report.majority_share is not None:
        rows.append(("accuracy of the most frequent label", f"{report.majority_share:.4f}"))
    rows.append((f"epoch kept, by {report.main_score}", str(report.kept_epoch)))
    rows.append(("texts at the length limit", f"{report.full_share:.1%}"))
    print_table(f"{report.steps:,} updates", ("score", "value"), rows)
    typer.echo(f"model in {report.folder}")
