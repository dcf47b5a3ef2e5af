"""Steps and calls, compiled for GPUs: what they call, what they move, and that nothing leaves the GPU."""

import functools

import pytest

from albert_tf import AlbertConfig
from albert_tf.costs import activation_values
from tools.accelerators import gpu_programs, gpus, steps
from tools.accelerators.programs import Program

TOLERANCE = 0.03


@pytest.mark.parametrize("case", gpu_programs.CASES, ids=lambda case: "-".join(map(str, case)))
def test_a_program_is_what_the_table_says(case):
    program = case.compiled()
    assert program.ways_to_host() == []
    assert program.loops == 0
    is_training = case.work not in ("inference", "export")
    # With dropout of probabilities, attention is several operations.
    layers = 0 if case.work == "finetuning" else AlbertConfig.from_preset(case.size).num_hidden_layers
    calls = {name: count for name, count in program.custom_calls.items() if "fmha" in name}
    forward = sum(count for name, count in calls.items() if not name.endswith("Backward"))
    assert (forward, sum(calls.values()) - forward) == (layers, layers * is_training)
    if is_training:  # variables are updated in place
        assert program.results < 2**16
    found, expected = gpus.estimate(program, case.gpu), gpu_programs.lines()[case.key]
    numbers = [float(cell.replace(",", "")) for cell in expected[5:8]]
    assert [found.kernels, found.bytes / 1e9, program.temporary / 2**30] == pytest.approx(numbers, rel=TOLERANCE)


@pytest.mark.skipif(gpu_programs.BACKEND != "tensorflow", reason="JAX has one program for all devices")
def test_a_step_under_a_strategy_is_two_programs():
    """Gradients and the update, between which replicas sum."""
    from tools.accelerators import tensorflow_step

    make = functools.partial(steps.pretraining, "base_v2", 128)
    with gpu_programs.as_with_a_gpu():
        gradients, update = tensorflow_step.programs_under_a_strategy(make, 256, gpus.topology("h100"))
    assert gradients.custom_calls["__cudnn$fmhaScaleBiasSoftmax"] == 12
    assert gradients.custom_calls["__cudnn$fmhaScaleBiasSoftmaxBackward"] == 12
    assert update.custom_calls["__cudnn$fmhaScaleBiasSoftmax"] == 0
    assert gradients.ways_to_host() == update.ways_to_host() == []
    together = sum(gpus.estimate(program, "h100").seconds for program in (gradients, update))
    alone = float(gpu_programs.lines()["tensorflow", "pretraining", "base_v2", "256 x 128", "h100"][-1]) / 1e3
    assert together < 1.01 * alone


def test_what_a_program_does_is_counted():
    """A product with its bias."""
    import jax

    mesh = jax.experimental.topologies.make_mesh(gpus.topology("h100"), (1,), ("gpu",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    left, right, bias = (
        jax.ShapeDtypeStruct(shape, "bfloat16", sharding=sharding) for shape in ((4096, 1024), (1024, 2048), (2048,))
    )
    executable = jax.jit(lambda *factors: factors[0] @ factors[1] + factors[2]).lower(left, right, bias).compile()
    program = Program.of(executable.as_text(), executable.memory_analysis())
    (kernel,) = program.kernels()
    assert kernel.kind == "product"
    assert kernel.flops == 2 * 4096 * 1024 * 2048
    moved = 2 * (4096 * 1024 + 1024 * 2048 + 2048 + 4096 * 2048)
    assert moved <= kernel.bytes < moved + 2**23  # and space for cuBLASLt to work in
    assert gpus.seconds_of(kernel, "h100") == pytest.approx(kernel.flops / (0.7 * 989e12) + 1.5e-6)


def test_memory_is_what_commands_assume():
    """`pretrain` refuses batches by a formula, which no program may need less than."""
    config = AlbertConfig.from_preset("base_v2")
    for key, cells in gpu_programs.lines().items():
        if key[1:3] == ("pretraining", "base_v2"):
            rows, length = map(int, key[3].split(" x "))
            assumed = 2 * rows * activation_values(config, length, round(0.15 * length), has_scores=False) / 2**30
            assert 0.9 < assumed / float(cells[7]) < 1.0
