"""Two workers train as one device does; when one dies or both are told to, they stop, and the same command goes on.

CI leaves out what `make test-cluster` has. `make soak` has more workers and hosts of their own.
"""

import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

import pytest

from albert_tf.trainer import load_recipe, pretrain
from tests.small_pipeline import small_recipe
from tests.trainer.runs import (
    LAUNCHER,
    PRETRAIN,
    largest_difference,
    losses,
    newest_step,
    start,
    start_workers,
    wait_for_checkpoint,
    write_recipe,
)

pytestmark = pytest.mark.exhaustive  # processes that wait for each other
STEPS = 40


def recipe_for(pipeline, strategy: str, **training) -> dict:
    training = {"num_train_steps": STEPS, "log_every": 5, "evaluate_every": 10, "save_every": 5, **training}
    recipe = small_recipe(pipeline, strategy=strategy, **training)
    recipe["model"] |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}  # masks differ between workers
    return recipe


def test_two_workers_of_which_one_is_killed_train_as_one_device(pipeline, tmp_path):
    file, run = write_recipe(tmp_path / "two.toml", recipe_for(pipeline, "multi_worker")), tmp_path / "two"
    chief, worker = start_workers(2, *PRETRAIN, file, "--output", run)
    wait_for_checkpoint(run, 10, chief)
    worker.kill()
    killed = time.monotonic()
    worker.communicate()
    said, _ = chief.communicate(timeout=120)
    assert time.monotonic() - killed < 60
    assert chief.returncode == 75, said
    sentence = next(line for line in said.splitlines() if line.startswith("albert-tf: "))
    assert re.search(r"Lost worker 1 \(127.0.0.1:\d+\).*same command", sentence)
    assert "Traceback" not in said
    assert not (run / "model").exists()

    again = start(sys.executable, LAUNCHER, 2, *PRETRAIN, file, "--output", run)
    said, _ = again.communicate(timeout=300)
    assert again.returncode == 0, said

    one = write_recipe(tmp_path / "one.toml", recipe_for(pipeline, "one_device"))
    pretrain(load_recipe(one), tmp_path / "one", show_progress=False)
    assert largest_difference(run, tmp_path / "one") < 1e-5
    expected = losses(tmp_path / "one")
    assert losses(run) == [pytest.approx(entry, abs=1e-5) for entry in expected]
    assert len(expected) == STEPS // 5
    assert "val_masked_lm_loss" in expected[1]


def test_two_workers_whose_steps_are_programs_of_xla_train_as_one_device(pipeline, tmp_path):
    short = {"num_train_steps": 10, "evaluate_every": 10, "save_every": 10}
    recipe = recipe_for(pipeline, "multi_worker", jit_compile=True, **short)
    file = write_recipe(tmp_path / "two.toml", recipe)
    two = start(sys.executable, LAUNCHER, 2, *PRETRAIN, file, "--output", tmp_path / "two")
    said, _ = two.communicate(timeout=300)
    assert two.returncode == 0, said
    one = write_recipe(tmp_path / "one.toml", recipe_for(pipeline, "one_device", **short))
    pretrain(load_recipe(one), tmp_path / "one", show_progress=False)
    assert largest_difference(tmp_path / "two", tmp_path / "one") < 1e-5
    assert losses(tmp_path / "two") == [pytest.approx(entry, abs=1e-5) for entry in losses(tmp_path / "one")]


@pytest.mark.cluster
def test_two_workers_that_are_told_to_stop_do_so_at_the_same_step(pipeline, tmp_path):
    recipe = recipe_for(pipeline, "multi_worker", num_train_steps=10_000)
    file, run = write_recipe(tmp_path / "two.toml", recipe), tmp_path / "two"
    stopped = start(sys.executable, LAUNCHER, 2, *PRETRAIN, file, "--output", run)
    wait_for_checkpoint(run, 5, stopped)
    stopped.send_signal(signal.SIGINT)
    said, _ = stopped.communicate(timeout=120)
    assert stopped.returncode == 130, said
    steps = re.findall(r"[01]: albert-tf: Interrupted at step (\d+); the state was saved", said)
    assert len(steps) == 2
    assert len(set(steps)) == 1


def workers_of(launcher: subprocess.Popen) -> list[int]:
    """The process ids of the workers that a launcher has started."""
    threads = pathlib.Path(f"/proc/{launcher.pid}/task").glob("*/children")
    return [int(child) for file in threads for child in file.read_text().split()]


@pytest.mark.cluster
@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc")
def test_three_workers_of_which_one_dies_five_times_end_by_themselves_with_the_same_bits(pipeline, tmp_path):
    recipe = recipe_for(pipeline, "multi_worker", num_train_steps=80, evaluate_every=40, batch_size=12)
    file, chance = write_recipe(tmp_path / "three.toml", recipe), random.Random(time.time())
    whole, run = tmp_path / "whole", tmp_path / "killed"
    done = start(sys.executable, LAUNCHER, 3, *PRETRAIN, file, "--output", whole)
    said, _ = done.communicate(timeout=170)
    assert done.returncode == 0, said

    launcher = start(sys.executable, LAUNCHER, "--restarts", 5, 3, *PRETRAIN, file, "--output", run)
    dead: set[int] = set()
    for kill in range(5):
        if kill in (1, 2, 4):  # while they start
            time.sleep(chance.uniform(0.5, 3))
        else:
            wait_for_checkpoint(run, newest_step(run) + 5, launcher, seconds=100)
            time.sleep(chance.uniform(0, 0.2))
        while len(alive := set(workers_of(launcher)) - dead) < 3:
            assert launcher.poll() is None, launcher.communicate()[0]
            time.sleep(0.05)
        victim = chance.choice(sorted(alive))
        os.kill(victim, signal.SIGKILL)
        dead |= alive
    said, _ = launcher.communicate(timeout=170)
    assert launcher.returncode == 0, said
    assert re.findall(r"was killed by SIGKILL; .* restart (\d) of 5", said) == list("12345"), said
    assert largest_difference(run, whole) == 0
    assert losses(run) == losses(whole)
