"""Proves that two mirrored devices compute what one does: weights, logs, a last batch that leaves one device empty."""

import json
import pathlib

import numpy as np
import pytest

pytestmark = pytest.mark.exhaustive  # a process of its own with many fits on two devices
# Updates of each run.
RUNS = {
    **dict.fromkeys(("pretraining", "keras_loss", "by_weights", "distilled", "programs_of_keras_optimizer"), 12),
    **dict.fromkeys(("microbatches_of_one", "overflowing", "own_loss", "programs", "programs_of_scaled_loss"), 10),
    "own_classification_loss": 42,
}


@pytest.fixture(scope="module")
def results(run_python):
    script = pathlib.Path(__file__).with_name("mirrored_run.py")
    return json.loads(run_python(script, timeout=900).stdout.splitlines()[-1])


@pytest.mark.parametrize("name", RUNS)
def test_weights_logs_and_gradients(name, results):
    one, two = results[name]["one"], results[name]["two"]
    assert (
        max(np.max(np.abs(np.subtract(two["weights"][path], one["weights"][path]))) for path in one["weights"]) < 1e-5
    )
    assert two["history"] == {log: pytest.approx(values, abs=1e-5) for log, values in one["history"].items()}
    assert two["steps"] == one["steps"] == RUNS[name]
    assert two["norms"] == {path: pytest.approx(norm, abs=1e-5) for path, norm in one["norms"].items()}


@pytest.mark.parametrize("name", ["overflowing", "programs_of_scaled_loss"])
def test_an_overflow_skips_the_step_on_both_devices(name, results):
    one, two = results[name]["one"], results[name]["two"]
    assert two["scale"] == one["scale"] < 3e38


def test_programs_predict_the_same(results):
    one, two = results["predictions"]
    np.testing.assert_allclose(two, one, atol=1e-5, rtol=0)


def test_four_steps_in_one_call_are_the_same_steps(results):
    four, single = results["pretraining"]["four_steps_in_one"], results["pretraining"]["two"]
    assert four["weights"] == single["weights"]
    assert four["history"] == {name: single["history"][name] for name in four["history"]}


def test_the_logs_are_those_that_users_ask_for(results):
    own = ("loss", "masked_lm_loss", "masked_lm_accuracy", "sentence_order_loss", "sentence_order_accuracy")
    for name, logs in {"pretraining": own, "keras_loss": ("loss", "accuracy", "weighted")}.items():
        assert set(results[name]["one"]["history"]) == {*logs, *(f"val_{log}" for log in logs)}


def test_dropout_differs_between_devices(results):
    one, other = results["dropout"]["replicas"]  # of the same row
    assert np.max(np.abs(np.subtract(one, other))) > 1e-5


def test_equal_runs_with_dropout_give_equal_bits_and_remat_drops_the_same(results):
    run, again, remat = results["dropout"]["runs"]
    assert run == again
    for expected, found in zip(run, remat, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5, rtol=0)


def test_a_loss_that_returns_a_scalar(results):
    assert results["scalar_loss"].startswith("A loss must return one value per row")


def test_an_optimizer_steps_as_one_on_both_devices(results):
    result = results["optimizer_alone"]
    for single, copies in zip(result["single"], result["copies"], strict=True):
        assert len(copies) == 2
        for copy in copies:
            np.testing.assert_allclose(copy, single, atol=1e-6)
    for copies in result["slots"]:
        assert copies[0] == copies[1]
