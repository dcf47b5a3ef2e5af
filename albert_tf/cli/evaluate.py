"""`albert-tf evaluate`: scores a classifier."""

from pathlib import Path
from typing import Annotated

import typer

NAME = "evaluate"


def run(
    folder: Annotated[Path, typer.Argument(help="Folder of a fine-tuned model.")],
    data: Annotated[Path, typer.Option(help="Table of labelled texts: .tsv, .csv or .jsonl.")],
    text_column: Annotated[str, typer.Option(help="Column with the text.")] = "text",
    pair_column: Annotated[str | None, typer.Option(help="Column with the second text of a pair.")] = None,
    label_column: Annotated[str, typer.Option(help="Column with the label.")] = "label",
    header: Annotated[bool, typer.Option(help="Whether the first row names the columns; else use numbers.")] = True,
    batch_size: Annotated[int, typer.Option(help="Examples per batch.", min=1)] = 32,
    predictions: Annotated[Path | None, typer.Option(help="File to write predictions to (.tsv).")] = None,
) -> None:
    """Scores a classifier on a table of labelled texts.

    Example: albert-tf evaluate runs/task --data test.tsv
    """
    from albert_tf.cli.tables import print_table, score_rows
    from albert_tf.data.finetuning.classification import Columns, read_texts
    from albert_tf.export import load_folder
    from albert_tf.trainer.evaluation import evaluate, write_predictions

    texts = read_texts(data, Columns(text_column, pair_column, label_column, header))
    loaded = load_folder(folder)
    if not loaded.is_classifier:
        raise ValueError(f"{folder} is not a classifier; pass a folder written by `albert-tf finetune`.")
    loaded.check_pairs(texts.pairs is not None)
    evaluation = evaluate(loaded.model, loaded.tokenizer, texts, loaded.max_length, batch_size)
    print_table(f"{len(texts):,} examples", ("score", "value"), score_rows(evaluation.scores))
    if predictions is not None:
        write_predictions(predictions, texts, evaluation)
