"""Every task model takes nearly the same step of `fit` in bfloat16 as in float32; two of them the same under XLA.

How far rows are padded changes no step and no output.
"""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_tf import (
    AlbertForMaskedLM,
    AlbertForMultipleChoice,
    AlbertForPreTraining,
    AlbertForQuestionAnswering,
    AlbertForSentenceEmbedding,
    AlbertForSequenceClassification,
    AlbertForTokenClassification,
)
from tests.parameters import first_of

from .small import CONFIG, make_choices, make_inputs, make_pretraining_batch

ROWS = 4
POSITIONS = {"start_positions": np.array([0, 1, 2, 0]), "end_positions": np.array([1, 2, 2, 0])}
CASES = {
    "texts": (AlbertForSequenceClassification, {"num_labels": 3}, make_inputs(ROWS), np.array([0, 2, 1, 1])),
    "numbers": (
        AlbertForSequenceClassification,
        {"problem": "regression"},
        make_inputs(ROWS),
        np.array([0.1, 2, 1, 1]),
    ),
    "tokens": (
        AlbertForTokenClassification,
        {"num_labels": 3},
        make_inputs(ROWS),
        np.where(make_inputs(ROWS)["attention_mask"] == 1, 2, -100),
    ),
    "choices": (AlbertForMultipleChoice, {}, make_choices(ROWS), np.array([0, 2, 1, 1])),
    "span": (AlbertForQuestionAnswering, {}, make_inputs(ROWS), POSITIONS),
    "beam": (
        AlbertForQuestionAnswering,
        {"head": "beam"},
        {**make_inputs(ROWS), "start_positions": POSITIONS["start_positions"]},
        {**POSITIONS, "is_impossible": np.array([0, 0, 0, 1])},
    ),
}
EAGERLY = {"run_eagerly": True}  # quicker than to trace
WAYS = {"eager": EAGERLY, "xla": {"jit_compile": True}, "bfloat16": {"dtype": "mixed_bfloat16", **EAGERLY}}


@functools.cache
def step(case, way):
    """The logs of one step and how far it moved each variable."""
    kind, arguments, inputs, labels = CASES[case]
    settings = dict(WAYS[way])
    keras.utils.set_random_seed(7)
    model = kind(CONFIG, **arguments, dtype=settings.pop("dtype", "float32"))
    before = {path: np.array(variable) for path, variable in model.variables_by_path().items()}
    model.compile(keras.optimizers.SGD(0.5), **settings)
    logs = {name: values[0] for name, values in model.fit(inputs, labels, batch_size=ROWS, verbose=0).history.items()}
    return logs, {path: np.array(v) - before[path] for path, v in model.variables_by_path().items()}


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", CASES)
def test_one_step(case):
    logs, moves = step(case, "eager")
    # What is added to all scores of a softmax alike has no effect; every other variable learns.
    without_effect = ("key/bias", *{"choices": ["classifier/bias"], "beam": ["end_1/bias"]}.get(case, ()))
    assert not [path for path, move in moves.items() if not np.any(move) and not path.endswith(without_effect)]
    ways = [("bfloat16", 0.02), ("xla", 1e-5)] if case in ("choices", "beam") else [("bfloat16", 0.02)]
    for way, distance in ways:
        other_logs, other_moves = step(case, way)
        assert other_logs == pytest.approx(logs, abs=distance, rel=distance)
        for path, move in moves.items():
            np.testing.assert_allclose(other_moves[path], move, atol=distance, err_msg=f"{way} {path}")


@pytest.mark.parametrize("case", ["beam", "pretraining"])
def test_weights_of_rows_beside_several_labels(case):
    pretraining = (AlbertForPreTraining, {}, *make_pretraining_batch(ROWS))
    kind, arguments, inputs, labels = CASES.get(case, pretraining)
    model = kind(CONFIG.replace(initializer_range=0.2), **arguments)  # so that the losses of rows are far apart
    model.compile(run_eagerly=True)
    weights = np.array([0.5, 2.0, 0.0, 1.0])
    logs = model.evaluate(inputs, labels, sample_weight=weights, return_dict=True, verbose=0)
    data = tf.data.Dataset.from_tensor_slices((inputs, labels, weights)).batch(ROWS)
    assert model.evaluate(data, return_dict=True, verbose=0) == pytest.approx(logs, abs=1e-6)
    assert model.evaluate(inputs, labels, return_dict=True, verbose=0)["loss"] != pytest.approx(logs["loss"], abs=1e-4)


NO_DROPOUT = CONFIG.replace(
    num_hidden_layers=1, initializer_range=0.2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
)
LONGER = 5
PRETRAINING = make_pretraining_batch(ROWS)
MASKED = {name: labels for name, labels in PRETRAINING[1].items() if name.startswith("masked_lm")}
PADDED = {
    **CASES,
    "pretraining": (AlbertForPreTraining, {}, *PRETRAINING),
    "masked_lm": (AlbertForMaskedLM, {}, PRETRAINING[0], MASKED),
    "mean": (AlbertForSentenceEmbedding, {}, make_choices(ROWS, 2), np.array([0.1, 1, 0, 1])),
    "max": (AlbertForSentenceEmbedding, {"pooling": "max", "objective": "ranking"}, make_choices(ROWS, 2), None),
}


def padded(arrays, value=0):
    """Arrays over tokens with more padding at their end; others as they are."""
    if isinstance(arrays, dict):
        ids = {"input_ids", "attention_mask", "token_type_ids"}
        return {name: padded(array) if name in ids else array for name, array in arrays.items()}
    return np.pad(arrays, [*[(0, 0)] * (arrays.ndim - 1), (0, LONGER)], constant_values=value)


@pytest.mark.parametrize("case", first_of(PADDED, count=3))
def test_further_padding_changes_nothing(case):
    kind, arguments, inputs, labels = PADDED[case]
    longer_labels = padded(labels, value=-100) if case == "tokens" else labels
    found = []
    for batch in ((inputs, labels), (padded(inputs), longer_labels)):
        keras.utils.set_random_seed(7)
        model, teacher = (kind(NO_DROPOUT, **arguments) for _ in range(2))
        outputs = model.predict_on_batch({k: v for k, v in batch[0].items() if k != "start_positions"})
        model.compile(keras.optimizers.SGD(0.1), teacher=teacher if model.imitated else None, run_eagerly=True)
        numbers = model.train_on_batch(*batch, return_dict=True)
        found.append(({**numbers, **model.variables_by_path()}, outputs))
    (expected, outputs), (numbers, longer) = found
    assert numbers.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(np.array(numbers[name]), np.array(value), atol=2e-6, rtol=2e-6, err_msg=name)
    for name, array in outputs.items():
        without = longer[name][tuple(map(slice, array.shape))]
        np.testing.assert_allclose(without, array, atol=1e-5, rtol=1e-5, err_msg=name)
