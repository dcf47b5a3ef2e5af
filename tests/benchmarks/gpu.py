"""Measures ALBERT on a GPU in bfloat16: this package and KerasHub on JAX and TensorFlow, transformers on PyTorch.

    python -m tests.benchmarks.gpu --output tests/benchmarks/results
    python -m tests.benchmarks.gpu --sides keras_hub torch --rows runs/gpu/gpu_2026-11-27_213000.jsonl
    python -m tests.benchmarks.gpu --sides ours --work training --profile
    python -m tests.benchmarks.gpu --sizes tiny --minutes 30          # tries everything, on a CPU too

Every side and size is a process of its own, one after another, and again in a second turn where time allows; what does
not fit into `--minutes` is skipped, and a row says so. Rows are written as lines of JSON as they come, and then shown
as a table, with those of earlier runs on the same machine that `--rows` names. All sides get the same full rows with a
mask, and train as classifiers with AdamW; `pretraining` is `fit` with LAMB, and the other kinds of work are commands of
this package (`gpu_commands.py`). Operations are those of the encoder's matrix products, three times as many to train.
Nothing is fetched; `gpu_wheels.txt` lists what has to be beside JAX, TensorFlow, PyTorch and transformers.

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
EXPORTS = ("saved_model", "saved_model_xla", "saved_model_flash")
# The kinds of work, and in which one the package on JAX is what others are compared with.
MARKS = {
    **{"inference": "inference", "training": "training", "pretraining": "pretraining"},
    **{"pretrain": "pretraining", "pretrain_mirrored": "pretraining", "finetune": ""},
    **dict.fromkeys(EXPORTS, "inference"),
}
ONCE = ("pretrain_mirrored", "finetune", *EXPORTS)  # not in the second turn
SHAPES = {
    "tiny": dict.fromkeys(MARKS, ("2x32",)),
    "base": {
        **dict.fromkeys(MARKS, ("256x128",)),
        **dict.fromkeys(("inference", "training"), ("256x128", "64x512")),
        "finetune": ("32x128",),
    },
    "xxlarge": {"inference": ("128x128", "32x512"), "training": ("64x128", "16x512")},
}
PASSES = {"inference": 1, "training": 3}  # with as many operations as the encoder's products have
STEPS = {"tiny": 2, "base": 20, "xxlarge": 5}  # timed together
# The kinds of work of each side. Variants of ours are not measured again in the second turn.
WORKS = {
    "ours": ("training", "inference", "pretraining"),
    "ours_tf": ("training", "inference", "pretrain", *ONCE),
    **dict.fromkeys(("keras_hub_tf", "torch", "keras_hub"), ("training", "inference")),
}
VARIANTS = {
    "ours_tf_in_a_loop": ("training",),
    **dict.fromkeys(("ours_tf_plain", "ours_plain", "ours_without_mask"), ("training", "inference")),
}
USUAL = ("ours", "ours_tf", "torch", "keras_hub_tf", "ours_tf_plain", "ours_tf_in_a_loop")
EXPECTED = 25.0  # seconds for a kind of work and shape, before the side has run
# Dense bfloat16 products, from the makers' data sheets.
DATA_SHEETS = {"H100": "989 TFLOP/s (SXM)", "H200": "989 TFLOP/s", "A100": "312 TFLOP/s", "L4": "121 TFLOP/s"}
# What the kinds of work are called among the programs that are compiled without a GPU.
WORK_OF_PROGRAMS = {
    **{"inference": "inference", "pretraining": "pretraining", "pretrain": "pretraining"},
    "saved_model_flash": "export",
}
ENVIRONMENT = {
    "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.92",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_OFFLINE": "1",
}
COLUMNS = (
    *("", "size", "work", "B x L", "ms", "lowest - highest", "tokens/s"),
    *("of ours on JAX", "of measured peak", "ms, estimate", "s until the first timed call", ""),
)


@dataclasses.dataclass
class Run:
    """What all processes share: the command line, the results, and how long each side took."""

    options: argparse.Namespace
    file: pathlib.Path
    end: float
    cache: str
    rows: list = dataclasses.field(default_factory=list)
    took: dict = dataclasses.field(default_factory=dict)

    def add(self, row: dict) -> None:
        """Prints a row, and appends it to the file of results."""
        self.rows.append(row)
        self.add_to(".jsonl", line := json.dumps(row) + "\n")
        print(line, end="", flush=True)

    def add_to(self, suffix: str, text: str) -> None:
        """Appends to a file beside the results."""
        with self.file.with_suffix(suffix).open("a", encoding="utf-8") as file:
            file.write(text)


def main() -> None:
    """Parses the command line and measures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", nargs="+", choices=SHAPES, default=["base"])
    parser.add_argument("--sides", nargs="+", choices=(*WORKS, *VARIANTS), default=USUAL)
    parser.add_argument("--work", nargs="+", choices=MARKS, default=list(MARKS))
    parser.add_argument("--shapes", nargs="+", help="instead of those of each size, such as 64x512")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--rows", nargs="+", type=pathlib.Path, default=[], help="files of earlier runs, .jsonl")
    parser.add_argument("--profile", action="store_true", help="print the kernels of the sides on JAX too")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "runs" / "gpu", help="folder of the results")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    end, name = time.monotonic() + 60 * options.minutes, f"gpu_{datetime.datetime.now():%Y-%m-%d_%H%M%S}.jsonl"
    with tempfile.TemporaryDirectory() as cache:  # a second turn compiles nothing anew on JAX
        run = Run(options, options.output / name, end, cache)
        run.rows = [json.loads(line) for file in options.rows for line in file.read_text().splitlines()]
        with contextlib.suppress(KeyboardInterrupt):
            measure(run)
    text = table(run.rows)
    run.add_to(".md", text)
    print(f"\n{text}", end="")


