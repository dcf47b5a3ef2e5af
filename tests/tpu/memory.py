"""Memory of pretraining steps on TPUs and the largest batches that fit, as the compiler says; writes `memory.md`.

`make tpu-memory` runs it, for hours on two cores; what was measured is kept in `build/tpu_memory.json`. The compiler
takes many minutes for a program of 12 or 24 layers, so programs of 2 and of 3 say what a layer keeps.
"""

import functools
import json
import pathlib
from typing import NamedTuple

from albert_tf import AlbertConfig
from tests.tpu import chips, steps

ROOT = pathlib.Path(__file__).parents[2]
MEASURED, TABLE = ROOT / "build" / "tpu_memory.json", ROOT / "tests" / "tpu" / "memory.md"
REPLICAS = 8
GIB, MIB = 2**30, 2**20
WAYS = {"none": {}, "block": {"remat": "block"}, "loop": {"scan_layers": True}}
# Numbers of rows that fit well into a v5p: where memory is short, the compiler recomputes by itself.
ROWS = {"base_v2": (16, 64), "large_v2": (8, 32), "xlarge_v2": (4, 16), "xxlarge_v2": (2, 12)}


# Where a program of all layers is compiled too, with as many rows as should fit.
TRIED = {("base_v2", "none", "v5e"), ("xxlarge_v2", "block", "v5e")}


class Need(NamedTuple):
    """Bytes that a chip needs for a step: `fixed`, and `per_row`."""

    fixed: float
    per_row: float

    def rows(self, usable: int) -> int:
        """How many rows fit."""
        return max(0, int((usable - self.fixed) // self.per_row))


def measured(size: str, way: str, rows: int, chip: str = "v5p", layers: int = 0) -> int:
    """Bytes that a program of some or all layers needs, negative if it does not fit; compiled unless that is known."""
    key = f"{size} {way} {rows} {chip} {layers or 'all'}"
    known = json.loads(MEASURED.read_text()) if MEASURED.exists() else {}
    if key not in known:
        from tests.tpu import tensorflow_step

        make = functools.partial(steps.pretraining, size, layers=layers, **WAYS[way])
        try:
            needed = tensorflow_step.compiled(make, rows, chip, REPLICAS)[0].memory
        except chips.DoesNotFit as error:
            needed = -error.needed
        known = {**(json.loads(MEASURED.read_text()) if MEASURED.exists() else {}), key: needed}
        MEASURED.parent.mkdir(exist_ok=True)
        MEASURED.write_text(json.dumps(known, indent=1))
    return known[key]


def need(size: str, way: str) -> Need:
    """What steps of a preset need."""
    few, many = ROWS[size]
    of_two = measured(size, way, many, layers=2)
    per_row = (of_two - measured(size, way, few, layers=2)) / (many - few)
    per_layer = (measured(size, way, many, layers=3) - of_two) / many
    others = AlbertConfig.from_preset(size).num_hidden_layers - 2
    return Need(of_two - many * per_row, per_row + others * per_layer)


def line(size: str, way: str, usable: dict[str, int]) -> tuple[str, ...]:
    """A row of the table: what a preset needs, and how many rows fit on each chip."""
    needed = need(size, way)
    cells = [f"`{size}`", f'`remat = "{way}"`', f"{needed.fixed / GIB:.2f}", f"{needed.per_row / MIB:,.0f}"]
    for chip in usable:
        most = needed.rows(usable[chip])
        if (size, way, chip) in TRIED and measured(size, way, most, chip) < 0:
            raise ValueError(f"{most} rows of {size} with {way} should fit on a {chip}, but do not.")
        cells.append(f"{most:,}" + " (tried)" * ((size, way, chip) in TRIED))
    return tuple(cells)


def main() -> None:
    """Writes the table of all presets."""
    usable = {chip: chips.usable_memory(chip) for chip in chips.TOPOLOGIES}
    chip_titles = (f"{chip}, {size / GIB:.4g} GiB" for chip, size in usable.items())
    titles = ("preset", "way", "GiB without rows", "MiB a row", *chip_titles)
    lines = [titles, ["---"] * len(titles), *(line(size, way, usable) for size in ROWS for way in ("none", "block"))]
    text = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    TABLE.write_text(
        f"# Memory of a chip, and rows of {steps.PRETRAINING_LENGTH} tokens that fit\n\n{text}\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
