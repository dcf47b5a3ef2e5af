"""What Keras calls of a model on JAX, compiled for chips that need not be here.

Training is a step of `fit` under `keras.distribution.DataParallel`.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import jax
import jax._src.cudnn.fused_attention_stablehlo as attention_of_gpus
import keras
from jax.experimental import topologies
from jax.sharding import NamedSharding, PartitionSpec

from tools.accelerators import steps
from tools.accelerators.programs import Program


def compiled(make: Any, rows: int, topology: Any) -> tuple[Program, Any]:
    """The program of one chip, and the model.

    Args:
        make: function that returns a compiled model and a batch of one row.
        rows: of each chip.
        topology: description of the chips.
    """
    model, batch = make()
    count = len(topology.devices)
    batch = steps.rows(batch, rows * count)
    distribution = keras.distribution.DataParallel()  # of the devices here, from which only its layouts are taken
    mesh = topologies.make_mesh(topology, (count,), tuple(distribution.device_mesh.axis_names))

    def placed(array, layout) -> jax.ShapeDtypeStruct:
        sharding = NamedSharding(mesh, PartitionSpec(*layout.axes))
        return jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=sharding)

    def values(variables) -> list:
        return [placed(v.value, distribution.get_variable_layout(v)) for v in variables]

    data = keras.tree.map_structure(lambda array: placed(array, distribution.get_data_layout(array.shape)), batch)
    weights = (model.trainable_variables, model.non_trainable_variables)
    if getattr(model, "optimizer", None) is None:

        def call(*arguments):
            return model.stateless_call(*arguments, training=False)[0]["pooled_output"]

        function, arguments = jax.jit(call), (*map(values, weights), *data)
    else:
        model.optimizer.build(model.trainable_variables)
        model._symbolic_build(data_batch=batch)  # of metrics, as in `fit`
        state = tuple(map(values, (*weights, model.optimizer.variables, model.metrics_variables)))
        shardings = keras.tree.map_structure(lambda array: array.sharding, state)
        # As Keras' trainer does in `make_train_function`, with the mesh of these devices.
        function = jax.jit(model.train_step, donate_argnums=0, out_shardings=(None, shardings))
        arguments = (state, data)
    with contextlib.nullcontext() if topology.devices[0].platform == "tpu" else _cudnn():
        executable = function.lower(*arguments).compile()
    return Program.of(executable.as_text(), executable.memory_analysis()), model


@contextlib.contextmanager
def _cudnn() -> Iterator[None]:
    """Has JAX use cuDNN, although it finds none; it would on TPUs, too."""
    names = {"check_compute_capability": lambda *_: True, "check_cudnn_version": lambda *_: 91400}
    before = {name: getattr(attention_of_gpus, name) for name in names}
    for name, function in names.items():
        setattr(attention_of_gpus, name, function)
    try:
        yield
    finally:
        for name, function in before.items():
            setattr(attention_of_gpus, name, function)