def measure(run: Run) -> None:
    """The peak, then each side of each size: first the products, then variants of ours, then further turns."""
    for card in process(run, "peak", "base", []):
        run.add(card)
    peers = [side for side in run.options.sides if side in WORKS]
    variants = [side for side in run.options.sides if side in VARIANTS]
    for turn in range(run.options.turns):
        for sides in (peers, variants if turn == 0 else []):
            for size in run.options.sizes:
                for side in sides:
                    measure_side(run, side, size, ONCE if turn else ())


def measure_side(run: Run, side: str, size: str, left_out: tuple[str, ...]) -> None:
    """The rows of one process, or one that says why there are none."""
    works = [work for work in {**WORKS, **VARIANTS}[side] if work in run.options.work and work in SHAPES[size]]
    tasks = [
        f"{work}:{shape}"
        for work in works
        if work not in left_out
        for shape in run.options.shapes or SHAPES[size][work]
    ]
    left, expected = run.end - time.monotonic(), len(tasks) * run.took.get((side, size), EXPECTED)
    if left < expected:
        run.add({"side": side, "size": size, "note": f"skipped: {left:.0f} s were left, {expected:.0f} s are needed"})
    elif tasks:
        begun = time.monotonic()
        for row in process(run, side, size, ["--work", *tasks]):
            run.add({"side": side, "size": size, **row})
        run.took[side, size] = (time.monotonic() - begun) / len(tasks)


def process(run: Run, side: str, size: str, arguments: list[str]) -> Iterator[dict]:
    """Runs a worker until it ends or time is up; yields its rows as they come."""
    command = [sys.executable, "-m", "tests.benchmarks.gpu_worker", side, "--config", json.dumps(config_of(size))]
    command += ["--steps", str(STEPS[size]), *arguments]
    backend = "tensorflow" if "_tf" in side else "jax"
    if run.options.profile and backend == "jax" and side not in ("peak", "torch"):
        command.append("--profile")
    environment = {**ENVIRONMENT, **os.environ, "KERAS_BACKEND": backend, "JAX_COMPILATION_CACHE_DIR": run.cache}
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
            run.add({"side": side, "size": size, "note": f"ended early: {reason}"})


def config_of(size: str) -> dict:
    """The fields of the config of that size, with the vocabulary of the texts for commands."""
    return AlbertConfig.from_preset(size if size == "tiny" else f"{size}_v2").replace(vocab_size=30000).to_dict()


def table(rows: list[dict]) -> str:
    """The Markdown of all rows: one for each side, size, work and shape, over all turns."""
    lines, peak, groups, estimates = [], 0.0, {}, {}
    for card in [row for row in rows if "flops" in row][:1]:
        peak, sheet = (
            card["flops"],
            next((text for name, text in DATA_SHEETS.items() if name in card["device"]), "unknown"),
        )
        estimates = estimates_for(card["device"])
        product = f"A product of {card['size']} x {card['size']} matrices ran at {peak / 1e12:.1f} TFLOP/s"
        lines.append(f"# ALBERT v2 in bfloat16 on {card['device']}, {datetime.date.today()}\n")
        lines.append(f"{card['versions']}. {product}, the peak below; data sheet: {sheet}.\n")
    for row in rows:
        if "seconds" in row:
            key = tuple(row[name] for name in ("side", "size", "work", "batch", "length"))
            groups.setdefault(key, []).append(row)
    seconds = {key: [value for row in group for value in row["seconds"]] for key, group in groups.items()}
    medians = {key: statistics.median(values) for key, values in seconds.items()}
    lines += [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    for key, (first, *_) in groups.items():
        (side, size, work, batch, length), median = key, medians[key]
        mark = medians.get(("ours", size, MARKS[work], batch, length))
        flops = batch * encoder_flops(AlbertConfig(**config_of(size)), length) * PASSES.get(work, 0)
        cells = (
            *(side, size, work, f"{batch} x {length}", f"{median * 1e3:.1f}"),
            *(f"{min(seconds[key]) * 1e3:.1f} - {max(seconds[key]) * 1e3:.1f}", f"{first['tokens'] / median:,.0f}"),
            *(f"{mark / median:.3f}" if mark else "", f"{flops / median / peak:.0%}" if flops and peak else ""),
            estimates.get((side, WORK_OF_PROGRAMS.get(work), f"{size}_v2", f"{batch} x {length}"), ""),
            *(f"{first['setup']:.0f}", first["note"]),
        )
        lines.append(f"| {' | '.join(cells)} |")
    notes = [row for row in rows if "seconds" not in row and "side" in row]
    lines += [f"| {row['side']} | {row['size']} {'| ' * 9}| {clean(row['note'])} |" for row in notes]
    return "\n".join(lines) + "\n"


def estimates_for(device: str) -> dict[tuple[str, ...], str]:
    """Milliseconds of programs by side, program, preset and shape, from `tools/accelerators/gpu_programs.md`."""
    text = (ROOT / "tools" / "accelerators" / "gpu_programs.md").read_text(encoding="utf-8")
    cells = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith(("| tensorflow", "| jax"))]
    sides = {"tensorflow": "ours_tf", "jax": "ours"}
    return {(sides[row[0]], *row[1:4]): row[-1] for row in cells if row[4].upper() in device}


def clean(text: str) -> str:
    """Text for a cell."""
    return " ".join(text.split()).replace("|", "/")[:300]


def last_error(log: str) -> str:
    """The last line of a process' messages, the name of an error where there is one."""
    lines = [line for line in log.splitlines() if line.strip()]
    named = [line for line in lines if "Error" in line.split(":")[0]]
    return (named or lines or ["no message"])[-1]


if __name__ == "__main__":
    main()
