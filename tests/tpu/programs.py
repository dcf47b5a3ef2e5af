"""What every program of a training step must be like, whichever backend it comes from."""

import pytest

from tests.tpu.chips import Program

# What the compiler itself puts in: buffers, parts of one buffer, checked indices, halves of 64-bit integers.
OF_THE_COMPILER = {
    *("AllocateBuffer", "AssumeGatherIndicesInBound", "ConcatBitcast"),
    *("X64Combine", "X64SplitHigh", "X64SplitLow"),
}


def check(program: Program, variables: int, chip_has: int) -> None:
    """Nothing leaves the chip but sums over all chips, layers are a loop, and variables are updated in place.

    Args:
        program: Program.
        variables: number of values of all variables that are trained.
        chip_has: bytes of memory.
    """
    assert program.ways_to_host() == []
    assert program.custom_calls <= OF_THE_COMPILER
    assert program.loops == 2  # forward and backward
    assert {collective.kind for collective in program.collectives} == {"all-reduce"}
    assert program.arguments == pytest.approx(3 * 4 * variables, rel=0.05)  # variables and two moments, in float32
    assert program.results < 2**16
    assert program.memory < chip_has
