"""Forms for TensorFlow on GPUs, within XLA: cuDNN's flash attention, and what XLA makes fewer kernels of.

TensorFlow has no operation for this attention, but XLA makes calls of cuDNN of the custom calls below, the same as
JAX's. No tensor [B, N, L, L] is kept. The calls are modules of StableHLO, which can say in what order the axes of a
result are stored, so that none is transposed.

Letters: B batch, L sequence, N heads, H head size.

References:
    `jax/_src/cudnn/fused_attention_stablehlo.py` of JAX: names, operands, results and configuration of the calls.
"""

import json
import math
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops.gen_xla_ops import xla_call_module, xla_optimization_barrier
from tensorflow.python.ops.control_flow_util import GraphOrParentsInXlaContext

from albert_tf.layers.kernels.gpu import moments, normalize, scaled, weights_of
from albert_tf.layers.kernels.plain import Plain, is_mask, mask_to_bias
from albert_tf.layers.kernels.tensorflow_cpu import scaled_gradient

_NAMES = {tf.bfloat16: "bf16", tf.float16: "f16", tf.float32: "f32"}
_MODULE_VERSION = 4  # of the operation: modules as text, without checks of the platform
# Of each product the contracted axes of both factors, and the axes of B and N of both, which are queries, keys, values
# or contexts [B, L, N, H], or logits [B, N, L, L].
_ROWS, _LOGITS = ("0", "2"), ("0", "1")
_PRODUCTS = {"bmm1": (3, 3, _ROWS, _ROWS), "bmm2": (3, 1, _LOGITS, _ROWS)}
_GRADIENT_PRODUCTS = {
    "bmm1_grad_gemm1": (2, 1, _LOGITS, _ROWS),
    "bmm1_grad_gemm2": (3, 1, _LOGITS, _ROWS),
    "bmm2_grad_gemm1": (2, 1, _LOGITS, _ROWS),
    "bmm2_grad_gemm2": (3, 3, _ROWS, _ROWS),
}


class CuDnn(Plain):
    """`Plain`, but for full attention in half precision, within XLA, whose probabilities nobody needs.

    A mask becomes a bias as in the plain form, in half precision. With lengths instead cuDNN is faster still, but
    whether the ones of a mask come first is not known when a graph is made.
    """

    _has_gradient = True

    def splits_products(self, has_dropout):
        return not has_dropout  # as `JaxGpu`

    def mask(self, attention_mask):
        """Booleans [B, 1, 1, L] or [B, 1, L, L]; only of a bias that is a mask nobody needs the gradient."""
        mask = keras.ops.cast(attention_mask, "bool")
        return mask[:, None, None, :] if len(mask.shape) == 2 else mask[:, None]

    def attend(self, qkv, mask, dropout, training, return_scores=False):
        has_dropout = training and dropout.rate > 0
        if return_scores or has_dropout or not is_mask(mask) or not _is_possible(qkv[0]):
            return super().attend(qkv, mask, dropout, training, return_scores)
        if mask is not None:
            batch, length, *_ = qkv[0].shape
            mask = tf.broadcast_to(tf.cast(mask_to_bias(mask), qkv[0].dtype), (batch, 1, length, length))
        query, key, value = qkv
        return flash_attention(query, key, value, mask, self._has_gradient), None

    def activate(self, x, bias, activation, training):
        """In inference, GELU as XLA finds it after a product; in training it is kept for the gradient anyway."""
        if activation != "gelu_new" or training or not _is_within_xla():
            return super().activate(x, bias, activation, training)
        x = keras.ops.add(x, bias)
        return x * (0.5 * (1.0 + tf.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * (x * x * x)))))

    def add_and_normalize(self, x, residual, layer_norm, training):
        if not _is_within_xla():
            return super().add_and_normalize(x, residual, layer_norm, training)
        return (_with_gradient if training else normalize)(x + residual, layer_norm)


