"""Runs of `albert-tf pretrain` in processes of their own, and what they leave."""

import dataclasses
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

import numpy as np
import safetensors.numpy

from albert_tf.trainer.run_folder import Speed, read_metrics
from tests.small_pipeline import REPOSITORY

PRETRAIN = [sys.executable, "-c", "from albert_tf.cli.app import main; main()", "pretrain"]
LAUNCHER = REPOSITORY / "training/launch/workers.py"


def write_recipe(file: pathlib.Path, values: dict) -> pathlib.Path:
    """Writes the values of a recipe as TOML."""
    sections = [
        "\n".join([f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in section.items()), ""])
        for name, section in values.items()
    ]
    file.write_text("\n".join(sections), encoding="utf-8")
    return file


def start(*command, **environment) -> subprocess.Popen:
    """Starts a process that finds the package."""
    return subprocess.Popen(
        [str(part) for part in command],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "TF_CPP_MIN_LOG_LEVEL": "3", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def free_addresses(count: int) -> tuple[str, ...]:
    """As many addresses of this machine that nobody listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    addresses = tuple(f"127.0.0.1:{one.getsockname()[1]}" for one in sockets)
    for one in sockets:
        one.close()
    return addresses


def start_workers(count: int, *command) -> list[subprocess.Popen]:
    """Starts the same command as so many workers."""
    cluster = {"worker": free_addresses(count)}
    tasks = [{"type": "worker", "index": index} for index in range(count)]
    return [start(*command, TF_CONFIG=json.dumps({"cluster": cluster, "task": task})) for task in tasks]


def wait_for_checkpoint(run: pathlib.Path, step: int, process: subprocess.Popen, seconds: float = 240) -> None:
    """Returns when a run has saved this step; fails where it ends before."""
    deadline = time.monotonic() + seconds
    while not (run / f"checkpoints/step-{step}").exists():
        if process.poll() is not None:
            raise AssertionError(f"the run ended before step {step}: {process.communicate()[0]}")
        if time.monotonic() > deadline:
            raise AssertionError(f"step {step} was not saved in {seconds} seconds")
        time.sleep(0.01)


def newest_step(run: pathlib.Path) -> int:
    """The newest checkpoint's step; 0 where there is none."""
    return max((int(folder.name.split("-")[1]) for folder in (run / "checkpoints").glob("step-*")), default=0)


def weights(run: pathlib.Path) -> dict[str, np.ndarray]:
    """The trained model's arrays."""
    return safetensors.numpy.load_file(run / "model/model.safetensors")


def losses(run: pathlib.Path) -> list[dict[str, float]]:
    """The loss log: all that `metrics.jsonl` says but the speed."""
    entries, speed = read_metrics(run / "metrics.jsonl"), {field.name for field in dataclasses.fields(Speed)}
    return [{name: value for name, value in entry.items() if name not in speed} for entry in entries]


def largest_difference(run: pathlib.Path, other: pathlib.Path) -> float:
    """Between two runs' weights."""
    there = weights(other)
    return max(float(np.max(np.abs(array - there[name]))) for name, array in weights(run).items())
