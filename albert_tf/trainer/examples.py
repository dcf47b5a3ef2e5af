"""Examples as `finetune` reads them, to look at them before training, and the task that reads them."""

import pathlib
from typing import Any

from albert_tf.data.finetuning.example_sources import as_file
from albert_tf.tasks import TASKS, Task
from albert_tf.trainer import tasks
from albert_tf.trainer.task_options import TaskOptions
from albert_tf.trainer.tasks.base import FinetuneTask
from albert_tf.trainer.validation import checked


def load_examples(data: Any, task: str = "sequence_classification", split: str = "train", **options: Any) -> Any:
    """Reads examples.

    Args:
        data: as `train` of FinetuneOptions.
        task: name of the task.
        split: `"train"`; or `"dev"`, examples to evaluate on, also as the split of a data set.
        **options: those of FinetuneOptions that say how data are read, such as `text_column` or `encoding`.

    Returns:
        The examples, with a length; `form` says what they were recognised as.

    Raises:
        ValueError: the data are not what the task needs; the message names the row.

    Example:

    >>> rows = [{"context": "Ada was born in London.", "question": "Where?", "answer": "London"}]
    >>> examples = load_examples(rows, task="question_answering")
    >>> examples.form
    '1 questions (SQuAD, one row a question)'
    >>> examples[0].starts
    (16,)
    """
    given = checked(TaskOptions, {"task": task, **options})
    reader, path = make_task(given), pathlib.Path(as_file(data, split, given.table))
    return reader.read(path) if split == "train" else reader.read_dev(path)


def make_task(options: TaskOptions) -> FinetuneTask:
    """The task that the options name."""
    return getattr(tasks, str(row_of(options).finetuning))(options)


def row_of(options: TaskOptions) -> Task:
    """The row of the task in `albert_tf.tasks.TASKS`."""
    return next(row for row in TASKS if row.name == options.task)
