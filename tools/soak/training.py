"""Run as a script, `make soak`: kills runs at random moments, and trains on more machines than the suite does.

Prints what it found; ends with 1 where weights or loss logs are not what they should be. Takes half an hour on two
cores, most of it for starting TensorFlow.

    python -m tools.soak.training [FOLDER] [NUMBER_OF_KILLS]
"""

import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

from tests.small_pipeline import REPOSITORY, make_small_pipeline, small_recipe
from tests.trainer.runs import (
    PRETRAIN,
    largest_difference,
    losses,
    newest_step,
    start,
    start_workers,
    wait_for_checkpoint,
    write_recipe,
)
from tools.soak.two_hosts import TwoHosts, two_hosts

STEPS = 2000
EXACT = 0.0
CLOSE = 1e-5


class Soak:
    """All runs below one folder."""

    def __init__(self, folder: pathlib.Path, seed: int):
        self.folder, self.random, self.failed = folder, random.Random(seed), False
        self.pipeline = make_small_pipeline(folder)

    def recipe(self, name: str, dropout: float = 0.1, **training) -> pathlib.Path:
        values = small_recipe(self.pipeline, **{"log_every": 10, "save_every": 20, "evaluate_every": 100, **training})
        values["model"] |= {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
        return write_recipe(self.folder / f"{name}.toml", values)

    def report(self, what: str, run: str, reference: str, allowed: float) -> None:
        """Compares two runs' weights and loss logs."""
        runs = self.folder / run, self.folder / reference
        weights = largest_difference(*runs)
        logs = [losses(run) for run in runs]
        same_lines = [entry.keys() for entry in logs[0]] == [entry.keys() for entry in logs[1]]
        log = max(abs(a[name] - b[name]) for a, b in zip(*logs) for name in a) if same_lines else float("inf")
        good = max(weights, log) <= allowed
        self.failed |= not good
        print(
            f"{what}: largest difference of weights {weights:.3g}, of {len(logs[0])} lines of the loss log {log:.3g} "
            f"(allowed {allowed:g}){'' if good else '  FAILED'}",
            flush=True,
        )

    def expect(self, what: str, is_so: bool) -> None:
        """Prints a finding that must hold."""
        self.failed |= not is_so
        print(f"{what}{'' if is_so else '  FAILED'}", flush=True)

    def finish(self, processes: list[subprocess.Popen]) -> list[str]:
        """Waits for runs that are to end well."""
        said = [process.communicate()[0] for process in processes]
        self.expect(
            f"ended with {[process.returncode for process in processes]}", not any(p.returncode for p in processes)
        )
        return said

    def kill_one_device(self, kills: int) -> None:
        """The same command, killed at random moments of start, training, evaluation and saving, until it ends."""
        file = self.recipe("one", num_train_steps=STEPS)
        self.finish([start(*PRETRAIN, file, "--output", self.folder / "one")])
        killed, run = [], self.folder / "one-killed"
        for target in sorted(self.random.sample(range(int(0.9 * STEPS)), kills)):
            process = start(*PRETRAIN, file, "--output", run)
            # Every fourth somewhere in the start, the others somewhere in training, evaluation or saving.
            starts = self.random.random() < 0.25
            deadline = time.monotonic() + self.random.uniform(0, 10) if starts else float("inf")
            while process.poll() is None and newest_step(run) <= target and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(self.random.uniform(0, 0.5))
            process.kill()
            process.communicate()
            killed.append(newest_step(run))
            self.expect(
                f"kill {len(killed)}: the newest checkpoint is {killed[-1]}", process.returncode == -signal.SIGKILL
            )
        self.finish([start(*PRETRAIN, file, "--output", run)])
        self.report(f"one device, killed {len(killed)} times in a row", "one-killed", "one", EXACT)

    def kill_one_of_two_workers(self, kills: int) -> None:
        """A worker is killed, the other stops with a sentence, and the same command goes on.

        Killed after a first checkpoint: while they connect, the other waits for a worker that may only be late.
        """
        steps = STEPS // 2
        file = self.recipe("two", num_train_steps=steps, strategy="multi_worker")
        self.finish(start_workers(2, *PRETRAIN, file, "--output", self.folder / "two"))
        run, seconds, said = self.folder / "two-killed", [], []
        for target in sorted(self.random.sample(range(int(0.8 * steps)), kills)):
            behind = max(target, newest_step(run))
            workers = start_workers(2, *PRETRAIN, file, "--output", run)
            dead = self.random.randrange(2)
            while workers[0].poll() is None and newest_step(run) <= behind:
                time.sleep(0.01)
            time.sleep(self.random.uniform(0, 0.5))
            workers[dead].kill()
            killed = time.monotonic()
            workers[dead].communicate()
            lines = workers[1 - dead].communicate()[0].splitlines()
            said.append(next((line for line in lines if line.startswith("albert-tf: ")), "NOTHING"))
            seconds.append(round(time.monotonic() - killed, 1))
        self.expect(f"two workers: one killed {kills} times, the other stopped after {seconds} s", max(seconds) < 60)
        self.expect(f"it said each time: {said[0]}", all("Lost " in line for line in said))
        workers = start_workers(2, *PRETRAIN, file, "--output", run)
        while workers[0].poll() is None and newest_step(run) <= 0.95 * steps:
            time.sleep(0.01)
        workers[1].terminate()
        said = [worker.communicate()[0] for worker in workers]
        self.expect("one was told to stop: " + said[0].strip().splitlines()[-1], "Interrupted at step" in said[0])
        self.expect("both ended with 143", all(worker.returncode == 143 for worker in workers))
        self.finish(start_workers(2, *PRETRAIN, file, "--output", run))
        self.report("two workers, one killed and told to stop again and again", "two-killed", "two", EXACT)

    def equal_machines(self) -> None:
        """Four processes, and two hosts with addresses of their own, against one device."""
        short = {"num_train_steps": 40, "evaluate_every": 20, "dropout": 0.0}  # masks differ between workers
        one, many = self.recipe("equal", **short), self.recipe("many", strategy="multi_worker", **short)
        self.finish([start(*PRETRAIN, one, "--output", self.folder / "equal")])
        self.finish(start_workers(4, *PRETRAIN, many, "--output", self.folder / "four"))
        self.report("four processes beside one device", "four", "equal", CLOSE)
        try:
            with two_hosts() as hosts:
                self.finish(start_on(hosts, many, self.folder / "hosts"))
                self.report("two hosts with addresses of their own beside one device", "hosts", "equal", CLOSE)
                self.cut_cable(hosts)
        except OSError as error:
            print(f"two hosts: not tried, {error}")

    def cut_cable(self, hosts: TwoHosts) -> None:
        """Both workers stop when neither hears of the other any more."""
        file, run = self.recipe("long", num_train_steps=10 * STEPS, strategy="multi_worker"), self.folder / "cut"
        workers = start_on(hosts, file, run)
        wait_for_checkpoint(run, 20, workers[0])
        hosts.cut_cable()
        cut = time.monotonic()
        said = [worker.communicate()[0].strip().splitlines()[-1] for worker in workers]
        seconds = time.monotonic() - cut
        self.expect(f"the cable between two hosts was cut: both stopped after {seconds:.1f} s", seconds < 60)
        self.expect(f"they said: {said}", all("Lost " in line for line in said))


def start_on(hosts: TwoHosts, recipe: pathlib.Path, run: pathlib.Path) -> list[subprocess.Popen]:
    """Starts a worker on each host."""
    environment = {"PYTHONPATH": str(REPOSITORY), "TF_CPP_MIN_LOG_LEVEL": "3"}
    pipes = {"env": environment, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    command = [*PRETRAIN, str(recipe), "--output", str(run)]
    return [hosts.start(command, index, **pipes) for index in range(2)]


def main() -> None:
    """Runs the command line."""
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="soak-"))
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    folder.mkdir(parents=True, exist_ok=True)
    soak = Soak(folder, seed=int(time.time()))
    soak.equal_machines()
    soak.kill_one_device(kills)
    soak.kill_one_of_two_workers(kills)
    sys.exit(int(soak.failed))


if __name__ == "__main__":
    main()
