"""Proves cuDNN's attention as far as a processor without it can: the calls that XLA gets, and all around them."""

import json
import pathlib
import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertEncoder, AlbertForSequenceClassification
from albert_tf.layers import kernels
from albert_tf.layers.kernels import Plain, tensorflow_gpu
from albert_tf.layers.kernels.gpu import JaxGpu
from albert_tf.layers.kernels.tensorflow_cpu import OneDnn, Programs
from albert_tf.layers.kernels.tensorflow_gpu import CuDnn
from albert_tf.trainer import parse_recipe
from albert_tf.trainer.batches import train_batches
from tests.models.small import CONFIG, make_masked_inputs
from tests.parameters import first_of
from tests.small_pipeline import small_recipe

CALLS = json.loads((pathlib.Path(__file__).parents[1] / "golden/cudnn_attention/calls.json").read_text())
LENGTH = 12


@pytest.fixture
def emulated(monkeypatch):
    """Emulates the calls of cuDNN on machines without it; yields their targets."""
    targets, real, is_here = [], tensorflow_gpu._call, not kernels.lacks_flash_attention()

    def call(target, operands, results, config):
        targets.append(target)
        if is_here:
            return real(target, operands, results, config)
        computed = emulate(target, [tf.cast(tensor, "float32") for tensor in operands], config)[: len(results)]
        assert [tensor.shape for tensor in computed] == [result.shape for result in results]
        return [tf.cast(tensor, result.dtype) for tensor, result in zip(computed, results, strict=True)]

    monkeypatch.setattr(tensorflow_gpu, "_call", call)
    return targets


def emulate(target: str, operands: list, config: dict) -> list:
    """The results of a call: context and logarithms of sums, or gradients; products as its configuration names them."""

    def product(name: str, left, right, is_of_logits: bool = False):
        """[B, N, L, L] or, by default, [B, L, N, H]."""
        numbers, letters = config[f"{name}_dot_dimension_numbers"], []
        for side, others in (("lhs", "lk"), ("rhs", "st")):
            batch, (contracted,) = (numbers[f"{side}_{kind}_dimensions"] for kind in ("batch", "contracting"))
            left_over = iter(others)
            names = {batch[0]: "b", batch[1]: "n", contracted: "c"}
            letters.append("".join(names.get(str(axis)) or next(left_over) for axis in range(4)))
        return tf.einsum(f"{letters[0]},{letters[1]}->{'bnls' if is_of_logits else 'blns'}", left, right)

    query, key, value, *others = operands
    if not target.endswith("Backward"):
        logits = config["fmha_scale"] * product("bmm1", query, key, True) + sum(others)
        return [product("bmm2", tf.nn.softmax(logits), value), tf.reduce_logsumexp(logits, axis=-1)]
    normalizers, gradient, *bias, context = others
    logits = config["fmha_scale"] * tf.einsum("blnh,bsnh->bnls", query, key) + sum(bias)
    probabilities = tf.exp(logits - normalizers[..., None])
    to_probabilities = product("bmm2_grad_gemm2", gradient, value, True)
    of_rows = tf.einsum("blnh,blnh->bnl", gradient, context)[..., None]
    to_logits = config["fmha_scale"] * probabilities * (to_probabilities - of_rows)
    return [
        product("bmm1_grad_gemm2", to_logits, key),
        product("bmm1_grad_gemm1", to_logits, query),
        product("bmm2_grad_gemm1", probabilities, gradient),
    ]


def make_encoder(kernels: Plain, dtype: str = "mixed_bfloat16", **changes) -> AlbertEncoder:
    """An encoder with such kernels; with the same weights each time."""
    keras.utils.set_random_seed(3)
    changes = {"hidden_size": 32, "num_hidden_layers": 1, "initializer_range": 0.2, **changes}
    encoder = AlbertEncoder(CONFIG.replace(**changes), dtype=dtype)
    encoder.training_kernels = encoder.inference_kernels = kernels
    return encoder


