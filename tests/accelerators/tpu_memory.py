"""Memory of pretraining steps on TPUs and the largest batches that fit, as the compiler says; writes `tpu_memory.md`.

`make tpu-memory` runs it, for half an hour on two cores; what was measured is kept in `build/tpu_memory.json`.
"""

import functools
import json
import pathlib
from typing import NamedTuple

import jax

from albert_tf import AlbertConfig
from tests.accelerators import steps, tpus

ROOT = pathlib.Path(__file__).parents[2]
MEASURED, TABLE = ROOT / "build" / "tpu_memory.json", ROOT / "tests" / "accelerators" / "tpu_memory.md"
REPLICAS = 8
GIB, MIB = 2**30, 2**20
WAYS = {"loop": {"scan_layers": True}, "block": {"remat": "block"}, "none": {}}
# Numbers of rows that fit well into a v5p: where memory is short, the compiler recomputes by itself.
ROWS = {"base_v2": 64, "large_v2": 32, "xlarge_v2": 16, "xxlarge_v2": 12}
# Weights, two moments and gradients, in float32.
BYTES_PER_PARAMETER = 4 * 4


class Need(NamedTuple):
    """Bytes that a chip needs for a step: `fixed`, and `per_row`."""

    fixed: float
    per_row: float

    def rows(self, usable: int) -> int:
        """How many rows fit."""
        return max(0, int((usable - self.fixed) // self.per_row))


def measured(size: str, way: str, rows: int, chip: str = "v5p") -> int:
    """Bytes that a program needs, negative if it does not fit; compiled unless that is known."""
    key = f"{size} {way} {rows} {chip}"
    known = json.loads(MEASURED.read_text()) if MEASURED.exists() else {}
    if key not in known:
        from tests.accelerators import tensorflow_step

        make = functools.partial(steps.pretraining, size, **WAYS[way])
        try:
            known[key] = tensorflow_step.compiled(make, rows, tpus.slice_of(chip, REPLICAS))[0].memory
        except jax.errors.JaxRuntimeError as error:
            if not isinstance(reason := tpus.does_not_fit(error), tpus.DoesNotFit):
                raise
            known[key] = -reason.needed
        MEASURED.parent.mkdir(exist_ok=True)
        MEASURED.write_text(json.dumps(known, indent=1))
    return known[key]


def need(size: str, way: str) -> Need:
    """What steps of a preset need."""
    fixed, rows = BYTES_PER_PARAMETER * AlbertConfig.from_preset(size).num_parameters("pretraining"), ROWS[size]
    return Need(fixed, (measured(size, way, rows) - fixed) / rows)


def line(size: str, way: str, usable: dict[str, int]) -> tuple[str, ...]:
    """A row of the table: what a preset needs, and how many rows fit on each chip."""
    needed = need(size, way)
    names = {"loop": "`scan_layers = true`", "block": '`remat = "block"`', "none": "neither"}
    fits = (f"{needed.rows(bytes_of_chip):,}" for bytes_of_chip in usable.values())
    return f"`{size}`", names[way], f"{needed.fixed / GIB:.2f}", f"{needed.per_row / MIB:,.0f}", *fits


def main() -> None:
    """Writes the table of all presets."""
    usable = {chip: tpus.usable_memory(chip) for chip in tpus.TOPOLOGIES}
    chip_titles = (f"{chip}, {size / GIB:.4g} GiB" for chip, size in usable.items())
    titles = ("preset", "way", "GiB without rows", "MiB a row", *chip_titles)
    lines = [titles, ["---"] * len(titles), *(line(size, way, usable) for size in ROWS for way in WAYS)]
    text = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    TABLE.write_text(
        f"# Memory of a chip, and rows of {steps.PRETRAINING_LENGTH} tokens that fit\n\n{text}\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
