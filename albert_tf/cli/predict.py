"""`albert-tf predict`: predictions for texts."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

NAME = "predict"
MAX_ANSWERS = 5
_Row = tuple[str, str, str]


def run(
    folder: Annotated[Path, typer.Argument(help="Folder of a fine-tuned, pretrained or exported model.")],
    texts: Annotated[list[str], typer.Argument(help="Texts; for a pretrained model, with [MASK] for one piece.")],
    pair: Annotated[
        list[str] | None, typer.Option(help="Second text, one for each text; a pretrained model predicts their order.")
    ] = None,
) -> None:
    """Labels texts, fills in [MASK], or predicts which of two segments comes first, depending on the model.

    Example: albert-tf predict runs/task "The text to label."

    Example: albert-tf predict runs/base/model "He put his hand in his [MASK]."
    """
    from albert_tf.cli.tables import print_table

    if pair and len(pair) != len(texts):
        raise ValueError(f"`--pair` must be given once for each text. Received: {len(texts)} texts, {len(pair)} pairs.")
    model = _load(folder)
    if model.is_classifier:
        columns, rows = ("text", "label", "value"), _label_rows(texts, model.classify(texts, pair or None))
    elif pair:
        columns = ("comes first", "comes second", "probability")
        rows = _order_rows(texts, pair, model.sentence_order(texts, pair))
    else:
        columns, rows = ("text", "piece", "probability"), _piece_rows(texts, model.fill_mask(texts))
    title = "▁ begins a word, ## continues one" if columns[1] == "piece" else ""
    print_table(title, columns, rows, num_text_columns=2)


@dataclasses.dataclass(frozen=True)
class _FolderModel:
    """A Keras model with the interface of RestoredModel."""

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


def _label_rows(texts: list[str], predictions) -> Iterator[_Row]:
    """Up to `MAX_ANSWERS` labels per text, most probable first; or the score of a regression."""
    for text, prediction in zip(texts, predictions):
        answers = sorted(prediction.probabilities.items(), key=lambda answer: -answer[1])[:MAX_ANSWERS]
        yield from _rows(text, answers or [("score", prediction.score)])


def _piece_rows(texts: list[str], predictions) -> Iterator[_Row]:
    for text, prediction in zip(texts, predictions):
        yield from _rows(text, zip(prediction.pieces, prediction.probabilities))


def _rows(text: str, answers: Iterable[tuple[str, float]]) -> Iterator[_Row]:
    for number, (answer, value) in enumerate(answers):
        yield "" if number else text, answer, f"{value:.4f}"


def _order_rows(texts: list[str], pairs: list[str], probabilities: list[float]) -> Iterator[_Row]:
    for text, pair, probability in zip(texts, pairs, probabilities):
        first, second = (text, pair) if probability >= 0.5 else (pair, text)
        yield first, second, f"{max(probability, 1 - probability):.4f}"
