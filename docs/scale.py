"""The arithmetic of the page on scale: what a corpus and a run take, for each size and machine.

Measured numbers are those of `tests/benchmarks/results/`; prices, shares of the peak that were not measured, and what
many chips lose are assumptions, which the page names.
"""

import dataclasses

from albert_tf.config import AlbertConfig
from albert_tf.costs import estimate_costs

LENGTH, PREDICTIONS = 512, 77
UPDATE = 4096 * LENGTH  # tokens, the published batch
PUBLISHED_UPDATES = 125_000
SIZES = ("base_v2", "large_v2", "xlarge_v2", "xxlarge_v2")
CORPORA = {"1 GB": 1e9, "10 GB": 1e10, "100 GB": 1e11, "1 TB": 1e12, "10 TB": 1e13}

# Measured, growth_2026-11-26.md: English with the published vocabulary, and `prepare` at 512 tokens.
BYTES_PER_TOKEN = 4.08
PREPARE_SECONDS_PER_TOKEN = 0.83e-6
EXAMPLE_BYTES_PER_TOKEN, DOCUMENT_BYTES_PER_TOKEN = 7.58, 4.2
SHARD_TEXT = 2**28
# Measured there: tokens of all hosts that one of 1 or 8 hosts gets through in a second.
HOST_CAPS = {"examples": {1: 30e6, 8: 66e6}, "documents": {1: 4.2e6, 8: 17e6}}
# Measured, gpu_NVIDIA-H100_2026-11-26.md and, for xxlarge, gpu_NVIDIA-H200_2026-11-26.md: share of the rate of a large
# matrix product, training at 512 tokens in bfloat16. Between the two, the lower one.
SHARES = {"base_v2": 0.50, "large_v2": 0.50, "xlarge_v2": 0.50, "xxlarge_v2": 0.86}
PREPARE_PRICE = 0.04  # US dollars an hour of one core; assumed


@dataclasses.dataclass(frozen=True)
class Machine:
    """What a run trains on.

    Args:
        chips: accelerators.
        hosts: machines that read data.
        flops: of one chip in bfloat16: H100 measured with a large matrix product, TPU from its data sheet.
        price: US dollars for an hour of one chip; assumed.
        efficiency: what is left of the share of one chip on all of them; assumed.
    """

    chips: int
    hosts: int
    flops: float
    price: float
    efficiency: float

    def tokens_per_second(self, size: str) -> float:
        """Tokens that all chips train on in a second."""
        config = AlbertConfig.from_preset(size)
        flops = estimate_costs(config, LENGTH, PREDICTIONS).training_flops_per_token
        return self.chips * self.flops * SHARES[size] * self.efficiency / flops


MACHINES = {
    "8 H100": Machine(8, 1, 716e12, 3.0, 0.95),
    "64 H100": Machine(64, 8, 716e12, 3.0, 0.9),
    "TPU v4-64": Machine(32, 8, 275e12, 3.2, 0.8),
}
Table = tuple[tuple[str, ...], list[tuple[str, ...]]]


def number(value: float, unit: str = "") -> str:
    """A number of three digits with the prefix of its size."""
    for prefix, factor in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= 0.9995 * factor and (unit or factor >= 1e9):
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{float(f'{value:.3g}'):,.12g} {unit}".strip()


def corpora() -> Table:
    """What `prepare` makes of texts of each size."""
    titles = (
        "text",
        "tokens",
        "shards",
        "documents on disk",
        "examples on disk, one pass",
        "hours of one core",
        "cost",
    )

    def row(name: str) -> tuple[str, ...]:
        tokens = CORPORA[name] / BYTES_PER_TOKEN
        hours = tokens * PREPARE_SECONDS_PER_TOKEN / 3600
        return (
            name,
            number(tokens),
            f"{max(8, -(-CORPORA[name] // SHARD_TEXT)):,.0f}",
            number(tokens * DOCUMENT_BYTES_PER_TOKEN, "B"),
            number(tokens * EXAMPLE_BYTES_PER_TOKEN, "B"),
            number(hours),
            f"${number(hours * PREPARE_PRICE)}",
        )

    return titles, [row(name) for name in CORPORA]


def runs() -> Table:
    """FLOPs, hours and cost of the published number of updates, and hours of one pass over each corpus."""
    titles = ("size", "machine", "tokens/s", "published run", "FLOPs", "cost", *(f"{name} once" for name in CORPORA))

    def row(size: str, name: str) -> tuple[str, ...]:
        machine, config = MACHINES[name], AlbertConfig.from_preset(size)
        speed, tokens = machine.tokens_per_second(size), PUBLISHED_UPDATES * UPDATE
        flops = tokens * estimate_costs(config, LENGTH, PREDICTIONS).training_flops_per_token
        hours = tokens / speed / 3600
        once = (f"{number(amount / BYTES_PER_TOKEN / speed / 3600)} h" for amount in CORPORA.values())
        cost = f"${number(hours * machine.chips * machine.price)}"
        return (
            f"`{size}`",
            name,
            number(speed, "token/s")[:-7].strip(),
            f"{number(hours)} h",
            f"{flops:.1e}",
            cost,
            *once,
        )

    return titles, [row(size, name) for size in SIZES for name in MACHINES]


def network() -> Table:
    """What a host reads and sends, and how much of what its input can do that is."""
    titles = (
        "size",
        "machine",
        "seconds an update",
        "gradients a chip sends",
        "examples read by a host",
        "documents read by a host",
        "of what examples can do",
        "of what documents can do",
    )

    def row(size: str, name: str) -> tuple[str, ...]:
        machine = MACHINES[name]
        speed = machine.tokens_per_second(size)
        gradients = 2 * 4 * AlbertConfig.from_preset(size).num_parameters("pretraining") * speed / UPDATE
        return (
            f"`{size}`",
            name,
            f"{UPDATE / speed:.2g}",
            number(gradients, "B/s"),
            number(speed * EXAMPLE_BYTES_PER_TOKEN, "B/s"),
            number(speed * DOCUMENT_BYTES_PER_TOKEN, "B/s"),
            *(f"{speed / caps[machine.hosts]:.0%}" for caps in HOST_CAPS.values()),
        )

    return titles, [row(size, name) for size in SIZES for name in MACHINES]
