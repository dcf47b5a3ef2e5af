"""Evaluates a fine-tuned model of any task on a file of examples."""

import contextlib
import pathlib
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from albert_tf.data.finetuning.example_sources import as_file
from albert_tf.files.hub import model_folder
from albert_tf.files.json import read_json
from albert_tf.files.urls import location
from albert_tf.inference.loading import load_model
from albert_tf.inference.predictor import Predictor
from albert_tf.tasks import TASKS, Task
from albert_tf.trainer import tasks
from albert_tf.trainer.run_folder import RECIPE_FILE
from albert_tf.trainer.task_options import TaskOptions, check_read
from albert_tf.trainer.tasks.base import Evaluation, FinetuneTask, predictor_of
from albert_tf.trainer.validation import checked


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
        **changes: TaskOptions that differ from those of the model's fine-tuning.

    Returns:
        The number of examples, and their Evaluation.

    Raises:
        ValueError: the folder holds no such model, or the examples do not fit it; the message names their line.
    """
    task, model = _load(folder, changes, batch_size)
    examples = task.read_dev(pathlib.Path(as_file(data, "dev", task.options.table)))
    with _stored_ids(task):
        evaluate = task.evaluator(model, examples)
    evaluation = evaluate()
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
    task, model = _load(folder, changes, batch_size, loaded)
    examples = task.read_unlabelled(pathlib.Path(as_file(data, "dev", task.options.table)))
    with _stored_ids(task):
        predict = task.predictor(model, examples)
    task.write_predictions(location(output), examples, predict())
    if show_progress:
        print(examples.form, file=sys.stderr)
    return len(examples)


@contextlib.contextmanager
def _stored_ids(task: FinetuneTask) -> Iterator[None]:
    """A folder for ids, which are mapped when it is removed, so that a process that is killed later leaves nothing."""
    with tempfile.TemporaryDirectory(prefix="albert_tf-", ignore_cleanup_errors=True) as folder:
        task.stored_ids = pathlib.Path(folder)
        yield


def _load(
    folder: str | pathlib.Path, changes: dict[str, Any], batch_size: int, loaded: Predictor | None = None
) -> tuple[FinetuneTask, Predictor]:
    folder = model_folder(folder)
    loaded = loaded or load_model(folder, batch_size=batch_size)
    model = getattr(loaded, "model", None)  # Keras', which an export has not
    is_beam = getattr(model, "head", "") == "beam"
    row = next(row for row in TASKS if row.name == f"{loaded.task}{'_beam' if is_beam else ''}")
    if row.finetuning is None:
        raise ValueError(f"{folder} holds no model of a task; pass a folder written by `albert-tf finetune`.")
    options = _options(folder, row, loaded, changes)
    if model is not None:
        loaded = predictor_of(model, loaded.tokenizer, options, batch_size)
    return getattr(tasks, row.finetuning)(options), loaded


def _options(folder: pathlib.Path, row: Task, loaded: Predictor, changes: dict[str, Any]) -> TaskOptions:
    """The options of the model's fine-tuning, as far as they are known, with changes."""
    file, settings = folder / RECIPE_FILE, loaded.settings
    values = settings.options("doc_stride", "windows", "max_question_length", "max_answer_length")
    values |= {"max_length": settings.max_length}
    if file.is_file():
        recipe = read_json(file, cure="restore it, or remove it to use the defaults")
        own = ("encoding", "delimiter")  # of the files of that run
        values |= {name: recipe[name] for name in TaskOptions.model_fields if name in recipe and name not in own}
        if "pair_column" in recipe and recipe["pair_column"] is None and changes.get("pair_column") is not None:
            raise ValueError("The classifier was trained on single texts, but received pairs; remove the pair column.")
    check_read(row.name, changes)
    # The report of a run, which the settings are from, tells more than its recipe.
    values |= {"tag_words": settings.tags_words, "no_answer_threshold": settings.no_answer_threshold}
    values |= {"threshold": settings.threshold, "label_separator": settings.label_separator}
    if "threshold" in changes:
        changes = {**changes, "threshold": settings.with_threshold(changes["threshold"]).threshold}
    # Where an answer is does not count in scores.
    known = {"task": row.name, "problem": settings.problem, "misplaced_answers": "drop"}
    if "label_column" in changes:
        values = {name: values[name] for name in values if name not in ("dev_label_column", "label_columns")}
    if "label_columns" in changes:
        values.pop("label_column", None)
    source = str(file) if file.is_file() else "the options"
    options = checked(TaskOptions, {**values, **known, **changes}, source)
    is_export = loaded.network.name != "keras"
    if settings.takes_pairs and options.pair_column is None:
        raise ValueError("The classifier was trained on pairs; `pair_column` must name the second text of each.")
    if is_export and row.name == "sequence_classification" and not settings.takes_pairs and options.pair_column:
        raise ValueError("The classifier was trained on single texts, but received pairs; remove the pair column.")
    longest = _longest(loaded)
    if changes.get("max_length") and changes["max_length"] > longest:
        raise ValueError(
            f"`max_length` must not exceed the model's {longest} positions. Received: max_length={options.max_length}."
        )
    return options.model_copy(update={"max_length": min(options.max_length or settings.max_length, longest)})


def _longest(loaded: Predictor) -> int:
    """How many tokens the model takes; of an export those that it was exported for."""
    model = getattr(loaded, "model", None)
    return loaded.settings.max_length if model is None else model.config.max_position_embeddings