class CuDnnInShapes(CuDnn):
    """`CuDnn` for a graph of inference whose shapes are known when XLA compiles it, which then takes one call of these.

    Args:
        shapes: pairs of a number of rows and a length; attention between others is that of `Plain`. Without any, the
            graph runs on every processor.
    """

    _has_gradient = False  # which a SavedModel would hold

    def __init__(self, shapes: Sequence[tuple[int, int]] = ()):
        self._shapes = shapes

    def splits_products(self, has_dropout):
        return bool(self._shapes)

    def attend(self, qkv, mask, dropout, training, return_scores=False):
        attend, others = super().attend, (dropout, training, return_scores)
        if not self._shapes:
            return Plain.attend(self, qkv, mask, *others)
        if return_scores or not _is_within_xla() or qkv[0].shape.is_fully_defined():
            return attend(qkv, mask, *others)
        size, heads = tf.shape(qkv[0]), qkv[0].shape[2:]

        def branch(shape):
            def of_shape():
                context, _ = attend([tf.reshape(tensor, (*shape, *heads)) for tensor in qkv], mask, *others)
                return tf.reshape(context, (size[0], size[1], *heads))

            return of_shape

        is_taken = tf.reduce_all(tf.equal(tf.constant(self._shapes), size[:2]), axis=1)
        index = tf.reduce_min(tf.where(is_taken, tf.range(len(self._shapes)), len(self._shapes)))
        branches = [*map(branch, self._shapes), lambda: attend(qkv, mask, *others)[0]]
        return tf.switch_case(index, branches), None


def _with_gradient(x, layer_norm):
    """`layer_norm` of a tensor [R, D] with a gradient that reads what it needs once."""
    *weights, epsilon = weights_of(layer_norm)

    @tf.custom_gradient
    def apply(x, gamma, beta):
        mean, variance = moments(x)

        def backward(gradient):
            inverse = tf.math.rsqrt(variance + epsilon)
            to_x, *others = scaled_gradient((tf.cast(x, tf.float32) - mean) * inverse, inverse, gamma, gradient)
            # Without a barrier, what sums it up for a bias would have it in float32, and both would be written.
            kept: Any = xla_optimization_barrier([to_x])
            return *kept, *others

        return scaled(x, mean, variance, gamma, beta, epsilon), backward

    return apply(x, *weights)


def _is_within_xla() -> bool:
    """Whether XLA compiles the graph that is being made."""
    return not tf.executing_eagerly() and GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph())


def _is_possible(query) -> bool:
    """Whether XLA compiles this, and cuDNN attends with queries, keys and values [B, L, N, H] like these."""
    if not _is_within_xla() or not query.shape.is_fully_defined() or query.dtype not in (tf.bfloat16, tf.float16):
        return False
    _, length, _, size = query.shape
    is_wanted = keras.config.is_flash_attention_enabled() is not False
    return is_wanted and length % 2 == 0 and size % 8 == 0 and size <= 128  # of odd lengths there is no gradient


def flash_attention(query, key, value, bias=None, has_gradient: bool = True):
    """The context of full attention.

    Args:
        query, key, value: bfloat16 or float16 tensors [B, L, N, H] of known shape; the query is scaled.
        bias: None, or a tensor [B, 1, L, L] of the same type added to the logits, without a gradient.
        has_gradient: bool. Whether there is one.

    Returns:
        Tensor [B, L, N, H].
    """
    name, others = ("__cudnn$fmhaSoftmax", []) if bias is None else ("__cudnn$fmhaScaleBiasSoftmax", [bias])
    if not has_gradient:
        return _call(name, [query, key, value, *others], [query], _config(query, _PRODUCTS))[0]
    batch, length, heads, _ = query.shape
    sums = tf.TensorSpec([batch, heads, length])  # logarithms of the sums of a softmax

    @tf.custom_gradient
    def attention(query, key, value):
        factors = [query, key, value]
        context, normalizers = _call(name, [*factors, *others], [query, sums], _config(query, _PRODUCTS))

        def backward(gradient):
            operands = [*factors, normalizers, gradient, *others, context]
            return _call(f"{name}Backward", operands, factors, _config(query, _GRADIENT_PRODUCTS))

        return context, backward

    return attention(query, key, value)


