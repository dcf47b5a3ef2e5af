"""Programs of TensorFlow, compiled for chips that need not be here.

Training is what `strategy.run` gets in `fit`, all that a chip computes. Outside of it, on the host, is the iterator
over the data. TensorFlow lowers programs as for XLA on a CPU, and JAX's compiler, which is newer, compiles them.
"""

import functools
import re
from collections.abc import Sequence
from typing import Any
from unittest import mock

import numpy as np
import tensorflow as tf
from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jax._src.lib.mlir import ir
from tensorflow.compiler.tf2xla.ops import gen_xla_ops
from tensorflow.python.distribute.one_device_strategy import OneDeviceExtended

from albert_tf.layers import kernels
from albert_tf.layers.kernels.tensorflow_gpu import CuDnnInShapes
from albert_tf.training_step import apply_gradients
from albert_tf.training_step.step import train_step
from tools.accelerators import steps
from tools.accelerators.programs import Program


class OneOfMany(tf.distribute.Strategy):
    """One replica of several, with XLA's sum over all of them where a TPUStrategy has the operation of TPUs for it.

    Args:
        replicas: their number.
    """

    def __init__(self, replicas: int):
        super().__init__(_OneOfMany(self, replicas))


class _OneOfMany(OneDeviceExtended):
    def __init__(self, strategy: tf.distribute.Strategy, replicas: int):
        super().__init__(strategy, "/cpu:0")
        self._replicas = replicas

    @property
    def _num_replicas_in_sync(self):
        return self._replicas

    def _reduce_to(self, reduce_op, value, destinations, options):
        assert reduce_op == tf.distribute.ReduceOp.SUM
        return gen_xla_ops.xla_all_reduce(value, [[*range(self._replicas)]], "Add", "CrossReplica")


def compiled(make: Any, rows: int, topology: Any, shapes: Sequence[tuple[int, int]] = ()) -> tuple[Program, Any]:
    """The program of one chip, and the model.

    Args:
        make: function that returns a compiled model and a batch of one row, or a model for inference and a batch.
        rows: of each replica.
        topology: description of the chips, one replica on each.
        shapes: those of the calls of cuDNN in an export; none if the model is not exported.
    """
    devices = tuple(topology.devices)
    model, hlo = lowered(make, rows, len(devices), shapes)
    return compile_module(hlo, devices), model


def lowered(make: Any, rows: int, replicas: int, shapes: Sequence[tuple[int, int]] = ()) -> tuple[Any, bytes]:
    """The model, and its step or its call as a serialized module of HLO."""
    strategy = OneOfMany(replicas) if replicas > 1 else tf.distribute.get_strategy()
    with strategy.scope():
        model, batch = make()
    encoder = getattr(model, "encoder", model)
    encoder.training_kernels = kernels.for_layers()  # those of accelerators; here is a CPU
    encoder.inference_kernels = CuDnnInShapes(shapes) if shapes else kernels.for_layers()
    if getattr(model, "optimizer", None) is None:

        def call(inputs):
            return model(inputs, training=False)["pooled_output"]

    else:
        model.jit_compile = True
        model.make_train_function()

        def call(*data):
            return strategy.run(functools.partial(train_step, model, model.trainable_variables), (data,))

    data = tf.nest.map_structure(tf.constant, steps.rows(batch, rows))
    # Shapes of an export are known when it is compiled, not when it is made.
    signature = [tf.nest.map_structure(lambda array: tf.TensorSpec([None] * array.ndim, array.dtype), batch[0])]
    program = tf.function(call, signature if shapes else None, jit_compile=True, autograph=False)
    return model, program.experimental_get_compiler_ir(*data)(stage="hlo_serialized")


def compile_module(hlo: bytes, devices: tuple) -> Program:
    """The program of one chip of a serialized module of HLO."""
    options = xla_client.CompileOptions()
    options.num_replicas = options.executable_build_options.num_replicas = len(devices)
    ids = np.array([[device.id] for device in devices])
    options.executable_build_options.device_assignment = xla_client.DeviceAssignment.create(ids)
    with mlir.make_ir_context():
        module = ir.Module.parse(_without_copies(xla_client.XlaComputation(hlo)))
    executable = devices[0].client.compile(module, xla_client.DeviceList(devices), options)
    return Program.of(executable.hlo_modules()[0].to_string(), executable.get_compiled_memory_stats())


def _without_copies(computation: Any) -> str:
    """The module as StableHLO, which has no form for a mere copy: its operand takes its place."""
    copies, lines = {}, []
    for line in xla_client._xla.mlir.xla_computation_to_mlir_module(computation).split("\n"):
        if match := re.match(r'\s*(%\S+) = "?mhlo\.copy"?\s*\(?(%[^\s):]+)\)?', line):
            copies[match[1]] = copies.get(match[2], match[2])
        else:
            lines.append(line)
    return re.sub(r"%[A-Za-z0-9_#.]+", lambda match: copies.get(match[0], match[0]), "\n".join(lines))


def programs_under_a_strategy(make: Any, rows: int, topology: Any) -> list[Program]:
    """The programs of which a step consists under a strategy, with one replica; arguments as of `compiled`."""
    strategy, modules = tf.distribute.OneDeviceStrategy("/cpu:0"), []

    def recorded(function):
        program = tf.function(function, autograph=False, jit_compile=True)

        def call(*args):
            """Computes nothing, as only the GPU could."""
            modules.append(program.experimental_get_compiler_ir(*args)(stage="hlo_serialized"))
            outputs = program.get_concrete_function(*args).structured_outputs
            return tf.nest.map_structure(lambda one: tf.zeros(one.shape, one.dtype), outputs, expand_composites=True)

        return call

    with strategy.scope():
        model, batch = make()
    model.encoder.training_kernels, model.jit_compile = kernels.for_layers(), True
    model.make_train_function()
    data = tf.nest.map_structure(tf.constant, steps.rows(batch, rows))
    with mock.patch.object(apply_gradients, "_program", recorded):
        strategy.run(functools.partial(train_step, model, model.trainable_variables), (data,))
    return [compile_module(hlo, tuple(topology.devices)) for hlo in modules]
