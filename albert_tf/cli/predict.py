"""`albert-tf predict`: what a model says about texts."""

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

NAME = "predict"


def run(
    folder: Annotated[Path, typer.Argument(help="Folder of a fine-tuned, pretrained or exported model.")],
    texts: Annotated[list[str], typer.Argument(help="Texts; for a pretrained model with [MASK] in place of a piece.")],
    pair: Annotated[
        list[str] | None, typer.Option(help="Second text, one for each text. A pretrained model tells their order.")
    ] = None,
) -> None:
    """Labels texts, fills in [MASK], or tells which of two segments comes first: whatever the model was trained for.

    Example: albert-tf predict runs/task "The text to label."

    Example: albert-tf predict runs/base/model "He put his hand in his [MASK]."
    """
    import rich

    if pair and len(pair) != len(texts):
        raise ValueError(f"There must be one --pair for each text. Received: {len(texts)} texts, {len(pair)} pairs.")
    model = _load(folder)
    if model.is_classifier:
        table = _labels(texts, model.classify(texts, pair or None))
    elif pair:
        table = _orders(texts, pair, model.sentence_order(texts, pair))
    else:
        table = _pieces(texts, model.fill_mask(texts))
    rich.print(table)


@dataclasses.dataclass(frozen=True)
class _FolderModel:
    """A model in memory with the methods of a restored SavedModel."""

    is_classifier: bool
    classify: Callable
    fill_mask: Callable
    sentence_order: Callable


def _load(folder: Path) -> Any:
    from albert_tf.export import (
        classify,
        fill_mask,
        is_saved_model,
        load_folder,
        load_saved_model,
        sentence_order,
    )

    if is_saved_model(folder):
        return load_saved_model(folder)
    loaded = load_folder(folder)
    answers = (functools.partial(answer, loaded) for answer in (classify, fill_mask, sentence_order))
    return _FolderModel(loaded.is_classifier, *answers)


def _labels(texts: list[str], predictions) -> Any:
    from rich.markup import escape

    from albert_tf.cli.tables import plain_table

    names = list(predictions[0].probabilities)
    table = plain_table("", "text", *(["label", *map(escape, names)] if names else ["score"]))
    for text, prediction in zip(texts, predictions):
        shares = [f"{share:.4f}" for share in prediction.probabilities.values()]
        cells = [escape(prediction.label), *shares] if names else [f"{prediction.score:.4f}"]
        table.add_row(_shortened(text), *cells)
    return table


def _pieces(texts: list[str], predictions) -> Any:
    from rich.markup import escape

    from albert_tf.cli.tables import plain_table

    table = plain_table("▁ begins a word, ## goes on in one", "text", "piece", "probability")
    for text, prediction in zip(texts, predictions):
        for number, (piece, share) in enumerate(zip(prediction.pieces, prediction.probabilities)):
            table.add_row("" if number else _shortened(text), escape(piece), f"{share:.4f}")
    return table


def _orders(texts: list[str], pairs: list[str], shares: list[float]) -> Any:
    from albert_tf.cli.tables import plain_table

    table = plain_table("", "text", "pair", "comes first", "probability")
    for text, pair, share in zip(texts, pairs, shares):
        first = "text" if share >= 0.5 else "pair"
        table.add_row(_shortened(text), _shortened(pair), first, f"{max(share, 1 - share):.4f}")
    return table


def _shortened(text: str) -> str:
    from rich.markup import escape

    return escape(text if len(text) <= 60 else f"{text[:59]}…")
