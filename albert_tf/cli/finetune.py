"""`albert-tf finetune`: a pretrained folder and a table of labelled texts."""

from pathlib import Path
from typing import Annotated

import typer

NAME = "finetune"


def run(
    pretrained: Annotated[Path, typer.Argument(help="Folder with a pretrained model and its vocabulary.")],
    train: Annotated[Path, typer.Option(help="Table to learn from: .tsv, .csv or .jsonl.")],
    dev: Annotated[Path, typer.Option(help="Table to evaluate on after each epoch.")],
    output: Annotated[Path, typer.Option(help="Folder to write.")],
    text_column: Annotated[str, typer.Option(help="Column with the text.")] = "text",
    pair_column: Annotated[str | None, typer.Option(help="Column with the second text of a pair.")] = None,
    label_column: Annotated[str, typer.Option(help="Column with the label.")] = "label",
    header: Annotated[bool, typer.Option(help="Whether the first row names the columns, or they are numbers.")] = True,
    problem: Annotated[str, typer.Option(help="classification, or regression to predict numbers.")] = "classification",
    from_scratch: Annotated[bool, typer.Option("--from-scratch", help="The same network without pretraining.")] = False,
    epochs: Annotated[int, typer.Option(help="How often each example is seen.")] = 3,
    batch_size: Annotated[int, typer.Option(help="Examples at once.")] = 32,
    learning_rate: Annotated[float, typer.Option(help="Its peak; small models want more.")] = 3e-5,
    warmup_proportion: Annotated[float, typer.Option(help="Share of the updates before the peak.")] = 0.1,
    weight_decay: Annotated[float, typer.Option(help="Of all but biases and layer normalisation.")] = 0.01,
    optimizer: Annotated[str, typer.Option(help="adamw or lamb.")] = "adamw",
    max_length: Annotated[int | None, typer.Option(help="Most tokens of a text; else what the model takes.")] = None,
    keep: Annotated[str, typer.Option(help="Whose weights to keep: those of the best epoch, or the last.")] = "best",
    seed: Annotated[int, typer.Option(help="Of new weights, dropout and the order of examples.")] = 0,
) -> None:
    """Trains a classifier; writes its folder with scores and predictions on the dev table.

    Example: albert-tf finetune runs/base/model --train train.tsv --dev dev.tsv --output runs/task
    """
    values = dict(locals())
    import rich

    from albert_tf.cli.scores import scores_table
    from albert_tf.trainer import FinetuneOptions, finetune
    from albert_tf.trainer.validation import checked

    known = {name: value for name, value in values.items() if name in FinetuneOptions.model_fields}
    report = finetune(checked(FinetuneOptions, known), show_progress=True)
    if report.finished_before:
        typer.echo("This run is finished already; these are its results.")
    table = scores_table(f"{report.steps:,} updates", report.scores)
    if report.majority_share is not None:
        table.add_row("accuracy of the commonest label", f"{report.majority_share:.4f}")
    table.add_row(f"weights of epoch, by {report.main_score}", str(report.kept_epoch))
    table.add_row("texts at the length limit", f"{report.full_share:.1%}")
    rich.print(table)
    typer.echo(f"model in {report.folder}")
