"""`albert-tf evaluate`: scores a fine-tuned model."""

from pathlib import Path
from typing import Annotated

import typer

from albert_tf.cli.paths import check_exists, existing_model
from albert_tf.cli.settings import TABLE_SETTINGS, Settings, read_settings
from albert_tf.cli.tables import AsJson, print_json, print_scores
from albert_tf.files.urls import location
from albert_tf.inference.progress import progress_line

NAME = "evaluate"
_SETTINGS = (
    *TABLE_SETTINGS,
    *("label_columns", "positive_label", "threshold", "windows", "doc_stride", "max_answer_length", "scorer"),
)


def run(
    folder: Annotated[Path, typer.Argument(help="Folder of a fine-tuned or exported model, or its name.")],
    data: Annotated[str, typer.Option(help="Examples: a file (.tsv, .csv, .json, ...), folder or URL.")],
    text_column: Annotated[str | None, typer.Option(help="Column with the text.")] = None,
    pair_column: Annotated[str | None, typer.Option(help="Column with the second text of a pair.")] = None,
    label_column: Annotated[str | None, typer.Option(help="Column with the label.")] = None,
    max_length: Annotated[int | None, typer.Option(help="Maximum number of tokens.")] = None,
    settings: Settings = None,
    batch_size: Annotated[int, typer.Option(help="Examples per batch.", min=1)] = 32,
    predictions: Annotated[Path | None, typer.Option(help="File to write predictions to.")] = None,
    as_json: AsJson = False,
) -> None:
    """Scores a model on examples; other settings are those of its fine-tuning. A SavedModel may run any code.

    Example: albert-tf evaluate runs/task --data test.tsv

    Example: albert-tf evaluate runs/task --data test.tsv --set positive_label=bad
    """
    columns = {"text_column": text_column, "pair_column": pair_column, "label_column": label_column}
    options = {**columns, "max_length": max_length}
    changes = {name: value for name, value in options.items() if value is not None} | read_settings(settings, _SETTINGS)
    folder = existing_model(folder)
    check_exists(data)
    if predictions is not None:
        location(predictions)  # raises if it is a URL that cannot be reached
    with progress_line("evaluate"):
        from albert_tf.trainer.evaluation import evaluate_folder  # imports TensorFlow: only after checks of the paths

        examples, evaluation = evaluate_folder(folder, data, predictions, batch_size, True, **changes)
    if as_json:
        print_json({"examples": examples, "scores": evaluation.scores, "notes": evaluation.notes})
        return
    title = f"{examples:,} examples"
    print_scores(title, evaluation.scores, evaluation.constant_score, "--json", notes=evaluation.notes)
