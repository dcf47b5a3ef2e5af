"""TPUs that need not be here, whose compiler is libtpu, and what every program of a training step must be like."""

import re
from typing import Any

import jax
import pytest
from jax.experimental import topologies

from tools.accelerators.programs import Program

# Slices of 8 and of 256 chips: how many in each direction.
TOPOLOGIES = {
    "v5e": {8: "2x4", 256: "16x16"},
    "v5p": {8: "2x2x2", 256: "4x8x8"},
    "v6e": {8: "2x4", 256: "16x16"},
}
# What the compiler itself puts in: buffers, parts of one buffer, checked indices, halves of 64-bit integers.
OF_THE_COMPILER = {
    *("AllocateBuffer", "AssumeGatherIndicesInBound", "ConcatBitcast"),
    *("X64Combine", "X64SplitHigh", "X64SplitLow"),
}


def slice_of(chip: str, count: int) -> Any:
    """The description of a slice of `count` chips, which need not exist."""
    return topologies.get_topology_desc(platform="tpu", topology_name=f"{chip}:{TOPOLOGIES[chip][count]}")


def check(program: Program, variables: int, chip_has: int) -> None:
    """Nothing leaves the chip but sums over all chips, layers are a loop, and variables are updated in place.

    Args:
        program: Program.
        variables: number of values of all variables that are trained.
        chip_has: bytes of memory.
    """
    assert program.ways_to_host() == []
    assert set(program.custom_calls) <= OF_THE_COMPILER
    assert program.loops == 2  # forward and backward
    assert {collective.kind for collective in program.collectives} == {"all-reduce"}
    assert program.arguments == pytest.approx(3 * 4 * variables, rel=0.05)  # variables and two moments, in float32
    assert program.results < 2**16
    assert program.memory < chip_has


def out_of_memory(error: jax.errors.JaxRuntimeError) -> tuple[int, int]:
    """Bytes that a program needs and that it may use, of the error of one that does not fit; raises other errors."""
    match = re.search(r"Used ([\d.]+[KMGT]) of ([\d.]+[KMGT]) hbm", str(error))
    if match is None:
        raise error
    needed, usable = map(_bytes, match.groups())
    return needed, usable


def usable_memory(chip: str) -> int:
    """Bytes of a chip's memory that a program may use."""
    mesh = topologies.make_mesh(slice_of(chip, 8), (8,), ("chip",))
    everywhere = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    arrays = [jax.ShapeDtypeStruct((2**16, 2**16), "float32", sharding=everywhere)] * 8
    try:
        jax.jit(sum).lower(arrays).compile()
    except jax.errors.JaxRuntimeError as error:
        _, usable = out_of_memory(error)
        return usable
    raise AssertionError(f"{chip} has 128 GiB or more")


def _bytes(text: str) -> int:
    """The number that the compiler writes as, say, 15.75G."""
    return round(float(text[:-1]) * 1024 ** (1 + "KMGT".index(text[-1])))
