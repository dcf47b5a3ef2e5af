"""Proves that on accelerators a model computes batches of few shapes, one program for each, with equal predictions."""

import dataclasses

import numpy as np
import pytest

import albert_tf
from albert_tf.inference import keras_network
from albert_tf.inference.keras_network import KerasNetwork
from albert_tf.inference.progress import progress_line
from tests.cli.terminal import terminal
from tests.parameters import first_of
from tests.toy_task import mood_rows

TEXTS = [" ".join([text] * (1 + number % 4)) for number, (text, _) in enumerate(mood_rows(45, seed=6))]
COLUMNS = {
    "classifier": [TEXTS],
    "masked": [["[MASK] of " * (1 + len(text) % 3) + text for text in TEXTS]],
    "pretrained": [TEXTS, TEXTS[::-1]],
    "questions": [TEXTS[::-1], TEXTS],
    "questions_beam": [TEXTS[::-1], TEXTS],
    "tags": [TEXTS],
    "choices": [TEXTS, [[text, "rain"] for text in TEXTS[::-1]]],
    "embedding": [TEXTS],
}


def flat(prediction):
    """All numbers and strings of a prediction."""
    if dataclasses.is_dataclass(prediction):
        prediction = dataclasses.astuple(prediction)
    if isinstance(prediction, dict):
        prediction = list(prediction.items())
    if isinstance(prediction, list | tuple | np.ndarray):
        return [value for part in prediction for value in flat(part)]
    return [prediction]


def changed(predictor, **options):
    return dataclasses.replace(predictor, model=dataclasses.replace(predictor.model, **options))


def num_programs(predictor):
    return predictor.model.network._compiled.experimental_get_tracing_count()


@pytest.fixture
def shapes(accelerator, monkeypatch):
    """The shapes of ids that networks have computed."""
    shapes, compute = [], KerasNetwork.compute

    def recording(network, batch):
        shapes.append(batch["input_ids"].shape)
        return compute(network, batch)

    monkeypatch.setattr(KerasNetwork, "compute", recording)
    return shapes


WITHOUT_XLA = [("masked", False), ("tags", False), ("choices", False)]
CASES = dict.fromkeys([("classifier", True), *WITHOUT_XLA, *((kind, True) for kind in COLUMNS)])


@pytest.mark.parametrize(("kind", "with_xla"), first_of(CASES, count=2))
def test_predictions_are_those_of_batches_of_any_shape(folders, shapes, kind, with_xla, monkeypatch):
    if with_xla:
        monkeypatch.setattr(keras_network, "BATCHES_BEFORE_XLA", 0)
    predictor = albert_tf.pipeline(folders[kind], batch_size=8)
    expected = flat(changed(predictor, few_shapes=False)(*COLUMNS[kind]))
    shapes.clear()
    found = flat(predictor(*COLUMNS[kind]))
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected):
        assert ours == (theirs if isinstance(theirs, str | None) else pytest.approx(theirs, abs=2e-5))
    assert {shape[-1] for shape in shapes} <= {16, 32, 48, 64}  # 48 and 64 are the longest that the models take
    assert len(set(shapes)) == len({shape[-1] for shape in shapes}) < len(shapes)
    assert num_programs(predictor) == (len(set(shapes)) if with_xla else 0)


def test_few_texts_make_small_batches(folders, shapes):
    predictor = albert_tf.pipeline(folders["classifier"])
    for count in (1, 3, 5):
        predictor(TEXTS[:count])
    assert [rows for rows, _ in shapes] == [1, 4, 8]
    shapes.clear()
    predictor(TEXTS[:40])
    assert [rows for rows, _ in shapes] == [32, 32]
    shapes.clear()
    changed(predictor, max_tokens=256)(TEXTS)
    assert set(shapes) == {(4, 48), (8, 32), (16, 16)}


def test_a_program_is_made_for_a_shape_that_many_batches_have(folders, shapes, monkeypatch):
    monkeypatch.setattr(keras_network, "BATCHES_BEFORE_XLA", 2)
    predictor = albert_tf.pipeline(folders["classifier"])
    with terminal(monkeypatch) as shown, progress_line("predict"):
        answers = [predictor(TEXTS[0]).score for _ in range(4)]
    assert "2 rows; compiling for 1 x 16" in shown[0]
    assert num_programs(predictor) == 1
    np.testing.assert_allclose(answers, answers[0], rtol=0, atol=1e-5)
    predictor(TEXTS[:2])
    assert num_programs(predictor) == 1
