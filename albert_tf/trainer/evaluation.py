"""Evaluates a fine-tuned model of any task on a file of examples."""

import dataclasses
import pathlib
import sys
from typing import Any

from albert_tf.data.finetuning.example_sources import as_file
from albert_tf.files.atomic import check_output
from albert_tf.files.urls import location
from albert_tf.inference.loading import load_model
from albert_tf.inference.predictor import Predictor
from albert_tf.tasks.learned import Compute, Evaluation, LearnedTask


def evaluate_folder(
    folder: str | pathlib.Path,
    data: Any,
    predictions: str | pathlib.Path | None = None,
    batch_size: int = 32,
    show_progress: bool = False,
    **changes: Any,
) -> tuple[int, Evaluation]:
    """Scores the model in a folder.

    Args:
        folder: as written by `finetune`, any checkpoint of a task with its vocabulary, or an export. A SavedModel is a
            program: only load what you trust.
        data: examples with labels, as for `finetune`.
        predictions: file to write predictions to, or None.
        batch_size: examples per batch.
        show_progress: whether to say on stderr what the data were recognised as.
        **changes: Settings of the task that differ from those of the model.

    Returns:
        The number of examples, and their Evaluation.

    Raises:
        ValueError: the folder holds no such model, the examples do not fit it, in which case the message names their
            line, or the predictions would replace their file.
    """
    task, compute = _load(folder, changes, batch_size)
    path = as_file(data, "dev", task.settings.table)
    if predictions is not None:
        check_output("predictions", predictions, data, path)
    examples = task.read_dev(pathlib.Path(path))
    evaluation = task.evaluator(compute, examples)()
    if predictions is not None:
        task.write_predictions(location(predictions), examples, evaluation)
    if show_progress:
        print(examples.form, file=sys.stderr)
    return len(examples), evaluation


def predict_folder(
    folder: str | pathlib.Path,
    data: Any,
    output: str | pathlib.Path,
    batch_size: int = 32,
    loaded: Predictor | None = None,
    show_progress: bool = False,
    **changes: Any,
) -> int:
    """Writes predictions of the model in a folder.

    Args:
        folder: as for `evaluate_folder`.
        data: examples as for `finetune`, of which questions and texts to tag need no labels.
        output: file to write, as `finetune` writes predictions for `dev`.
        batch_size: examples per batch.
        loaded: the model in the folder, if it is loaded already.
        show_progress, **changes: as for `evaluate_folder`.

    Returns:
        The number of examples.

    Raises:
        ValueError: as `evaluate_folder`.
    """
    task, compute = _load(folder, changes, batch_size, loaded)
    path = as_file(data, "dev", task.settings.table)
    check_output("output", output, data, path)
    examples = task.read_unlabelled(pathlib.Path(path))
    task.write_predictions(location(output), examples, task.predictor(compute, examples)())
    if show_progress:
        print(examples.form, file=sys.stderr)
    return len(examples)


def _load(
    folder: str | pathlib.Path, changes: dict[str, Any], batch_size: int, loaded: Predictor | None = None
) -> tuple[LearnedTask, Compute]:
    """The task of the model with its settings, some of them changed, and what computes its outputs."""
    loaded = load_model(folder, batch_size=batch_size) if loaded is None else loaded
    if not isinstance(loaded.text_task, LearnedTask):
        raise ValueError(f"{folder} holds no model of a task; pass a folder written by `albert-tf finetune`.")
    settings: Any = loaded.settings
    if "label_column" in changes and hasattr(settings, "label_columns"):  # instead of those of fine-tuning
        changes = {"label_columns": (), **changes}
    if "label_columns" in changes:
        changes = {**changes, "label_column": changes.get("label_column", "label")}
    model = getattr(loaded, "model", None)  # Keras', which an export has not
    longest = settings.max_length if model is None else model.config.max_position_embeddings
    if (changes.get("max_length") or 0) > longest:
        raise ValueError(
            f"`max_length` must not exceed the model's {longest} positions. Received: "
            f"max_length={changes['max_length']}."
        )
    current: Any = loaded.changed(**changes)
    if model is not None:
        current = dataclasses.replace(current, batch_size=batch_size, traces_first=True)
    return current.text_task, current.compute
