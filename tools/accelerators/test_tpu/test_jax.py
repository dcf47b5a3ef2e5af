"""Training steps of JAX under Keras' data parallelism, compiled for slices of TPUs."""

import functools

import jax
import keras
import pytest

from tools.accelerators import steps, tpus
from tools.accelerators.programs import Program

pytestmark = pytest.mark.skipif(keras.backend.backend() != "jax", reason="of steps of JAX")

# Sums besides those of gradients, one number each: whether an id is outside of its table, the weight of the masked
# tokens by which the loss is divided, the loss, and the reported means, whose weights are known.
NUMBERS = {"pretraining": 2 + 1 + 3, "finetuning": 1 + 1 + 2}


@pytest.mark.parametrize(
    ("task", "size", "chip", "count", "rows"),
    [
        ("pretraining", "base_v2", "v5e", 8, 16),
        ("pretraining", "xxlarge_v2", "v5p", 256, 8),
        ("finetuning", "base_v2", "v6e", 256, 32),
    ],
)
def test_a_step_never_leaves_the_chips_and_sums_each_gradient_once(task, size, chip, count, rows):
    from tools.accelerators import jax_step

    program, model = jax_step.compiled(
        functools.partial(getattr(steps, task), size, scan_layers=True), rows, tpus.slice_of(chip, count)
    )
    variables = sum(variable.value.size for variable in model.trainable_variables)
    tpus.check(program, variables, tpus.usable_memory(chip))
    config = model.config
    if task == "pretraining":  # words are looked up, and multiplied by in the head: two sums
        summed = variables + config.vocab_size * config.embedding_size
    else:  # positions beyond the length have no gradient
        summed = variables - (config.max_position_embeddings - steps.FINETUNING_LENGTH) * config.embedding_size
    assert summed < sum(sums.size for sums in program.collectives) <= summed + NUMBERS[task]
    assert len(program.collectives) == 4 if size == "base_v2" else len(program.collectives) < 20
    # XLA sums gradients where they are still in bfloat16, but those of layer normalisations and of logits' biases.
    halves = sum(size for sums in program.collectives for dtype, size in sums.arrays if dtype == "bf16")
    assert halves > 0.99 * summed


def test_what_leaves_the_chip_would_show():
    mesh = tpus.topologies.make_mesh(tpus.slice_of("v6e", 8), (8,), ("chip",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())

    def step(array):
        jax.debug.print("{}", array)
        return array + 1

    array = jax.ShapeDtypeStruct((8, 128), "float32", sharding=sharding)
    executable = jax.jit(step).lower(array).compile()
    assert "send" in Program.of(executable.as_text(), executable.memory_analysis()).ways_to_host()
