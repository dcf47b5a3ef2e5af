"""GPUs that need not be here, and estimates of what programs take on them."""

import dataclasses
import functools
import pathlib
import re
from typing import Any

from jax.experimental import topologies

from tools.accelerators.programs import Program

TARGETS = pathlib.Path(__file__).parent / "targets"
# Dense products of bfloat16, operations per second, from the makers' data sheets.
PEAKS = {"a100": 312e12, "h100": 989e12, "b200": 2250e12}
# Parts of the peaks that programs of this package reached on an H100, and the time between two kernels.
OF_PEAK, OF_BANDWIDTH, SECONDS_A_KERNEL = 0.70, 0.85, 1.5e-6


@functools.cache
def topology(gpu: str) -> Any:
    """The description of one GPU of `targets/`."""
    target = (TARGETS / f"{gpu}.txtpb").read_text(encoding="utf-8")
    return topologies.get_topology_desc(platform="cuda", target_config=target, topology="1x1x1")


@dataclasses.dataclass(frozen=True)
class Estimate:
    """What a program of a GPU does.

    Args:
        kernels: their number.
        bytes: that they read and write, in all.
        seconds: what they take, each as long as its bytes or its products need, whichever is longer.
    """

    kernels: int
    bytes: int
    seconds: float


def estimate(program: Program, gpu: str) -> Estimate:
    """The estimate for a program without loops."""
    kernels = program.kernels()
    seconds = sum(seconds_of(kernel, gpu) for kernel in kernels)
    return Estimate(len(kernels), sum(k.bytes for k in kernels), seconds)


def seconds_of(kernel: Any, gpu: str) -> float:
    """What a Kernel takes."""
    return (
        max(kernel.bytes / (_bandwidth(gpu) * OF_BANDWIDTH), kernel.flops / (PEAKS[gpu] * OF_PEAK)) + SECONDS_A_KERNEL
    )


@functools.cache
def _bandwidth(gpu: str) -> int:
    """Bytes per second."""
    return int(re.findall(r"memory_bandwidth: (\d+)", (TARGETS / f"{gpu}.txtpb").read_text(encoding="utf-8"))[0])
