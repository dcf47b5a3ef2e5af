"""The tasks, one row each: conversion, checks, fine-tuning, prediction and export derive from this table.

To add a task, write its model in `models/` and its folder beside this file, and add a row here; see CONTRIBUTING.md.
"""

import dataclasses
import pkgutil
from collections.abc import Collection
from typing import Any, Literal

# In the folder of a fine-tuned model and of every export, a JSON object with the settings, among others.
SETTINGS_FILE = "model.json"
# How AlbertForSentenceEmbedding makes a vector of a text, what it minimises, and its last layer if it has one.
Pooling = Literal["mean", "cls", "max", "mean_sqrt_len"]
Objective = Literal["similarity", "ranking", "triplet"]
# How the logits of the windows of a long text are joined.
WindowsName = Literal["mean", "max"]
Activation = Literal["tanh", "relu", "gelu", "linear"]


@dataclasses.dataclass(frozen=True)
class Task:
    """A task and its model.

    Attributes:
        name: str.
        model: name of the class in `albert_tf.models`, which is also its architecture in a Hugging Face `config.json`.
        heads: parts of a checkpoint, beside `encoder`, that the model fills; see `checkpoints/names.py`.
        kind: class of the task, a TextTask or, to fine-tune its model, a LearnedTask, after its module and a colon.
        serving: class that exports the model, and its module in `albert_tf.export`.
        uses_pooler: whether the model computes from `pooled_output`.
        optional_heads: further parts that the model fills if its settings tell.
    """

    name: str
    model: str
    heads: frozenset[str]
    kind: str
    serving: str
    uses_pooler: bool = False
    optional_heads: frozenset[str] = frozenset()


# Several models have a `classifier`; without an architecture in the file, the first row that fits is taken.
TASKS = [
    Task(
        "sequence_classification",
        "AlbertForSequenceClassification",
        frozenset({"classifier"}),
        uses_pooler=True,
        serving="serve_classifier.ServedClassifier",
        kind="albert_tf.tasks.sequence_classification.task:TextClassification",
    ),
    Task(
        "token_classification",
        "AlbertForTokenClassification",
        frozenset({"classifier"}),
        serving="serve_tags.ServedTags",
        kind="albert_tf.tasks.token_classification.task:TokenClassification",
    ),
    Task(
        "multiple_choice",
        "AlbertForMultipleChoice",
        frozenset({"classifier"}),
        serving="serve_classifier.ServedChoices",
        kind="albert_tf.tasks.multiple_choice.task:MultipleChoice",
        uses_pooler=True,
    ),
    *(
        Task(
            f"question_answering{suffix}",
            "AlbertForQuestionAnswering",
            frozenset({head}),
            serving="serve_question_answering.ServedAnswers",
            kind="albert_tf.tasks.question_answering.task:QuestionAnswering",
        )
        for suffix, head in (("", "qa_span"), ("_beam", "qa_beam"))
    ),
    Task(
        "pretraining",
        "AlbertForPreTraining",
        frozenset({"masked_lm", "sentence_order"}),
        uses_pooler=True,
        serving="serve_masked_lm.ServedMaskedLM",
        kind="albert_tf.tasks.masked_lm.task:MaskedLM",
    ),
    Task(
        "masked_lm",
        "AlbertForMaskedLM",
        frozenset({"masked_lm"}),
        serving="serve_masked_lm.ServedMaskedLM",
        kind="albert_tf.tasks.masked_lm.task:MaskedLM",
    ),
    Task(
        "sentence_embedding",
        "AlbertForSentenceEmbedding",
        frozenset(),
        serving="serve_embedding.ServedEmbedding",
        kind="albert_tf.tasks.sentence_embedding.task:SentenceEmbedding",
        optional_heads=frozenset({"dense"}),
    ),
]
HEADS = frozenset().union(*(task.heads | task.optional_heads for task in TASKS))


def find_task(parts: Collection[str], architectures: Collection[str] = ()) -> Task | None:
    """The task of a checkpoint.

    Args:
        parts: the parts that the checkpoint has, such as `encoder` and `classifier`.
        architectures: what its `config.json` names; empty if it names none.

    Returns:
        The first task whose heads are all there and whose model is named, or None. A model without a head has to be
        named.

    Example:

    >>> find_task({"encoder", "masked_lm"}).model
    'AlbertForMaskedLM'
    """
    for task in TASKS:
        if task.heads <= set(parts) and (task.model in architectures if architectures else task.heads):
            return task
    return None


def smallest_task(head: str) -> Task:
    """The task with the fewest variables besides this head, preferably without a pooler."""
    tasks = (task for task in TASKS if head in task.heads | task.optional_heads)
    return min(tasks, key=lambda task: (len(task.heads), task.uses_pooler))


def task_class(name: object) -> Any:
    """The class of a task, a subclass of TextTask; raises ValueError for a name that is in no row."""
    kind = next((task.kind for task in TASKS if task.name == name), None)
    if kind is None:
        raise ValueError(f"`task` must be one of {', '.join(task.name for task in TASKS)}. Received: {name}.")
    return pkgutil.resolve_name(kind)