def values_and_gradients(encoder: AlbertEncoder, inputs: dict, training: bool = True) -> list[np.ndarray]:
    """The output, and the gradients of all variables, of a program of XLA."""

    @tf.function(jit_compile=True)
    def run(inputs):
        with tf.GradientTape() as tape:
            output = tf.cast(encoder(inputs, training=training)["sequence_output"], "float32")
            loss = tf.reduce_sum(output * np.cos(np.arange(output.shape[-1])).astype("float32"))
        weights = [variable.value for variable in encoder.trainable_variables if "pooler" not in variable.path]
        return [output, *(tf.convert_to_tensor(gradient) for gradient in tape.gradient(loss, weights))]

    return [tf.cast(tensor, "float32").numpy() for tensor in run(inputs)]


@pytest.mark.parametrize(("dtype", "tolerance"), first_of([("mixed_bfloat16", 0.03), ("mixed_float16", 0.004)]))
@pytest.mark.parametrize(
    ("kind", "training"), first_of([("gaps", True), ("packed", True), ("full", True), ("gaps", False)])
)
def test_outputs_and_gradients_are_those_of_the_plain_form(kind, training, dtype, tolerance, emulated):
    inputs = make_masked_inputs(kind, LENGTH)
    plain = values_and_gradients(make_encoder(Plain(), dtype), inputs, training)
    assert not emulated
    fast = values_and_gradients(make_encoder(CuDnn(), dtype), inputs, training)
    name = "__cudnn$fmhaSoftmax" if kind == "full" else "__cudnn$fmhaScaleBiasSoftmax"
    assert emulated == [name, f"{name}Backward"]
    assert sum(np.abs(array).max() > 1 for array in plain) > 10
    for expected, found in zip(plain, fast, strict=True):
        scale = max(np.abs(expected).max(), 1.0)
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("fast", first_of([CuDnn, JaxGpu]))
@pytest.mark.parametrize("training", first_of([False, True]))
def test_all_but_attention_in_full_precision(training, fast):
    inputs, changes = make_masked_inputs("full", LENGTH), {"dtype": "float32", "num_hidden_layers": 3}
    plain, found = (values_and_gradients(make_encoder(way(), **changes), inputs, training) for way in (Plain, fast))
    assert len(plain) > 10
    for expected, array in zip(plain, found, strict=True):
        np.testing.assert_allclose(array, expected, rtol=0, atol=2e-6 * max(np.abs(expected).max(), 1.0))


@pytest.mark.parametrize("fast", [CuDnn, JaxGpu])
@pytest.mark.parametrize("training", [False, True])
def test_layer_normalisation_of_large_means_and_of_equal_values(training, fast):
    layer_norm = keras.layers.LayerNormalization(epsilon=1e-12)
    layer_norm.build((None, 64))
    rows = np.random.default_rng(1).normal(size=(4, 64)).astype("float32") + np.float32([[0], [1000], [-30], [0]])
    rows[3] = 3.3

    @tf.function(jit_compile=True)
    def run(rows):
        with tf.GradientTape() as tape:
            tape.watch(rows)
            output = fast().add_and_normalize(rows, tf.zeros_like(rows), layer_norm, training)
        return output, tape.gradient(output, rows, tf.cos(tf.range(64.0)) * tf.ones_like(rows))

    output, gradient = (tensor.numpy() for tensor in run(tf.constant(rows)))
    wide = rows[:3].astype("float64")
    expected = (wide - wide.mean(-1, keepdims=True)) / wide.std(-1, keepdims=True)
    np.testing.assert_allclose(output[:3], expected, atol=2e-4)
    assert np.abs(output[3]).max() <= 1  # of rounding
    assert np.isfinite(gradient).all()
    np.testing.assert_allclose((gradient[:3] * expected).sum(-1), 0, atol=2e-3)


