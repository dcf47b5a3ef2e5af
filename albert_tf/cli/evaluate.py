"""`albert-tf evaluate`: scores a fine-tuned model."""

from pathlib import Path
from typing import Annotated

import typer

from albert_tf.cli.data_options import Delimiter, Encoding, Renames, Threshold, table_options, threshold_option
from albert_tf.cli.paths import check_data, existing_model
from albert_tf.cli.tables import AsJson, print_json, print_scores
from albert_tf.files.urls import location
from albert_tf.progress import progress_line

NAME = "evaluate"


def run(
    folder: Annotated[Path, typer.Argument(help="Folder of a fine-tuned or exported model, or its name.")],
    data: Annotated[str, typer.Option(help="Examples: a file (.tsv, .csv, .json, ...), folder or URL.")],
    text_column: Annotated[str | None, typer.Option(help="Column with the text.")] = None,
    pair_column: Annotated[str | None, typer.Option(help="Column with the second text of a pair.")] = None,
    label_column: Annotated[str | None, typer.Option(help="Column with the label.")] = None,
    label_columns: Annotated[str | None, typer.Option(help="Columns of 0 and 1, one for each label: a,b,c.")] = None,
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Whether the first row names the columns; else use numbers."),
    ] = None,
    rename_columns: Renames = None,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    positive_label: Annotated[str | None, typer.Option(help="Of two labels, the one that F1 is of.")] = None,
    max_length: Annotated[int | None, typer.Option(help="Maximum number of tokens.")] = None,
    windows: Annotated[
        str | None, typer.Option(help="Read long texts to label in windows, and join these: mean or max.")
    ] = None,
    doc_stride: Annotated[int | None, typer.Option(help="Tokens between the starts of two windows.")] = None,
    max_answer_length: Annotated[int | None, typer.Option(help="Maximum number of tokens of an answer.")] = None,
    scorer: Annotated[str | None, typer.Option(help="For questions: squad, or korquad.")] = None,
    threshold: Threshold = None,
    batch_size: Annotated[int, typer.Option(help="Examples per batch.", min=1)] = 32,
    predictions: Annotated[Path | None, typer.Option(help="File to write predictions to.")] = None,
    as_json: AsJson = False,
) -> None:
    """Scores a model on examples; options not given are those of its fine-tuning. A SavedModel may run any code.

    Example: albert-tf evaluate runs/task --data test.tsv
    """
    table = table_options(rename_columns, encoding, delimiter) | threshold_option(threshold)
    own = ("own", "folder", "data", "batch_size", "predictions", "as_json", "table", "rename_columns", *table)
    changes = {name: value for name, value in locals().items() if name not in own and value is not None}
    if label_columns is not None:
        changes["label_columns"] = [name.strip() for name in label_columns.split(",")]
    folder = existing_model(folder)
    check_data(data)
    if predictions is not None:
        location(predictions)  # raises if it is a URL that cannot be reached
    with progress_line("evaluate"):
        from albert_tf.trainer.evaluation import evaluate_folder  # imports TensorFlow: only after checks of the paths

        examples, evaluation = evaluate_folder(folder, data, predictions, batch_size, True, **changes, **table)
    if as_json:
        print_json({"examples": examples, "scores": evaluation.scores, "notes": evaluation.notes})
        return
    title = f"{examples:,} examples"
    print_scores(title, evaluation.scores, evaluation.constant_score, "--json", notes=evaluation.notes)
