"""`albert-tf finetune`: trains a task from a pretrained model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from albert_tf.cli.paths import check_exists, checkpoint_folder
from albert_tf.cli.settings import Settings
from albert_tf.cli.tables import Quiet, print_scores
from albert_tf.files.json import read_toml, with_settings
from albert_tf.files.urls import location
from albert_tf.inference.progress import progress_line

NAME = "finetune"
REMAINS = "the state of the last evaluation was kept; the same command resumes"


def _option(help: str, default: str) -> Any:
    return typer.Option(help=help, show_default=default)


def run(
    pretrained: Annotated[Path | None, typer.Argument(help="Folder of a pretrained model, or its name.")] = None,
    train: Annotated[str | None, typer.Option(help="Training examples: a table, folder or URL.  [required]")] = None,
    dev: Annotated[
        str | None, typer.Option(help="Other examples, to evaluate on after each epoch.  [required]")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder to write; an interrupted run is resumed.  [required]")
    ] = None,
    recipe: Annotated[Path | None, typer.Option(help="TOML file of settings; those given here override it.")] = None,
    task: Annotated[str | None, _option("What to train; see above.", "sequence_classification")] = None,
    problem: Annotated[str | None, _option("classification, multi_label or regression.", "classification")] = None,
    text_column: Annotated[str | None, _option("Column with the text.", "text")] = None,
    pair_column: Annotated[str | None, typer.Option(help="Column with the second text of a pair.")] = None,
    label_column: Annotated[str | None, _option("Column with the label.", "label")] = None,
    max_length: Annotated[int | None, _option("Maximum number of tokens.", "the model's")] = None,
    epochs: Annotated[int | None, _option("Passes over the training examples.", "3")] = None,
    batch_size: Annotated[int | None, _option("Examples per batch.", "32")] = None,
    learning_rate: Annotated[float | None, _option("Peak learning rate.", "3e-5, small models 1e-3")] = None,
    seed: Annotated[int | None, _option("Seed for new weights, dropout and shuffling.", "0")] = None,
    teacher: Annotated[
        Path | None, typer.Option(help="Fine-tuned model to imitate; by default also the start.")
    ] = None,
    settings: Settings = None,
    quiet: Quiet = False,
) -> None:
    """Trains a model on a task and writes it with its scores and predictions for the dev examples.

    Tasks: sequence_classification, token_classification, multiple_choice, question_answering,
    question_answering_beam, whose head also scores "no answer", and sentence_embedding.

    Example: albert-tf finetune model --train train.tsv --dev dev.tsv --output out

    Example: albert-tf finetune model --train train.tsv --dev dev.tsv --output out --set patience=2

    Example: albert-tf finetune --teacher out --set num_hidden_layers=6 --train train.tsv --dev dev.tsv --output fast

    Example: albert-tf finetune model --task question_answering --train train-v1.1.json --dev dev-v1.1.json --output out
    """
    options = {name: value for name, value in locals().items() if value is not None}
    for name in ("recipe", "settings", "quiet"):
        options.pop(name, None)
    _finetune(_merged(recipe, options, settings or ()), not quiet)


def _merged(recipe: Path | None, options: dict[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """The values of the recipe, which those of `--set` override, and the other options override both."""
    values = {**with_settings({} if recipe is None else read_toml(recipe, "correct the recipe"), settings), **options}
    if recipe is None and not {"pretrained", "teacher"} & values.keys():
        raise ValueError("A model's folder or name must be given: albert-tf finetune MODEL --train TABLE ...")
    return values


def _finetune(values: dict[str, Any], show_progress: bool) -> None:
    from albert_tf.files.validation import checked
    from albert_tf.trainer import FinetuneOptions

    options = checked(FinetuneOptions, values)
    check_exists(options.train, options.dev, *filter(None, [options.add_tokens]))
    location(options.output)  # raises if it is a URL that cannot be reached
    names = [name for name in ("pretrained", "teacher") if getattr(options, name) is not None]
    options = options.model_copy(update={name: checkpoint_folder(getattr(options, name)) for name in names})
    with progress_line("start", shown=show_progress):  # TensorFlow is imported only after the options were checked
        from albert_tf.trainer import finetune

    _print_report(finetune(options, show_progress))


def _print_report(report: Any) -> None:
    if report.finished_before:
        typer.echo("This run has already finished; these are its results.")
    by_label = report.threshold if isinstance(report.threshold, dict) else {"": report.threshold}
    rows = [(f"threshold {name}".strip(), f"{value:.4f}") for name, value in by_label.items() if value is not None]
    rows.append((f"evaluation kept, by {report.main_score}", str(report.kept_evaluation)))
    title = f"{report.steps:,} updates"
    print_scores(title, report.scores, report.constant_score, "metrics.json", rows, report.notes)
    typer.echo(f"model in {report.folder}")
