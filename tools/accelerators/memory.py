"""Memory of pretraining steps and the largest batches that fit, as the compilers of TPUs and of GPUs say.

    make tpu-memory gpu-memory

writes `tpu_memory.md` and `gpu_memory.md`, for half an hour each on two cores; what was measured is kept in `build/`.
"""

import functools
import json
import pathlib
import sys
from typing import NamedTuple
from unittest import mock

import jax

from albert_tf import AlbertConfig
from albert_tf.layers import kernels
from tools.accelerators import gpus, steps, tpus

FOLDER = pathlib.Path(__file__).parent
MEASURED = FOLDER.parents[1] / "build"
REPLICAS = 8  # of TPUs
GIB, MIB = 2**30, 2**20
OPTIONS = {"loop": {"scan_layers": True}, "block": {"remat": "block"}, "none": {}}
NAMES = {"loop": "`scan_layers = true`", "block": '`remat = "block"`', "none": "neither"}
# Numbers of rows that fit well into a v5p and an H100: where memory is short, the compiler recomputes by itself.
ROWS = {"base_v2": 64, "large_v2": 32, "xlarge_v2": 16, "xxlarge_v2": 12}
# Weights, two moments and gradients, in float32.
BYTES_PER_PARAMETER = 4 * 4
# Cards of this many gigabytes, of which TensorFlow uses about this part.
CARDS, USABLE = (24, 40, 80, 141), 0.92


class Need(NamedTuple):
    """Bytes that a chip needs for a step: `fixed`, and `per_row`."""

    fixed: float
    per_row: float

    def rows(self, usable: float) -> int:
        """How many rows fit."""
        return max(0, int((usable - self.fixed) // self.per_row))


def measured(kind: str, size: str, way: str, dtype: str) -> int:
    """Bytes that a program needs, negative if it does not fit; compiled unless that is known."""
    key, file = f"{size} {way} {dtype} {ROWS[size]}", MEASURED / f"{kind}_memory.json"
    known = json.loads(file.read_text()) if file.exists() else {}
    if key not in known:
        from tools.accelerators import tensorflow_step

        make = functools.partial(steps.pretraining, size, dtype=dtype, **OPTIONS[way])
        topology = gpus.topology("h100") if kind == "gpu" else tpus.slice_of("v5p", REPLICAS)
        lacks = kernels.lacks_flash_attention() if kind == "tpu" else ""
        try:
            with mock.patch.object(kernels, "lacks_flash_attention", return_value=lacks):
                known[key] = tensorflow_step.compiled(make, ROWS[size], topology)[0].memory
        except jax.errors.JaxRuntimeError as error:
            known[key] = -tpus.out_of_memory(error)[0]
        MEASURED.mkdir(exist_ok=True)
        file.write_text(json.dumps(known, indent=1))
    return known[key]


def line(kind: str, size: str, way: str, dtype: str, usable: list[float]) -> tuple[str, ...]:
    """A row of the table: what a preset needs, and how many rows fit on each chip."""
    fixed = BYTES_PER_PARAMETER * AlbertConfig.from_preset(size).num_parameters("pretraining")
    needed = Need(fixed, (measured(kind, size, way, dtype) - fixed) / ROWS[size])
    fits = (f"{needed.rows(size_of_chip):,}" for size_of_chip in usable)
    precision = (dtype.removeprefix("mixed_"),) if kind == "gpu" else ()
    return f"`{size}`", *precision, NAMES[way], f"{fixed / GIB:.2f}", f"{needed.per_row / MIB:,.0f}", *fits


def main(kind: str) -> None:
    """Writes the table of all presets."""
    if kind == "tpu":
        chips = {chip: float(tpus.usable_memory(chip)) for chip in tpus.TOPOLOGIES}
        columns = {f"{chip}, {size / GIB:.4g} GiB": size for chip, size in chips.items()}
        ways, dtypes, head = tuple(OPTIONS), (steps.DTYPE,), ("preset", "way")
    else:
        columns = {f"{size} GB": size * 1e9 * USABLE for size in CARDS}
        ways, dtypes, head = ("none", "block"), (steps.DTYPE, "float32"), ("preset", "precision", "way")
    titles = (*head, "GiB without rows", "MiB a row", *columns)
    cases = ((size, way, dtype) for size in ROWS for dtype in dtypes for way in ways)
    lines = [titles, ["---"] * len(titles), *(line(kind, *case, list(columns.values())) for case in cases)]
    text = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    chip, length = "GPU" if kind == "gpu" else "chip", steps.PRETRAINING_LENGTH
    table = f"# Memory of a {chip}, and rows of {length} tokens that fit\n\n{text}\n"
    (FOLDER / f"{kind}_memory.md").write_text(table, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
