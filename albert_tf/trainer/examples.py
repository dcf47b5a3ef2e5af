"""Examples as `finetune` reads them, to look at them before training."""

import pathlib
from typing import Any

from albert_tf.data.finetuning.example_sources import as_file
from albert_tf.tasks.learned import learned_task


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
    kind: Any = learned_task(task)
    settings = kind.settings_class.validated({"task": task, **options})
    reader, path = kind(None, settings), pathlib.Path(as_file(data, split, settings.table))
    return reader.read(path) if split == "train" else reader.read_dev(path)
