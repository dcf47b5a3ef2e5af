"""Proves that the reference's learning rates are reproduced, and that the default has no jump."""

import json
import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_tf.optimizers import WarmupSchedule

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "S1_schedule"
SETTINGS = json.loads((GOLDEN / "settings.json").read_text())


def rates(schedule, steps):
    return np.array(schedule(np.array(steps, "int32")))  # elementwise, which is as for each step and quicker


@pytest.mark.parametrize("case", range(len(SETTINGS)))
@pytest.mark.parametrize("as_tensor", [False, True])
def test_the_reference(case, as_tensor):
    settings = SETTINGS[case]
    schedule = WarmupSchedule(
        settings["init_lr"],
        num_train_steps=settings["num_train_steps"],
        num_warmup_steps=settings["num_warmup_steps"],
        power=settings["poly_power"],
        start_warmup_step=settings["start_warmup_step"],
        reference_jump=True,
    )
    with np.load(GOLDEN / "io.npz") as io:
        steps, expected = io["steps"], io[f"learning_rate_{case}"]
    found = tf.map_fn(tf.function(schedule), tf.constant(steps), tf.float32) if as_tensor else rates(schedule, steps)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-10)


def test_the_reference_is_negative_before_its_start():
    with np.load(GOLDEN / "io.npz") as io:
        assert np.all(io["learning_rate_2"][:4] < 0)


def oracle(step, peak, total, warmup, start, end, shape):
    """The continuous schedule in float64, from its description."""
    if step < start:
        return 0.0
    if step < start + warmup:
        return peak * (step - start) / warmup
    part = min(max((step - start - warmup) / max(total - start - warmup, 1), 0), 1)
    return end + (peak - end) * shape(part)


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ({}, lambda part: 1 - part),
        ({"decay": "linear"}, lambda part: 1 - part),
        ({"power": 2.0}, lambda part: (1 - part) ** 2),
        ({"power": 0.5}, lambda part: (1 - part) ** 0.5),
        ({"decay": "cosine"}, lambda part: 0.5 * (1 + np.cos(np.pi * part))),
        ({"decay": "constant"}, lambda part: 1.0),
    ],
)
@pytest.mark.parametrize(
    ("total", "warmup", "start", "end"),
    [(20, 5, 0, 0.0), (20, 0, 0, 0.1), (20, 4, 6, 0.05), (20, 20, 0, 0.0), (20, 0, 3, 0.0)],
)
def test_the_default_against_the_oracle(options, shape, total, warmup, start, end):
    end = 0.0 if options.get("decay") == "constant" else end  # which refuses another
    schedule = WarmupSchedule(0.5, total, warmup, end_learning_rate=end, start_warmup_step=start, **options)
    expected = [oracle(step, 0.5, total, warmup, start, end, shape) for step in range(30)]
    np.testing.assert_allclose(rates(schedule, range(30)), expected, rtol=1e-5, atol=1e-7)


def test_the_default_has_no_jump_and_the_reference_has():
    long = {"learning_rate": 1.0, "num_train_steps": 1000, "num_warmup_steps": 100}
    smooth, jump = (rates(WarmupSchedule(**long, reference_jump=r), range(1001)) for r in (False, True))
    assert smooth[100] == 1.0
    assert np.max(np.abs(np.diff(smooth))) < 0.0101
    assert jump[99] - jump[100] == pytest.approx(0.09)


def test_steps_that_floats_cannot_tell_apart():
    start = 2**24
    schedule = WarmupSchedule(1.0, num_train_steps=start + 8, num_warmup_steps=4, start_warmup_step=start)
    steps = [start - 1, *range(start, start + 9), start + 9, 2**30]
    expected = [0.0, 0.0, 0.25, 0.5, 0.75, 1.0, 0.75, 0.5, 0.25, 0.0, 0.0, 0.0]
    assert rates(schedule, steps).tolist() == expected


def test_a_config_makes_the_same_schedule():
    schedule = WarmupSchedule(0.3, 50, 7, decay="polynomial", power=0.5, end_learning_rate=0.01, start_warmup_step=3)
    again = keras.optimizers.schedules.deserialize(
        json.loads(json.dumps(keras.optimizers.schedules.serialize(schedule)))
    )
    assert again.get_config() == schedule.get_config()
    np.testing.assert_array_equal(rates(again, range(60)), rates(schedule, range(60)))


def test_numbers_of_numpy():
    schedule = WarmupSchedule(0.3, np.int64(50), np.int32(7), start_warmup_step=np.int64(3))
    assert json.dumps(schedule.get_config()) == json.dumps(WarmupSchedule(0.3, 50, 7, start_warmup_step=3).get_config())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"decay": "square"}, "`decay` must be one of linear, polynomial, cosine, constant"),
        ({"decay": "linear", "power": 2.0}, "`power` needs decay='polynomial'"),
        ({"decay": "cosine", "power": 2.0}, "`power` needs decay='polynomial'"),
        ({"decay": "constant", "end_learning_rate": 1e-5}, "`end_learning_rate` must be 0 for a constant rate"),
        ({"num_train_steps": 0}, "`num_train_steps` must be an integer of at least 1"),
        ({"num_warmup_steps": 2.5}, "`num_warmup_steps` must be an integer"),
        ({"learning_rate": -1.0}, "`learning_rate` must be a number of at least 0"),
        ({"num_warmup_steps": 11}, "Warm-up must end within the run"),
    ],
)
def test_a_wrong_argument_is_one_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        WarmupSchedule(**{"learning_rate": 1.0, "num_train_steps": 10, **arguments})
