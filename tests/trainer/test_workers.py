"""Two workers train as one device does; one that dies or is told to stop stops both, and the same command goes on."""

import re
import sys
import time

import pytest

from albert_tf.trainer import load_recipe, pretrain
from tests.small_road import small_recipe
from tests.trainer.runs import (
    LAUNCHER,
    PRETRAIN,
    largest_difference,
    losses,
    start,
    start_workers,
    wait_for_checkpoint,
    write_recipe,
)

STEPS = 40


def recipe_for(road, strategy: str) -> dict:
    """No dropout: its masks depend on the number of devices."""
    training = {"num_train_steps": STEPS, "log_every": 5, "evaluate_every": 10, "save_every": 5, "strategy": strategy}
    recipe = small_recipe(road, **training)
    recipe["model"] |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return recipe


def run_with_launcher(file, run):
    process = start(sys.executable, LAUNCHER, 2, *PRETRAIN, file, "--output", run)
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 0, said


@pytest.fixture(scope="module")
def two_workers(road, tmp_path_factory):
    """The recipe's file, and the folder of a run of two workers that was never stopped."""
    folder = tmp_path_factory.mktemp("workers")
    file = write_recipe(folder / "two.toml", recipe_for(road, "multi_worker"))
    run_with_launcher(file, folder / "two")
    return file, folder / "two"


def test_two_workers_train_as_one_device(road, two_workers, tmp_path):
    one = write_recipe(tmp_path / "one.toml", recipe_for(road, "one_device"))
    pretrain(load_recipe(one), tmp_path / "one", show_progress=False)
    assert largest_difference(two_workers[1], tmp_path / "one") < 1e-5
    expected = [pytest.approx(entry, abs=1e-5) for entry in losses(tmp_path / "one")]
    assert losses(two_workers[1]) == expected
    assert len(expected) == STEPS // 5
    assert "val_masked_lm_loss" in losses(two_workers[1])[1]


def test_a_run_goes_on_to_the_same_bits_after_a_worker_has_died_and_one_was_told_to_stop(two_workers, tmp_path):
    file, run = two_workers[0], tmp_path / "run"
    chief, worker = start_workers(2, *PRETRAIN, file, "--output", run)
    wait_for_checkpoint(run, 10, chief)
    worker.kill()
    killed = time.monotonic()
    worker.communicate()
    said, _ = chief.communicate(timeout=120)
    assert time.monotonic() - killed < 60
    assert chief.returncode == 2, said
    sentence = next(line for line in said.splitlines() if line.startswith("albert-tf: "))
    assert re.search(r"must stay alive.*worker 1 \(127.0.0.1:\d+\).*same command", sentence)
    assert "Traceback" not in said

    workers = start_workers(2, *PRETRAIN, file, "--output", run)
    wait_for_checkpoint(run, 20, workers[0])
    workers[1].terminate()
    said = [worker.communicate(timeout=60)[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], said
    step = re.search(rf"Stopped at step (\d+) of {STEPS}.*same command", said[0])[1]
    assert (run / f"checkpoints/step-{step}.json").exists()
    assert not (run / "model").exists()

    run_with_launcher(file, run)
    assert largest_difference(run, two_workers[1]) == 0
    assert losses(run) == losses(two_workers[1])
