"""Proves that fine-tuning on an accelerator, in batches of few shapes, minimises the same losses as in others."""

import keras
import numpy as np
import pytest
import safetensors.numpy

from albert_tf import (
    AlbertForMultipleChoice,
    AlbertForQuestionAnswering,
    AlbertForSentenceEmbedding,
    AlbertForSequenceClassification,
    AlbertForTokenClassification,
)
from albert_tf.data.finetuning.batches import COUNTED, training_dataset
from albert_tf.data.finetuning.batches import _with_counts as with_counts
from albert_tf.data.finetuning.encoded import encode_texts
from albert_tf.tasks.learned import LabelledRows
from albert_tf.trainer import finetune
from albert_tf.trainer.run_folder import METRICS_FILE, read_metrics
from tests.parameters import first_of
from tests.toy_task import CONFIG, mood_rows, tokenizer
from tests.trainer.mood_runs import options_for, write_files

ROWS, COPIES, LENGTH = 5, 3, 6
CHANCE = np.random.default_rng(0)


def label_ids(below, *shape):
    return CHANCE.integers(0, below, (ROWS, *shape)).astype(np.int32)


def numbers(*shape):
    return CHANCE.random((ROWS, *shape)).astype(np.float32)


POSITIONS = {"start_positions": label_ids(3), "end_positions": label_ids(3) + 2}
KINDS = {
    "classes": (lambda: AlbertForSequenceClassification(CONFIG, num_labels=3), (), label_ids(3)),
    "numbers": (lambda: AlbertForSequenceClassification(CONFIG, problem="regression"), (), numbers()),
    "decisions": (
        lambda: AlbertForSequenceClassification(CONFIG, num_labels=2, problem="multi_label"),
        (),
        label_ids(2, 2).astype(np.float32),
    ),
    "tags": (lambda: AlbertForTokenClassification(CONFIG, num_labels=3), (), np.where(numbers(LENGTH) > 0.4, 2, -100)),
    "choices": (lambda: AlbertForMultipleChoice(CONFIG), (2,), label_ids(2)),
    "answers": (lambda: AlbertForQuestionAnswering(CONFIG), (), POSITIONS),
    "beam": (lambda: AlbertForQuestionAnswering(CONFIG, head="beam"), (), {**POSITIONS, "is_impossible": label_ids(2)}),
    "similarity": (lambda: AlbertForSentenceEmbedding(CONFIG), (2,), numbers()),
    "triplet": (lambda: AlbertForSentenceEmbedding(CONFIG, objective="triplet"), (3,), numbers()),
}


@pytest.mark.parametrize("weights", first_of([None, numbers() + 0.5]))
@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_fill_a_batch_do_not_count(kind, weights):
    make, axes, labels = KINDS[kind]
    inputs = {"input_ids": label_ids(30000, *axes, LENGTH)}
    if kind == "beam":
        inputs |= {name: labels[name] for name in ("start_positions",)}
    short = (inputs, labels) if weights is None else (inputs, labels, weights)
    filled = keras.tree.map_structure(lambda array: np.concatenate([array, *[array[-1:]] * COPIES]), short)
    found = []
    for batches_of_epoch in ([filled, short], [with_counts(*filled, copies=0), with_counts(*filled, copies=COPIES)]):
        keras.utils.set_random_seed(1)
        model = make()
        model.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
        logs = [model.train_on_batch(*batch, return_dict=True) for batch in batches_of_epoch][-1]  # of both batches
        found.append({**logs, **model.variables_by_path()})
    expected, counted = found
    assert counted.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(np.array(counted[name]), np.array(value), atol=2e-6, rtol=1e-5, err_msg=name)


def test_batches_have_few_shapes_and_every_example_once():
    texts = [" ".join([text] * (1 + number % 3)) for number, (text, _) in enumerate(mood_rows(52, seed=3))]
    examples = LabelledRows(encode_texts(tokenizer(), texts, None, max_length=50), np.arange(52, dtype=np.int32))
    options = {"batch_size": 8, "seed": 1}
    dataset = training_dataset(examples, **options, last_batch="filled", multiple=None)
    rows = list(zip(range(14), dataset, training_dataset(examples, **options)))
    assert {tuple(inputs["input_ids"].shape) for _, (inputs, *_), _ in rows} == {(8, 16), (8, 32), (8, 50)}
    for _, (inputs, labels, weights), (theirs, their_labels) in rows:
        count, length = theirs["input_ids"].shape
        np.testing.assert_array_equal(labels[:count], their_labels)
        np.testing.assert_array_equal(weights[COUNTED], [1] * count + [0] * (8 - count))
        width = min(length, inputs["input_ids"].shape[1])
        np.testing.assert_array_equal(inputs["input_ids"][:count, :width], theirs["input_ids"][:, :width])
        assert not np.any(inputs["attention_mask"][:, width:])


@pytest.mark.exhaustive
def test_a_run_gives_the_same_model_and_logs(tmp_path, request):
    files = write_files(tmp_path)
    options = {"max_length": 16, "head_dropout": 0.0, "optimizer": "lamb"}
    finetune(options_for(files, tmp_path / "plain", **options))
    request.getfixturevalue("accelerator")
    finetune(options_for(files, tmp_path / "few", **options))
    plain, few = (safetensors.numpy.load_file(tmp_path / name / "model.safetensors") for name in ("plain", "few"))
    for name, array in plain.items():
        np.testing.assert_allclose(few[name], array, rtol=0, atol=1e-5, err_msg=name)
    logs = [[entry["loss"] for entry in read_metrics(tmp_path / name / METRICS_FILE)] for name in ("plain", "few")]
    assert logs[1] == pytest.approx(logs[0], abs=1e-5)
