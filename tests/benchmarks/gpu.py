"""Measures ALBERT on a GPU in bfloat16: inference and training, ours and KerasHub on JAX, transformers on PyTorch.

    python -m tests.benchmarks.gpu --output tests/benchmarks/results
    python -m tests.benchmarks.gpu --sizes base --sides ours --profile

Every side and size is a process of its own, one after another, and again in a second turn where time allows; what does
not fit into `--minutes` is skipped, and a row says so. Rows are written as they come. All sides get the same full rows
with a mask, and train as classifiers with AdamW. Operations are those of the encoder's matrix products, three times as
many in training. Nothing is fetched; `gpu_wheels.txt` lists what has to be beside JAX, PyTorch and transformers.

Letters: B batch, L sequence.
"""

import argparse
import contextlib
import dataclasses
import datetime
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator

from albert_tf.config import AlbertConfig
from albert_tf.costs import encoder_flops

ROOT = pathlib.Path(__file__).parents[2]
SHAPES = {
    "tiny": {"inference": ("2x16",), "training": ("2x16",)},
    "base": {"inference": ("256x128", "64x512"), "training": ("256x128", "64x512")},
    "xxlarge": {"inference": ("128x128", "32x512"), "training": ("64x128", "16x512")},
}
STEPS = {"tiny": 2, "base": 20, "xxlarge": 5}  # timed together
SIDES = ("ours", "keras_hub", "torch")
VARIANTS = ("ours_without_mask", "ours_plain")
EXPECTED = 45.0  # seconds of a process, before one of its kind has run
# Dense bfloat16 products, from the makers' data sheets.
DATA_SHEETS = {"H100": "989 TFLOP/s (SXM)", "H200": "989 TFLOP/s", "A100": "312 TFLOP/s", "L4": "121 TFLOP/s"}
ENVIRONMENT = {
    "KERAS_BACKEND": "jax",
    # A second turn, or a second run on the same machine, compiles nothing anew.
    "JAX_COMPILATION_CACHE_DIR": str(pathlib.Path(tempfile.gettempdir()) / "albert_tf_gpu_benchmark"),
    "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.92",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_OFFLINE": "1",
}
HEADER = "| | size | work | B x L | ms | lowest - highest | tokens/s | of measured peak | |\n" + "|---" * 9 + "|"


@dataclasses.dataclass
class Run:
    """What all processes share: the command line, the results, and how long each side took."""

    options: argparse.Namespace
    file: pathlib.Path
    end: float
    peak: float = 0.0
    took: dict = dataclasses.field(default_factory=dict)

    def write(self, line: str) -> None:
        """Prints a line and appends it to the file of results."""
        print(line, flush=True)
        with self.file.open("a", encoding="utf-8") as file:
            print(line, file=file)

    def add_to(self, suffix: str, text: str) -> None:
        """Appends to a file beside the results."""
        with self.file.with_suffix(suffix).open("a", encoding="utf-8") as file:
            file.write(text)

    def note(self, side: str, size: str, text: str) -> None:
        """Writes a row without figures."""
        self.write(f"| {side} | {size} | | | | | | | {' '.join(text.split()).replace('|', '/')[:300]} |")


