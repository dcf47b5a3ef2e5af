"""Proves that equal examples give equal batches, in whatever form they come."""

import json

import datasets
import numpy as np
import pandas
import polars
import pytest
import tensorflow as tf

from albert_tf.tasks.learned import learned_task
from albert_tf.trainer import FinetuneOptions
from tests.toy_task import tokenizer

COUNT = 20
TAGS = ("O", "B-PER", "I-PER")
WORDS = [["anna", "keller", "was", "by", "the", "river"][number % 3 :] for number in range(COUNT)]
NUMBERS = [[{"anna": 1, "keller": 1 + (words[0] == "anna")}.get(word, 0) for word in words] for words in WORDS]
TAGGED = [
    {"tokens": words, "ner_tags": [TAGS[tag] for tag in numbers]} for words, numbers in zip(WORDS, NUMBERS, strict=True)
]
QUESTIONS = [
    {"context": " ".join(["anna was by the river"] * (number % 4 + 1)), "question": "who was it", "id": str(number)}
    for number in range(COUNT)
]
ANSWER = {"text": ["anna"], "answer_start": [0]}
CHOICES = [
    {
        "article": "the river was old",
        "question": "it was",
        "options": ["old", "new"] if number % 2 else ["new", "old"],
        "answer": "BA"[number % 2],
    }
    for number in range(COUNT)
]
LABELLED = [{"text": f"{('anna', 'bruno')[n % 2]} was by the river", "label": "ab"[n % 2]} for n in range(COUNT)]
PAIRS = [
    {"sentence1": f"{('anna', 'bruno')[n % 2]} was by the river", "sentence2": "anna was old", "score": (n % 3) / 2}
    for n in range(COUNT)
]


def lines(rows):
    return "\n".join(json.dumps(row) for row in rows)


def a_line_each(row):
    return "\n".join(map(" ".join, zip(row["tokens"], row["ner_tags"])))


def article(row):
    question = {"id": row["id"], "question": row["question"], "answers": [{"text": "anna", "answer_start": 0}]}
    return {"paragraphs": [{"context": row["context"], "qas": [question]}]}


def with_choices(row):
    label = row["options"]["AB".index(row["answer"])]
    return {"context": row["article"], "question": row["question"], "choices": row["options"], "label": label}


def in_columns(row):
    choices = dict(zip(("choice1", "choice2"), row["options"]))
    return {"context": row["article"], "question": row["question"], **choices, "label": "AB".index(row["answer"])}


def classes(rows, column, feature):
    """A Dataset whose labels are numbers with names."""
    dataset = datasets.Dataset.from_list(rows)
    return dataset.cast(datasets.Features({**dataset.features, column: feature}))


# Files, as name and content, and functions that make objects in memory.
FORMS = {
    "token_classification": {
        "CoNLL": ("a.conll", "\n\n".join(map(a_line_each, TAGGED))),
        "JSON": ("a.json", json.dumps(TAGGED)),
        "numbers": lambda: ({"tokens": words, "ner_tags": tags} for words, tags in zip(WORDS, NUMBERS)),
        "pandas": lambda: pandas.DataFrame(TAGGED),
        "classes": lambda: classes(
            [{"tokens": words, "tags": tags} for words, tags in zip(WORDS, NUMBERS)],
            "tags",
            datasets.List(datasets.ClassLabel(names=list(TAGS))),
        ),
    },
    "question_answering": {
        "a row a question": ("a.jsonl", lines({**row, "answers": ANSWER} for row in QUESTIONS)),
        "SQuAD": ("a.json", json.dumps({"data": list(map(article, QUESTIONS))})),
        "columns": ("a.csv", pandas.DataFrame(QUESTIONS).assign(answer="anna", answer_start=0).to_csv(index=False)),
        "a Dataset": lambda: datasets.Dataset.from_list([{**row, "answers": ANSWER} for row in QUESTIONS]),
        "dicts": lambda: ({**row, "answers": ANSWER} for row in QUESTIONS),
    },
    "multiple_choice": {
        "JSON lines": ("a.jsonl", lines(CHOICES)),
        "texts of choices": lambda: map(with_choices, CHOICES),
        "columns": lambda: map(in_columns, CHOICES),
        "a Dataset": lambda: datasets.Dataset.from_list(CHOICES),
    },
    "sequence_classification": {
        "JSON lines": ("a.jsonl", lines(LABELLED)),
        "semicolons": ("a.csv", "\n".join(["text;label", *(f"{row['text']};{row['label']}" for row in LABELLED)])),
        "pandas": lambda: pandas.DataFrame(LABELLED),
        "polars": lambda: polars.DataFrame(LABELLED),
        "classes": lambda: classes(LABELLED, "label", datasets.ClassLabel(names=["a", "b"])),
    },
    "sentence_embedding": {
        "JSON lines": ("a.jsonl", lines(PAIRS)),
        "tabs": ("a.tsv", pandas.DataFrame(PAIRS).to_csv(index=False, sep="\t")),
        "polars": lambda: polars.DataFrame(PAIRS),
        "a Dataset": lambda: datasets.Dataset.from_list(PAIRS),
        "dicts": lambda: iter(PAIRS),
    },
}


def options_for(folder, task, name):
    """Options of a run in a folder of its own, and its files."""
    form, output = FORMS[task][name], folder / name
    output.mkdir()
    if isinstance(form, tuple):
        (output / form[0]).write_text(form[1], encoding="utf-8")
    train, dev = (output / form[0] if isinstance(form, tuple) else form() for _ in range(2))
    values = {"pretrained": folder / "pretrained", "train": train, "dev": dev, "output": output / "run", "task": task}
    values |= {"labels": TAGS} if task == "token_classification" else {}
    return FinetuneOptions(**values, max_length=32)


@pytest.mark.parametrize("task", FORMS)
def test_equal_examples_give_equal_batches(tmp_path, task):
    batches = {}
    for name in FORMS[task]:
        options = options_for(tmp_path, task, name)
        kind = learned_task(task)
        data = kind(None, options.settings).read(options.train)
        arguments = kind(None, options.settings).model_arguments(data)
        facts = {"labels": arguments["labels"]} if arguments.get("labels") else {}
        examples = kind(tokenizer(), options.settings.with_facts(task=task, max_length=32, **facts)).training_examples(
            data
        )
        batches[name] = tf.nest.flatten(examples.training_batch(np.arange(len(examples.lengths))))
    first, *others = batches
    assert sum(array.size for array in batches[first]) > 10 * COUNT
    for name in others:
        for array, expected in zip(batches[name], batches[first], strict=True):
            np.testing.assert_array_equal(array, expected, err_msg=name)