@pytest.mark.exhaustive
@pytest.mark.parametrize("way", [{"scan_layers": True}, {"remat": "block"}], ids=str)
def test_fit_with_xla(way, emulated):
    steps = []
    for changes, fast in (({}, Plain()), ({"jit_compile": True, **way}, CuDnn())):
        keras.utils.set_random_seed(3)
        model = AlbertForSequenceClassification(CONFIG.replace(initializer_range=0.2), 2, dtype="mixed_bfloat16")
        before = model.get_weights()
        model.compile(keras.optimizers.SGD(1.0), **changes)
        model.encoder.training_kernels = fast
        model.fit(make_masked_inputs("gaps", LENGTH), np.array([0, 1, 1, 0]), batch_size=4, verbose=0)
        steps.append([after - start for after, start in zip(model.get_weights(), before, strict=True)])
        used = {"__cudnn$fmhaScaleBiasSoftmax", "__cudnn$fmhaScaleBiasSoftmaxBackward"} if changes else set()
        assert set(emulated) == used
    assert max(np.abs(step).max() for step in steps[0]) > 0.2
    for plain, found in zip(*steps, strict=True):
        np.testing.assert_allclose(found, plain, rtol=0, atol=0.01)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("kind", ["full", "masked"])
def test_calls_are_those_of_jax(dtype, kind):
    @tf.function(jit_compile=True)
    def gradient(query, key, value, *bias):
        with tf.GradientTape() as tape:
            tape.watch([query, key, value])
            context = tensorflow_gpu.flash_attention(query, key, value, *bias)
        return tape.gradient(context, [query, key, value], query)

    tensors = [tf.zeros([2, 8, 3, 16], dtype)] * 3 + [tf.zeros([2, 1, 8, 8], dtype)] * (kind == "masked")
    found = calls_in(gradient.experimental_get_compiler_ir(*tensors)(stage="hlo"))
    assert without_zeros(found) == without_zeros(CALLS[f"{dtype} {kind}"])


def calls_in(program: str) -> list[dict]:
    """The custom calls of a program in HLO, in order, as in the golden file."""
    types = r"\w+\[[\d,]*\]\{[\d,]*\}"
    pattern = (
        r"= \((.*?)\) custom-call\(.*?custom_call_target=\"(.*?)\", operand_layout_constraints=\{(.*?)\}, api_version"
        r".*?, backend_config=(\{.*\})$"
    )
    return [
        {
            "target": target,
            "operands": re.findall(types, operands),
            "results": re.findall(types, results),
            "config": json.loads(config),
        }
        for results, target, operands, config in re.findall(pattern, program, re.MULTILINE)
    ]


def without_zeros(value):
    """JSON of protocol buffers without the fields whose value is that of absent ones."""
    if isinstance(value, list):
        return [without_zeros(item) for item in value]
    if not isinstance(value, dict):
        return value
    fields = {name: field if name == "tuning_knobs" else without_zeros(field) for name, field in value.items()}
    return {name: field for name, field in fields.items() if field not in (0, "0", [], {}, "PRIMITIVE_TYPE_INVALID")}


def num_calls(function: tf.types.experimental.PolymorphicFunction, *arguments) -> int:
    """How many custom calls the graph of a function has."""
    graph = function.get_concrete_function(*arguments).graph
    return sum(operation.type == "XlaCallModule" for operation in graph.get_operations())