def _call(target: str, operands: list, results: list, config: dict[str, Any]) -> list:
    """Calls cuDNN for results of these shapes and types."""
    module = _module(
        target, operands, results, json.dumps({"operation_queue_id": "0", "cudnn_fmha_backend_config": config})
    )
    shapes, types = [result.shape for result in results], [result.dtype for result in results]
    called: Any = xla_call_module(operands, version=_MODULE_VERSION, module=module, Sout=shapes, Tout=types)
    return called


def _module(target: str, operands: list, results: list, config: str) -> str:
    """StableHLO of a call; it also gives cuDNN space to work in, whose size XLA sets.

    cuDNN's results are [B, N, L, H] in the order of [B, L, N, H], which the transposes name and do not change.
    """

    def type_of(shape, dtype: str) -> str:
        return f"tensor<{'x'.join(map(str, [*shape, dtype]))}>"

    def many(texts) -> str:
        return ", ".join(texts)

    given, returned = ([type_of(one.shape, _NAMES[one.dtype]) for one in some] for some in (operands, results))
    orders = [(0, 2, 1, 3) if len(result.shape) == 4 else (0, 1, 2) for result in results]
    shapes = [[result.shape[axis] for axis in order] for result, order in zip(results, orders)]
    computed = [type_of(shape, _NAMES[result.dtype]) for shape, result in zip(shapes, results)]
    layouts = [
        f"dense<{[*axes][::-1]}> : tensor<{len(axes)}xindex>"
        for axes in (*(range(len(o.shape)) for o in operands), *orders)
    ]
    layouts.append("dense<0> : tensor<1xindex>")
    names = [f"%operand{number}" for number in range(len(operands))]
    before, after = many(layouts[: len(given)]), many(layouts[len(given) :])
    lines = [
        f"%called:{len(computed) + 1} = stablehlo.custom_call @{target}({many(names)}) {{backend_config = "
        f"{json.dumps(config)}, api_version = 2 : i32, operand_layouts = [{before}], result_layouts = [{after}]}} : "
        f"({many(given)}) -> ({many([*computed, 'tensor<0xui8>'])})"
    ]
    for number, order in enumerate(orders):
        types = f"({computed[number]}) -> {returned[number]}"
        lines.append(f"%result{number} = stablehlo.transpose %called#{number}, dims = {[*order]} : {types}")
    parameters = many(f"{name}: {type}" for name, type in zip(names, given))
    lines.append(f"return {many(f'%result{number}' for number in range(len(results)))} : {many(returned)}")
    return f"func.func public @main({parameters}) -> ({many(returned)}) {{\n" + "\n".join(lines) + "\n}"


def _config(query, products: dict[str, tuple]) -> dict[str, Any]:
    """What XLA's protocol buffer `CudnnfMHABackendConfig` holds, in JSON; what is not named is 0 or empty."""
    batch, length, heads, _ = query.shape
    return {
        "algorithm": {
            "algo_id": "0",
            "math_type": "TENSOR_OP_MATH",
            "tuning_knobs": {"17": "1", "24": "0"},
            "is_cudnn_frontend": True,
            "workspace_size": "0",
        },
        "fmha_scale": 1.0,
        "intermediate_tensor_shape": {
            "element_type": _NAMES[query.dtype].upper(),
            "dimensions": [str(size) for size in (batch, heads, length, length)],
            "layout": {"minor_to_major": ["3", "2", "1", "0"]},
            "is_dynamic_dimension": [False] * 4,
        },
        "is_flash_attention": True,
        "mask_type": "NO_MASK",
        "dropout_rate": 0.0,
        "seed": 42,
        "max_seg_per_batch": 1,
        **{
            f"{name}_dot_dimension_numbers": {
                "lhs_contracting_dimensions": [str(left)],
                "rhs_contracting_dimensions": [str(right)],
                "lhs_batch_dimensions": left_batch,
                "rhs_batch_dimensions": right_batch,
            }
            for name, (left, right, left_batch, right_batch) in products.items()
        },
    }
