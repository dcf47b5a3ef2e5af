"""Programs for GPUs: which are compiled, and the table of what they do.

`make gpu-programs` compiles all of them, writes `gpu_programs.md` and prints the kinds of kernels that take longest;
`make test-gpu` compares.
"""

import contextlib
import functools
import pathlib
import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from unittest import mock

import keras

from albert_tf.layers import kernels
from tools.accelerators import gpus, steps
from tools.accelerators.programs import Program

TABLE = pathlib.Path(__file__).parent / "gpu_programs.md"
TITLES = ("backend", "program", "preset", "shape", "GPU", "kernels", "GB moved", "GiB temporary", "ms, estimate")
BACKEND = keras.backend.backend()


@contextlib.contextmanager
def as_with_a_gpu() -> Iterator[None]:
    """Has the package choose the kernels of GPUs."""
    with (
        mock.patch.object(kernels, "lacks_flash_attention", return_value=""),
        mock.patch.object(kernels, "runs_on", lambda kind: kind == "gpu"),
    ):
        yield


SHAPES_OF_EXPORTS = [(rows, length) for rows in (32, 64, 128) for length in (128, 256, 512)]


class Case(NamedTuple):
    """A program: what it does, for which preset, rows and length, and for which GPU."""

    work: str
    size: str
    rows: int
    length: int
    gpu: str = "h100"

    @property
    def key(self) -> tuple[str, ...]:
        """The first columns of its line."""
        return BACKEND, self.work, self.size, f"{self.rows} x {self.length}", self.gpu

    def compiled(self) -> Program:
        """Its program."""
        task, *dropout = self.work.split(" without ")
        task, shapes = ("inference", {"shapes": SHAPES_OF_EXPORTS}) if task == "export" else (task, {})
        make = functools.partial(getattr(steps, task), self.size, self.length, **({"dropout": 0.0} if dropout else {}))
        if BACKEND == "jax":
            from tools.accelerators import jax_step as step
        else:
            from tools.accelerators import tensorflow_step as step
        with as_with_a_gpu():
            return step.compiled(make, self.rows, gpus.topology(self.gpu), **shapes)[0]


CASES = [
    Case("pretraining", "base_v2", 256, 128),
    Case("pretraining", "base_v2", 64, 512),
    Case("finetuning", "base_v2", 32, 128),
    Case("finetuning without dropout", "base_v2", 32, 128),
    Case("inference", "base_v2", 256, 128),
    Case("inference", "base_v2", 64, 512),
    Case("pretraining", "xxlarge_v2", 16, 512),
    Case("inference", "xxlarge_v2", 32, 512),
    Case("pretraining", "base_v2", 256, 128, "a100"),
    Case("pretraining", "base_v2", 256, 128, "b200"),
    *([Case("export", "base_v2", 64, 512)] if BACKEND == "tensorflow" else []),
]


def line(case: Case, program: Program) -> tuple[str, ...]:
    """The cells of a program."""
    found = gpus.estimate(program, case.gpu)
    cells = f"{found.kernels:,}", f"{found.bytes / 1e9:.2f}", f"{program.temporary / 2**30:.2f}"
    return *case.key, *cells, f"{found.seconds * 1e3:.2f}"


def lines() -> dict[tuple[str, ...], tuple[str, ...]]:
    """The lines of the table by their first columns."""
    if not TABLE.exists():
        return {}
    cells = [tuple(row.strip("| ").split(" | ")) for row in TABLE.read_text(encoding="utf-8").splitlines()]
    return {row[:5]: row for row in cells if len(row) == len(TITLES) and row != TITLES and "---" not in row}


def write(rows: list[tuple[str, ...]]) -> None:
    """Writes the table."""
    text = "\n".join("| " + " | ".join(cells) + " |" for cells in (TITLES, ["---"] * len(TITLES), *rows))
    TABLE.write_text(f"# Programs for GPUs\n\n{text}\n", encoding="utf-8")


def kinds(case: Case, program: Program, count: int = 12) -> str:
    """The kinds of kernels that take longest: their number, gigabytes and milliseconds."""
    found: dict[str, list[Any]] = {}
    for kernel in program.kernels():
        found.setdefault(re.sub(r"^loop_|^input_", "", kernel.kind), []).append(kernel)
    rows = [
        (sum(gpus.seconds_of(k, case.gpu) for k in some) * 1e3, kind, len(some), sum(k.bytes for k in some) / 1e9)
        for kind, some in found.items()
    ]
    return "\n".join(
        f"{ms:8.2f} ms {size:8.2f} GB {number:5} {kind}" for ms, kind, number, size in sorted(rows)[: -count - 1 : -1]
    )


def main() -> None:
    """Compiles the programs of this backend and writes their lines."""
    known = {key: cells for key, cells in lines().items() if key[0] != BACKEND}
    for case in CASES:
        program = case.compiled()
        known[case.key] = line(case, program)
        print(*known[case.key], sep=" | ")
        print(kinds(case, program), flush=True)
        write(list(known.values()))


if __name__ == "__main__":
    main()
