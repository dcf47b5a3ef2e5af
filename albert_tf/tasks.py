"""The tasks, one row each: conversion, fine-tuning, prediction, export and `albert_tf.verify` derive from this table.

To add a task, write its model in `models/`, and its classes in `inference/tasks/`, `export/` and, to fine-tune it,
`trainer/tasks/`; name each in the `__init__.py` beside it, and add a row here.
"""

import dataclasses
from collections.abc import Collection
from typing import Literal

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
        serving: class that exports the model, and its module in `albert_tf.export`.
        inference: class of `albert_tf.inference.tasks` that makes predictions of the model's outputs.
        uses_pooler: whether the model computes from `pooled_output`.
        finetuning: class of `albert_tf.trainer.tasks` that trains and evaluates it; None if there is none.
        optional_heads: further parts that the model fills if its settings tell.
    """

    name: str
    model: str
    heads: frozenset[str]
    serving: str
    inference: str
    uses_pooler: bool = False
    finetuning: str | None = None
    optional_heads: frozenset[str] = frozenset()


# Several models have a `classifier`; without an architecture in the file, the first row that fits is taken.
TASKS = (
    Task(
        "sequence_classification",
        "AlbertForSequenceClassification",
        frozenset({"classifier"}),
        uses_pooler=True,
        serving="serve_classifier.ServedClassifier",
        inference="TextClassification",
        finetuning="TextClassification",
    ),
    Task(
        "token_classification",
        "AlbertForTokenClassification",
        frozenset({"classifier"}),
        serving="serve_tags.ServedTags",
        inference="TokenClassification",
        finetuning="TokenClassification",
    ),
    Task(
        "multiple_choice",
        "AlbertForMultipleChoice",
        frozenset({"classifier"}),
        serving="serve_classifier.ServedChoices",
        inference="MultipleChoice",
        uses_pooler=True,
        finetuning="MultipleChoice",
    ),
    *(
        Task(
            f"question_answering{suffix}",
            "AlbertForQuestionAnswering",
            frozenset({head}),
            serving="serve_question_answering.ServedAnswers",
            inference="QuestionAnswering",
            finetuning="QuestionAnswering",
        )
        for suffix, head in (("", "qa_span"), ("_beam", "qa_beam"))
    ),
    Task(
        "pretraining",
        "AlbertForPreTraining",
        frozenset({"masked_lm", "sentence_order"}),
        uses_pooler=True,
        serving="serve_masked_lm.ServedMaskedLM",
        inference="MaskedLM",
    ),
    Task(
        "masked_lm",
        "AlbertForMaskedLM",
        frozenset({"masked_lm"}),
        serving="serve_masked_lm.ServedMaskedLM",
        inference="MaskedLM",
    ),
    Task(
        "sentence_embedding",
        "AlbertForSentenceEmbedding",
        frozenset(),
        serving="serve_embedding.ServedEmbedding",
        inference="SentenceEmbedding",
        finetuning="SentenceEmbedding",
        optional_heads=frozenset({"dense"}),
    ),
)
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
