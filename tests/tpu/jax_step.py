"""The step of `fit` on JAX under `keras.distribution.DataParallel`, compiled by libtpu."""

from typing import Any

import jax
import keras
from jax.experimental import topologies
from jax.sharding import NamedSharding, PartitionSpec

from tests.tpu import chips, steps


def compiled(make: Any, rows: int, chip: str, count: int) -> tuple[chips.Program, Any]:
    """The program of one chip, and the model; raises DoesNotFit if its memory is too small.

    Args:
        make: function that returns a compiled model and a batch of one row.
        rows: of each chip.
        chip: "v5e", "v5p" or "v6e".
        count: number of chips.
    """
    model, batch = make()
    model.optimizer.build(model.trainable_variables)
    model._symbolic_build(data_batch=batch)  # of metrics, as in `fit`
    distribution = keras.distribution.DataParallel()  # of the devices here, from which only its layouts are taken
    mesh = topologies.make_mesh(chips.slice_of(chip, count), (count,), tuple(distribution.device_mesh.axis_names))

    def placed(array, layout) -> jax.ShapeDtypeStruct:
        sharding = NamedSharding(mesh, PartitionSpec(*layout.axes))
        return jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=sharding)

    variables = (
        *(model.trainable_variables, model.non_trainable_variables),
        *(model.optimizer.variables, model.metrics_variables),
    )
    state = tuple([placed(v.value, distribution.get_variable_layout(v)) for v in some] for some in variables)
    data = keras.tree.map_structure(
        lambda array: placed(array, distribution.get_data_layout(array.shape)), steps.rows(batch, rows * count)
    )
    shardings = keras.tree.map_structure(lambda array: array.sharding, state)
    # As Keras' trainer does in `make_train_function`, with the mesh of these devices.
    step = jax.jit(model.train_step, donate_argnums=0, out_shardings=(None, shardings))
    try:
        executable = step.lower(state, data).compile()
    except jax.errors.JaxRuntimeError as error:
        raise chips.does_not_fit(error) from None
    return chips.program(executable.as_text(), executable.memory_analysis()), model
