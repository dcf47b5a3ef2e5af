"""Training steps of TensorFlow, compiled for TPUs."""

import functools

import keras
import pytest

from tools.accelerators import steps, tpus

pytestmark = pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="of steps of TensorFlow")

# Sums besides those of gradients, one number each: the weight of the masked tokens, by which the loss is divided before
# gradients are computed, and afterwards the loss, the number of rows, and total and weight of each reported mean.
NUMBERS = {"pretraining": 1 + 2 + 2 * 4, "finetuning": 2 + 2 * 2}
REPLICAS = 8


@pytest.mark.parametrize(
    ("task", "size", "chip", "rows"),
    [
        ("pretraining", "base_v2", "v5e", 16),
        ("pretraining", "xxlarge_v2", "v5p", 8),
        ("finetuning", "base_v2", "v6e", 32),
        ("finetuning", "xxlarge_v2", "v5e", 8),
    ],
)
def test_a_step_never_leaves_the_chip_and_sums_each_gradient_once(task, size, chip, rows):
    from tools.accelerators import tensorflow_step

    program, model = tensorflow_step.compiled(
        functools.partial(getattr(steps, task), size, scan_layers=True), rows, tpus.slice_of(chip, REPLICAS)
    )
    variables = sum(variable.value.shape.num_elements() for variable in model.trainable_variables)
    tpus.check(program, variables, tpus.usable_memory(chip))
    assert {dtype for sums in program.collectives for dtype, _ in sums.arrays} == {"f32"}
    # One before gradients are computed, and one of all of them; of larger models they are several.
    assert len(program.collectives) == 2 if size == "base_v2" else len(program.collectives) < 20
    assert variables < sum(sums.size for sums in program.collectives) <= variables + NUMBERS[task]