def main() -> None:
    """Parses the command line and measures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", nargs="+", choices=SHAPES, default=["base", "xxlarge"])
    parser.add_argument("--sides", nargs="+", choices=(*SIDES, *VARIANTS), default=[*SIDES, *VARIANTS])
    parser.add_argument("--work", nargs="+", choices=("inference", "training"), default=["inference", "training"])
    parser.add_argument("--shapes", nargs="+", help="instead of those of each size, such as 64x512")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=7.5)
    parser.add_argument("--profile", action="store_true", help="print the kernels of the sides on JAX too")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "runs" / "gpu", help="folder of the results")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * options.minutes
    measure(Run(options, options.output / f"gpu_{datetime.datetime.now():%Y-%m-%d_%H%M%S}.md", end))


def measure(run: Run) -> None:
    """The peak, then each side of each size: first the products, then variants of ours, then further turns."""
    cards = list(process(run, "peak", "base", []))
    if not cards:
        return
    card = cards[0]
    run.peak = card["flops"]
    sheet = next((text for name, text in DATA_SHEETS.items() if name in card["device"]), "unknown")
    run.write(f"# ALBERT v2 in bfloat16 on {card['device']}, {datetime.date.today()}\n")
    product = f"A product of {card['size']} x {card['size']} matrices ran at {run.peak / 1e12:.1f} TFLOP/s"
    run.write(f"{card['versions']}. {product}, the peak below; data sheet: {sheet}.\n\n{HEADER}")
    peers = [side for side in run.options.sides if side in SIDES]
    variants = [side for side in run.options.sides if side in VARIANTS]
    for turn in range(run.options.turns):
        for sides in (peers, variants if turn == 0 else []):
            for size in run.options.sizes:
                for side in sides:
                    measure_side(run, side, size)


def measure_side(run: Run, side: str, size: str) -> None:
    """The rows of one process, or one that says why there are none."""
    left, expected = run.end - time.monotonic(), run.took.get((side, size), EXPECTED)
    if left < expected:
        run.note(side, size, f"skipped: {left:.0f} s were left, {expected:.0f} s are needed")
        return
    begun, config = time.monotonic(), AlbertConfig.from_preset(size if size == "tiny" else f"{size}_v2")
    tasks = [f"{work}:{shape}" for work in run.options.work for shape in run.options.shapes or SHAPES[size][work]]
    for row in process(run, side, size, ["--work", *tasks]):
        run.write(table_row(run, side, size, config, row))
    run.took[side, size] = time.monotonic() - begun


def process(run: Run, side: str, size: str, arguments: list[str]) -> Iterator[dict]:
    """Runs a worker until it ends or time is up; yields its rows as they come."""
    config = AlbertConfig.from_preset(size if size == "tiny" else f"{size}_v2").to_dict()
    command = [sys.executable, "-m", "tests.benchmarks.gpu_worker", side, "--config", json.dumps(config)]
    command += ["--steps", str(STEPS[size]), *arguments]
    if run.options.profile and side not in ("peak", "torch"):
        command.append("--profile")
    environment = {**ENVIRONMENT, **os.environ}
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=ROOT, env=environment) as worker,
    ):
        timer = threading.Timer(max(1.0, run.end - time.monotonic()), worker.kill)
        timer.start()
        try:
            for line in worker.stdout:
                if line.startswith("row "):
                    yield json.loads(line[4:])
                else:
                    run.add_to(".profile.txt", line)
        finally:
            timer.cancel()
        if worker.wait():
            log.seek(0)
            text = log.read()
            run.add_to(".errors.txt", f"=== {side} {size}\n{text}\n")
            reason = "time was up" if worker.returncode == -signal.SIGKILL else last_error(text)
            run.note(side, size, f"ended early: {reason}")


def table_row(run: Run, side: str, size: str, config: AlbertConfig, row: dict) -> str:
    """The Markdown of what a worker measured."""
    batch, length, seconds = row["batch"], row["length"], row["seconds"]
    median = statistics.median(seconds)
    flops = batch * encoder_flops(config, length) * (3 if row["work"] == "training" else 1)
    spread = f"{min(seconds) * 1e3:.1f} - {max(seconds) * 1e3:.1f}"
    return (
        f"| {side} | {size} | {row['work']} | {batch} x {length} | {median * 1e3:.1f} | {spread} | "
        f"{batch * length / median:,.0f} | {flops / median / run.peak:.0%} | {row['note']} |"
    )


def last_error(log: str) -> str:
    """The last line of a process' messages, the name of an error where there is one."""
    lines = [line for line in log.splitlines() if line.strip()]
    named = [line for line in lines if "Error" in line.split(":")[0]]
    return (named or lines or ["no message"])[-1]


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
