"""Evaluates a fine-tuned model of any task on a file of examples."""

import contextlib
import pathlib
import tempfile
from collections.abc import Iterator
from typing import Any

from albert_tf import checkpoints, models
from albert_tf.data.finetuning.frames import as_file
from albert_tf.files.hub import model_folder
from albert_tf.files.json import read_json
from albert_tf.models.base import AlbertBase
from albert_tf.tasks import Task, find_task
from albert_tf.tokenization import AlbertTokenizer
from albert_tf.trainer import tasks
from albert_tf.trainer.finetune_report import read_report
from albert_tf.trainer.run_folder import RECIPE_FILE, REPORT_FILE
from albert_tf.trainer.task_options import TaskOptions, check_read
from albert_tf.trainer.tasks.base import Evaluation, FinetuneTask
from albert_tf.trainer.validation import checked


def evaluate_folder(
    folder: str | pathlib.Path,
    data: Any,
    predictions: str | pathlib.Path | None = None,
    batch_size: int = 32,
    **changes: Any,
) -> tuple[int, Evaluation]:
    """Scores the model in a folder.

    Args:
        folder: as written by `finetune`, or any checkpoint of a task with its vocabulary.
        data: examples with labels: a path, or a table as a pandas DataFrame or a Hugging Face Dataset.
        predictions: file to write predictions to, or None.
        batch_size: examples per batch.
        **changes: TaskOptions that differ from those of the model's fine-tuning.

    Returns:
        The number of examples, and their Evaluation.

    Raises:
        ValueError: the folder holds no such model, or the examples do not fit it; the message names their line.
    """
    task, model, tokenizer = _load(pathlib.Path(folder), changes)
    examples = task.read_dev(pathlib.Path(as_file(data)))
    tokenizer.check_fits(model.config.vocab_size)
    with _stored_ids(task):
        evaluate = task.evaluator(model, tokenizer, examples, batch_size)
    evaluation = evaluate()
    if predictions is not None:
        task.write_predictions(pathlib.Path(predictions), examples, evaluation)
    return len(examples), evaluation


def predict_folder(
    folder: str | pathlib.Path, data: str | pathlib.Path, output: str | pathlib.Path, batch_size: int = 32
) -> int:
    """Writes predictions of the model in a folder.

    Args:
        folder: as for `evaluate_folder`.
        data: examples, of which questions and texts to tag need no labels.
        output: file to write, as `finetune` writes predictions for `dev`.
        batch_size: examples per batch.

    Returns:
        The number of examples.

    Raises:
        ValueError: as `evaluate_folder`.
    """
    task, model, tokenizer = _load(pathlib.Path(folder), {})
    examples = task.read_unlabelled(pathlib.Path(data))
    tokenizer.check_fits(model.config.vocab_size)
    with _stored_ids(task):
        predict = task.predictor(model, tokenizer, examples, batch_size)
    task.write_predictions(pathlib.Path(output), examples, predict())
    return len(examples)


def find_finetuned(folder: str | pathlib.Path) -> Task | None:
    """The task of the model in a folder; None if `finetune` has no such task."""
    checkpoint = checkpoints.read(folder)
    row = find_task(checkpoint.parts, checkpoint.settings.get("architectures") or ())
    return None if row is None or row.finetuning is None else row


@contextlib.contextmanager
def _stored_ids(task: FinetuneTask) -> Iterator[None]:
    """A folder for ids, which are mapped when it is removed, so that a process that is killed later leaves nothing."""
    with tempfile.TemporaryDirectory(prefix="albert_tf-", ignore_cleanup_errors=True) as folder:
        task.stored_ids = pathlib.Path(folder)
        yield


def _load(folder: pathlib.Path, changes: dict[str, Any]) -> tuple[FinetuneTask, AlbertBase, AlbertTokenizer]:
    folder = model_folder(folder)
    row = find_finetuned(folder)
    if row is None:
        raise ValueError(f"{folder} holds no model of a task; pass a folder written by `albert-tf finetune`.")
    model = getattr(models, row.model).from_pretrained(folder)
    task = getattr(tasks, str(row.finetuning))(_options(folder, row, model, changes))
    return task, model, AlbertTokenizer.from_pretrained(folder)


def _options(folder: pathlib.Path, row: Task, model: Any, changes: dict[str, Any]) -> TaskOptions:
    """The options of the model's fine-tuning, as far as they are known, with changes."""
    file, values = folder / RECIPE_FILE, {}
    if file.is_file():
        recipe = read_json(file, cure="restore it, or remove it to use the defaults")
        values = {name: recipe[name] for name in TaskOptions.model_fields if name in recipe}
        if "pair_column" in values and values["pair_column"] is None and changes.get("pair_column") is not None:
            raise ValueError("The classifier was trained on single texts, but received pairs; remove the pair column.")
    check_read(row.name, changes)
    problem = getattr(model, "problem", "classification")
    if (folder / REPORT_FILE).is_file():
        report = read_report(folder)
        if report.tags_words is not None:
            values["tag_words"] = report.tags_words
        if report.no_answer_threshold is not None:
            values["no_answer_threshold"] = report.no_answer_threshold
    # Where an answer is does not count in scores.
    known = {"task": row.name, "problem": problem, "misplaced_answers": "drop"}
    if "label_column" in changes:
        values.pop("dev_label_column", None)
    source = str(file) if file.is_file() else "the options"
    options = checked(TaskOptions, {**values, **known, **changes}, source)
    longest = model.config.max_position_embeddings
    if changes.get("max_length") and changes["max_length"] > longest:
        raise ValueError(
            f"`max_length` must not exceed the model's {longest} positions. Received: max_length={options.max_length}."
        )
    length = options.max_length or getattr(model, "max_length", longest)
    return options.model_copy(update={"max_length": min(length, longest)})
