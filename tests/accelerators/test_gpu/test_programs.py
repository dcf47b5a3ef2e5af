"""Steps and calls, compiled for GPUs: what they call, what they move, and that nothing leaves the GPU."""

import pytest

from albert_tf import AlbertConfig
from tests.accelerators import gpu_programs, gpus

TOLERANCE = 0.03


@pytest.mark.parametrize("case", gpu_programs.CASES, ids=lambda case: "-".join(map(str, case)))
def test_a_program_is_what_the_table_says(case):
    program = case.compiled()
    assert program.ways_to_host() == []
    assert program.loops == 0
    calls = {name: count for name, count in program.custom_calls.items() if "fmha" in name}
    layers, is_training = AlbertConfig.from_preset(case.size).num_hidden_layers, case.work != "inference"
    forward = sum(count for name, count in calls.items() if not name.endswith("Backward"))
    assert (forward, sum(calls.values()) - forward) == (layers, layers * is_training)
    if is_training:  # variables are updated in place
        assert program.results < 2**16
    found, expected = gpus.estimate(program, case.gpu), gpu_programs.lines()[case.key]
    numbers = [float(cell.replace(",", "")) for cell in expected[5:8]]
    assert [found.kernels, found.bytes / 1e9, program.temporary / 2**30] == pytest.approx(numbers, rel=TOLERANCE)