@pytest.mark.parametrize(
    ("changes", "arguments", "rows", "length", "is_used"),
    [
        ({}, {}, 4, LENGTH, True),
        ({}, {"training": True}, 4, LENGTH, True),
        ({"dtype": "float16"}, {}, 4, LENGTH, True),
        ({"dtype": "float32"}, {}, 4, LENGTH, False),
        ({}, {}, 4, 11, False),
        ({}, {}, 4, None, False),
        ({}, {}, None, LENGTH, False),
        ({"num_attention_heads": 8}, {}, 4, LENGTH, False),  # of size 4
        ({"hidden_size": 256, "num_attention_heads": 2}, {}, 4, LENGTH, True),
        ({"hidden_size": 256, "num_attention_heads": 1}, {}, 4, LENGTH, False),
        ({"attention_probs_dropout_prob": 0.1}, {}, 4, LENGTH, True),
        ({"attention_probs_dropout_prob": 0.1}, {"training": True}, 4, LENGTH, False),
        ({"attention": "block_local", "block_size": 3}, {}, 4, LENGTH, False),
        ({}, {"output_attentions": True}, 4, LENGTH, False),
        ({}, {"output_hidden_states": True}, 4, LENGTH, True),
    ],
)
def test_where_it_is_used(changes, arguments, rows, length, is_used):
    encoder = make_encoder(CuDnn(), **changes)
    inputs = {name: tf.TensorSpec([rows, length], tf.int32) for name in ("input_ids", "attention_mask")}
    call = tf.function(lambda inputs: encoder(inputs, **arguments)["sequence_output"], jit_compile=True)
    assert num_calls(call, inputs) == is_used


def test_batches_of_pretraining_have_a_known_shape(pipeline):
    batches = train_batches(parse_recipe(small_recipe(pipeline)))
    assert all(tensor.shape.is_fully_defined() for tensor in tf.nest.flatten(batches.element_spec))


def test_without_xla_it_is_the_plain_form():
    encoder, inputs = make_encoder(CuDnn()), make_masked_inputs("gaps", LENGTH)
    graph = tf.function(lambda inputs: encoder(inputs)["sequence_output"])
    assert num_calls(graph, inputs) == 0
    fast = encoder(inputs)["sequence_output"]
    encoder.inference_kernels = Plain()
    np.testing.assert_array_equal(tf.cast(fast, "float32"), tf.cast(encoder(inputs)["sequence_output"], "float32"))


def test_a_bias_that_is_no_mask_and_what_keras_disables():
    attention, hidden = make_encoder(CuDnn()).attention_blocks[0][0], tf.zeros([4, LENGTH, 32], tf.bfloat16)

    def call(mask):
        way = CuDnn()
        return attention.apply(hidden, mask, attention.prepare(way, False), way, False, False).hidden

    def calls(mask):
        return num_calls(tf.function(call, jit_compile=True), mask)

    bias = tf.ones([4, 1, 1, LENGTH])
    assert calls(bias) == 0  # its gradient may be needed
    assert calls(bias > 0) == 1
    keras.config.disable_flash_attention()
    try:
        assert calls(bias > 0) == 0
    finally:
        keras.config.enable_flash_attention()


@pytest.mark.parametrize(
    ("capabilities", "reason"),
    [
        ([], "there is no GPU"),
        ([(7, 5)], "capability 8.0, and here one has 7.5"),
        ([(9, 0), (7, 0)], "one has 7.0"),
        ([None], "one has 0.0"),
        ([(8, 0), (12, 0)], ""),
    ],
)
def test_gpus_that_have_it(capabilities, reason, monkeypatch):
    details = lambda gpu: {"device_name": "a GPU", **({"compute_capability": gpu} if gpu else {})}  # noqa: E731
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: capabilities)
    monkeypatch.setattr(tf.config.experimental, "get_device_details", details)
    monkeypatch.setattr(kernels, "runs_on_cpu", lambda: not capabilities)
    assert reason in kernels.lacks_flash_attention()
    assert bool(kernels.lacks_flash_attention()) == bool(reason)
    chosen = [type(choose()) for choose in (kernels.for_layers, kernels.for_own_step, kernels.fastest_for_inference)]
    if capabilities:
        assert chosen == [Plain if reason else CuDnn] * 3
    else:
        assert chosen == [Plain, Programs, OneDnn if kernels.has_onednn() else Plain]
