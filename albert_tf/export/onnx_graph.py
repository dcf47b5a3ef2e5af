"""Writes an ALBERT as an ONNX graph, node by node. Layers that share weights read one copy of them.

Letters: B batch, C choices, L sequence, E embedding, D hidden, N heads, H head size, V vocabulary, K starts, J ends of
each.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from albert_tf.config import AlbertConfig
from albert_tf.data.finetuning.encoded import IMPOSSIBLE
from albert_tf.inference.network import INPUTS, P_MASK

Precision = Literal["float32", "float16", "int8"]
_Outputs = dict[str, tuple[str, tuple[str | int, ...]]]  # tensor and shape by name

# Operators of this version run in onnxruntime 1.17, OpenVINO 2024.4 and their successors.
_OPSET, _IR_VERSION = 20, 9
_MAX_BYTES = (1 << 31) - (1 << 20)
# 7 bits: without VNNI, CPUs add two products of 8 bits in 16 bits, which overflow.
_WEIGHT_LIMIT, _INPUT_LIMIT = 63, 255
_ACTIVATIONS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "gelu_new": ("Gelu", {"approximate": "tanh"}),
    "gelu": ("Gelu", {"approximate": "none"}),
    "relu": ("Relu", {}),
    "tanh": ("Tanh", {}),
    "linear": ("Identity", {}),
}


@dataclasses.dataclass(frozen=True)
class OnnxGraph:
    """A model and what its quantization needs.

    Attributes:
        model: onnx.ModelProto.
        measured: names of the tensors whose ranges an int8 graph needs, in order.
    """

    model: onnx.ModelProto
    measured: tuple[str, ...]


def onnx_graph(
    task: str,
    config: AlbertConfig,
    arrays: Mapping[str, np.ndarray],
    precision: Precision = "float32",
    ranges: Sequence[tuple[float, float]] = (),
    beams: tuple[int, int] = (5, 5),
    mask_padding: bool = True,
) -> OnnxGraph:
    """Builds the graph of a model.

    Inputs are `input_ids`, `attention_mask` and `token_type_ids`, int64 [B, L] ([B, C, L] for multiple choice). Outputs
    are float32, with the names that Hugging Face's exports have. The beam head of question answering also takes
    `p_mask`, int64 [B, L], and has the outputs of AlbertForQuestionAnswering.

    Args:
        task: name of a row of `albert_tf.tasks.table.TASKS`.
        config: AlbertConfig.
        arrays: the weights by variable path.
        precision: of weights and arithmetic. With `"int8"`, those of matrix products with weights, and the embeddings.
        ranges: smallest and largest value of each tensor in `measured` of the float32 graph, for `"int8"`.
        beams: K and J of the beam head.
        mask_padding: of the other head for questions.

    Raises:
        ValueError: the file would be larger than 2 GB.
    """
    joined = _joined_attention(config, arrays)
    if is_beam := task == "question_answering_beam":
        joined |= _split_ends(config, arrays)
    graph = _Graph({**arrays, **joined}, config, precision, list(ranges))
    axes = ["batch_size", "sequence_length"]
    if task == "multiple_choice":
        axes.insert(1, "num_choices")
    hidden = _encoder(graph, len(axes) == 3)
    outputs = _beam_answers(graph, hidden, *beams) if is_beam else _outputs(graph, task, hidden)
    if task == "question_answering" and mask_padding:
        outputs = {name: (_without_padding(graph, tensor), shape) for name, (tensor, shape) in outputs.items()}
    declared = _declare(graph, outputs)
    names = (*INPUTS, P_MASK) if is_beam else INPUTS
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, axes) for name in names]
    size = sum(len(tensor.raw_data) for tensor in graph.initializers.values())
    if size > _MAX_BYTES:
        raise ValueError(
            f"An ONNX file must not be larger than 2 GB. Received: weights of {size:,} bytes in {precision}; choose "
            "another precision, or share layers."
        )
    proto = helper.make_graph(graph.nodes, task, inputs, declared, list(graph.initializers.values()))
    opset = helper.make_opsetid("", _OPSET)
    model = helper.make_model(proto, opset_imports=[opset], ir_version=_IR_VERSION, producer_name="albert_tf")
    return OnnxGraph(model, tuple(graph.measured))


class _Graph:
    """Nodes and weights of a graph under construction."""

    def __init__(
        self,
        arrays: Mapping[str, np.ndarray],
        config: AlbertConfig,
        precision: Precision,
        ranges: list[tuple[float, float]],
    ):
        self.arrays, self.config, self.ranges = arrays, config, ranges
        self.is_int8, self.dtype = precision == "int8", np.dtype("float16" if precision == "float16" else "float32")
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: dict[str, onnx.TensorProto] = {}
        self.measured: list[str] = []
        self._dequantized: dict[str, str] = {}

    @property
    def onnx_type(self) -> int:
        """The element type of hidden states."""
        return helper.np_dtype_to_tensor_dtype(self.dtype)

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Adds a node; returns the name of its output."""
        return self.add_several(1, kind, *inputs, **attributes)[0]

    def add_several(self, count: int, kind: str, *inputs: str, **attributes: Any) -> list[str]:
        """Adds a node with several outputs; returns their names."""
        names = [f"{kind.lower()}_{len(self.nodes)}_{index}" for index in range(count)]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names

    def constant(self, name: str, array: Any) -> str:
        """Stores an array under a name; returns the name."""
        if name not in self.initializers:
            self.initializers[name] = numpy_helper.from_array(np.asarray(array, order="C"), name)
        return name

    def integers(self, *values: int) -> str:
        """A list of constants, such as axes or a shape."""
        return self.constant(f"integers_{'_'.join(map(str, values))}", np.array(values, np.int64))

    def weight(self, path: str) -> str:
        """A variable in the type of hidden states."""
        return self.constant(path, self.arrays[path].astype(self.dtype))

    def linear(self, x: str, path: str) -> str:
        """A dense layer."""
        if self.arrays[f"{path}/bias"].size < 64:  # a head, whose scores are to be exact
            product = self.add("MatMul", x, self.weight(f"{path}/kernel"))
        else:
            product = self.product(x, f"{path}/kernel")
        return self.add("Add", product, self.weight(f"{path}/bias"))

    def product(self, x: str, kernel: str, transposed: bool = False) -> str:
        """A matrix product with a variable, [in, out] or else [out, in], which is int8 in an int8 graph."""
        self.measured.append(x)
        if not self.is_int8:
            weight = self.weight(kernel)
            return self.add("MatMul", x, self.add("Transpose", weight, perm=[1, 0]) if transposed else weight)
        if kernel not in self._dequantized:
            quantized, scale = self.int8(kernel, axis=int(not transposed))
            quantized = self.add("Transpose", quantized, perm=[1, 0]) if transposed else quantized
            self._dequantized[kernel] = self.add("DequantizeLinear", quantized, scale, axis=1)
        return self.add("MatMul", self._rounded(x), self._dequantized[kernel])

    def int8(self, path: str, axis: int) -> tuple[str, str]:
        """A variable as int8, and its scales along an axis."""
        array = self.arrays[path]
        scale = np.abs(array).max(axis=1 - axis, keepdims=True) / _WEIGHT_LIMIT
        scale = np.where(scale > 0, scale, 1).astype(np.float32)
        quantized = self.constant(f"{path}/int8", np.round(array / scale).astype(np.int8))
        return quantized, self.constant(f"{path}/scale", scale.reshape(-1))

    def normalize(self, x: str, path: str, epsilon: float) -> str:
        """Layer normalisation."""
        gamma, beta = self.weight(f"{path}/layer_norm/gamma"), self.weight(f"{path}/layer_norm/beta")
        return self.add("LayerNormalization", x, gamma, beta, axis=-1, epsilon=epsilon)

    def activate(self, x: str) -> str:
        """The activation function of the config."""
        kind, attributes = _ACTIVATIONS[self.config.hidden_act]
        return self.add(kind, x, **attributes)

    def _rounded(self, x: str) -> str:
        """A tensor rounded to 8 bits, with the range of the tensor at the same position in the float32 graph."""
        index = len(self.measured) - 1
        low, high = min(self.ranges[index][0], 0.0), max(self.ranges[index][1], 0.0)
        scale = (high - low) / _INPUT_LIMIT or 1.0
        zero = np.uint8(round(-low / scale))
        names = (self.constant(f"scale_{index}", np.float32(scale)), self.constant(f"zero_{index}", zero))
        return self.add("DequantizeLinear", self.add("QuantizeLinear", x, *names), *names)


def _joined_attention(config: AlbertConfig, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Query, key and value of each attention block side by side, the query divided by sqrt(H)."""
    joined = {}
    for group in range(config.num_attention_groups):
        for inner in range(config.inner_group_num):
            block = f"encoder/attention_{group}_{inner}"
            for part in ("kernel", "bias"):
                query, key, value = (arrays[f"{block}/{name}/{part}"] for name in ("query", "key", "value"))
                query = query / np.float32(math.sqrt(config.head_size))
                joined[f"{block}/qkv/{part}"] = np.concatenate([query, key, value], axis=-1)
    return joined


def _encoder(graph: _Graph, has_choices: bool) -> str:
    """Embeddings and transformer blocks: [B, L, D]."""
    config = graph.config
    ids, mask, types = INPUTS
    if has_choices:
        shape = graph.add("Concat", graph.integers(-1), graph.add("Shape", ids, start=2), axis=0)
        ids, mask, types = (graph.add("Reshape", name, shape) for name in INPUTS)  # [B C, L]
    hidden = _embeddings(graph, ids, types)
    if config.has_projection:
        hidden = graph.linear(hidden, "encoder/projection")
    mask = graph.add("Unsqueeze", graph.add("Cast", mask, to=graph.onnx_type), graph.integers(1, 2))  # [B, 1, 1, L]
    one, masked = (graph.constant(f"number_{value:.0f}", np.array(value, graph.dtype)) for value in (1.0, -10000.0))
    bias = graph.add("Mul", graph.add("Sub", one, mask), masked)
    for layer in range(config.num_hidden_layers):
        attention, ffn = (
            config.group_of_layer(layer, groups) for groups in (config.num_attention_groups, config.num_ffn_groups)
        )
        for inner in range(config.inner_group_num):
            hidden = _attention(graph, hidden, bias, f"encoder/attention_{attention}_{inner}")
            hidden = _feed_forward(graph, hidden, f"encoder/ffn_{ffn}_{inner}")
    return hidden


def _embeddings(graph: _Graph, ids: str, types: str) -> str:
    """The normalised sum of the three embeddings: [B, L, E]."""
    root = "encoder/embeddings"
    table = f"{root}/word_embeddings"
    if graph.is_int8:
        rows, scale = graph.int8(table, axis=0)
        scale = graph.add("Unsqueeze", graph.add("Gather", scale, ids), graph.integers(2))
        words = graph.add("Mul", graph.add("Cast", graph.add("Gather", rows, ids), to=TensorProto.FLOAT), scale)
    else:
        words = graph.add("Gather", graph.weight(table), ids)
    length = graph.add("Shape", ids, start=1)
    positions = graph.add("Slice", graph.weight(f"{root}/position_embeddings"), graph.integers(0), length)
    total = graph.add("Add", words, graph.add("Gather", graph.weight(f"{root}/token_type_embeddings"), types))
    return graph.normalize(graph.add("Add", total, positions), root, graph.config.layer_norm_eps)


def _attention(graph: _Graph, hidden: str, bias: str, path: str) -> str:
    heads, size = graph.config.num_attention_heads, graph.config.head_size
    parts = graph.add_several(3, "Split", graph.linear(hidden, f"{path}/qkv"), axis=-1, num_outputs=3)
    query, key, value = (graph.add("Reshape", part, graph.integers(0, 0, heads, size)) for part in parts)
    query, value = (graph.add("Transpose", part, perm=[0, 2, 1, 3]) for part in (query, value))  # [B, N, L, H]
    logits = graph.add("MatMul", query, graph.add("Transpose", key, perm=[0, 2, 3, 1]))
    probabilities = graph.add("Softmax", graph.add("Add", logits, bias), axis=-1)  # [B, N, L, L]
    context = graph.add("Transpose", graph.add("MatMul", probabilities, value), perm=[0, 2, 1, 3])
    context = graph.add("Reshape", context, graph.integers(0, 0, heads * size))
    projected = graph.linear(context, f"{path}/output")
    return graph.normalize(graph.add("Add", projected, hidden), path, graph.config.layer_norm_eps)


def _feed_forward(graph: _Graph, hidden: str, path: str) -> str:
    inner = graph.activate(graph.linear(hidden, f"{path}/intermediate"))
    outer = graph.linear(inner, f"{path}/output")
    return graph.normalize(graph.add("Add", outer, hidden), path, graph.config.layer_norm_eps)


def _outputs(graph: _Graph, task: str, hidden: str) -> _Outputs:
    """Adds the heads; returns their outputs."""
    width, per_token = graph.config.hidden_size, ("batch_size", "sequence_length")
    pooled = _pooled(graph, hidden) if "encoder/pooler/kernel" in graph.arrays else ""
    outputs: _Outputs = {}
    if task in ("masked_lm", "pretraining"):
        outputs["logits"] = _masked_lm(graph, hidden), (*per_token, graph.config.vocab_size)
        if "sentence_order/kernel" in graph.arrays:
            outputs["sop_logits"] = graph.linear(pooled, "sentence_order"), ("batch_size", 2)
    elif task in ("sequence_classification", "token_classification"):
        inputs, axes = (pooled, per_token[:1]) if task == "sequence_classification" else (hidden, per_token)
        outputs["logits"] = graph.linear(inputs, "classifier"), (*axes, len(graph.arrays["classifier/bias"]))
    elif task == "multiple_choice":
        shape = graph.add("Shape", INPUTS[0], end=2)
        logits = graph.add("Reshape", graph.linear(pooled, "classifier"), shape)
        outputs["logits"] = logits, ("batch_size", "num_choices")
    elif task == "question_answering":
        edges = graph.add_several(2, "Split", graph.linear(hidden, "qa_span"), axis=-1, num_outputs=2)
        for name, edge in zip(("start_logits", "end_logits"), edges):
            outputs[name] = graph.add("Squeeze", edge, graph.integers(-1)), per_token
    else:
        outputs["last_hidden_state"] = hidden, (*per_token, width)
        if pooled:
            outputs["pooler_output"] = pooled, ("batch_size", width)
    return outputs


def _without_padding(graph: _Graph, logits: str) -> str:
    """Logits [B, L] of starts or ends, in float32, those of padding too low to be an answer's."""
    is_token = graph.add("Cast", INPUTS[1], to=TensorProto.BOOL)
    logits = graph.add("Cast", logits, to=TensorProto.FLOAT)
    return graph.add("Where", is_token, logits, graph.constant("impossible", IMPOSSIBLE))


def _declare(graph: _Graph, outputs: _Outputs) -> list[onnx.ValueInfoProto]:
    """Names the outputs: positions are int32, all others float32."""
    types = {name: TensorProto.INT32 if name.endswith("_index") else TensorProto.FLOAT for name in outputs}
    for name, (tensor, _) in outputs.items():
        graph.nodes.append(helper.make_node("Cast", [tensor], [name], to=types[name]))
    return [helper.make_tensor_value_info(name, types[name], shape) for name, (_, shape) in outputs.items()]


def _split_ends(config: AlbertConfig, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The two halves of the kernel [2 D, D] that scores ends: of the token, and of the start."""
    tokens, starts = np.split(arrays["qa_beam/end_0/kernel"], [config.hidden_size])
    norm = {name: arrays[f"qa_beam/end_layer_norm/{name}"] for name in ("gamma", "beta")}
    return {
        "qa_beam/end_of_token/kernel": tokens,
        "qa_beam/end_of_start/kernel": starts,
        "qa_beam/end_of_start/bias": arrays["qa_beam/end_0/bias"],
        **{f"qa_beam/end/layer_norm/{name}": array for name, array in norm.items()},
    }


def _beam_answers(graph: _Graph, hidden: str, num_starts: int, num_ends: int) -> _Outputs:
    """The head of question answering that scores ends given a start; see BeamAnswerHead."""
    last, second = graph.integers(-1), graph.integers(1)
    is_closed = graph.add("Cast", P_MASK, to=TensorProto.FLOAT)  # [B, L]
    starts = _log_probs(graph, graph.linear(hidden, "qa_beam/start"), is_closed)  # [B, L]
    top_starts, start_index = _best(graph, starts, 2, num_starts)  # [B, K]
    of_tokens = graph.product(hidden, "qa_beam/end_of_token/kernel")  # [B, L, D]
    features = graph.add("GatherND", hidden, graph.add("Unsqueeze", start_index, last), batch_dims=1)  # [B, K, D]
    of_starts = graph.linear(features, "qa_beam/end_of_start")
    pairs = [graph.add("Unsqueeze", part, axis) for part, axis in ((of_tokens, second), (of_starts, graph.integers(2)))]
    ends = graph.normalize(graph.add("Tanh", graph.add("Add", *pairs)), "qa_beam/end", graph.config.layer_norm_eps)
    is_closed = graph.add("Unsqueeze", is_closed, second)
    ends = _log_probs(graph, graph.linear(ends, "qa_beam/end_1"), is_closed)  # [B, K, L]
    best = _best(graph, ends, 3, num_ends)  # [B, K, J]
    top_ends, end_index = (graph.add("Reshape", part, graph.integers(0, num_starts * num_ends)) for part in best)
    # "No answer" is scored from the mean of tokens, weighted by their start probabilities, and the first token.
    probabilities = graph.add("Unsqueeze", graph.add("Cast", graph.add("Exp", starts), to=graph.onnx_type), second)
    mean = graph.add("Squeeze", graph.add("MatMul", probabilities, hidden), second)  # [B, D]
    both = graph.add("Concat", mean, _first(graph, hidden), axis=-1)
    scores = graph.add("Tanh", graph.linear(both, "qa_beam/answer_0"))
    scores = graph.add("MatMul", scores, graph.weight("qa_beam/answer_1/kernel"))
    of_starts, of_ends = ("batch_size", num_starts), ("batch_size", num_starts * num_ends)
    return {
        "cls_logits": (graph.add("Squeeze", scores, last), ("batch_size",)),
        "start_top_log_probs": (top_starts, of_starts),
        "start_top_index": (start_index, of_starts),
        "end_top_log_probs": (top_ends, of_ends),
        "end_top_index": (end_index, of_ends),
    }


def _log_probs(graph: _Graph, logits: str, is_closed: str) -> str:
    """Log probabilities, float32 [..., L], of logits [..., L, 1]; about -1e30 where the mask is 1."""
    logits = graph.add("Cast", graph.add("Squeeze", logits, graph.integers(-1)), to=TensorProto.FLOAT)
    one, never = (graph.constant(f"float_{value:.0e}", np.float32(value)) for value in (1.0, -1e30))
    is_open = graph.add("Sub", one, is_closed)
    masked = graph.add("Add", graph.add("Mul", logits, is_open), graph.add("Mul", is_closed, never))
    return graph.add("LogSoftmax", masked, axis=-1)


def _best(graph: _Graph, log_probs: str, rank: int, count: int) -> tuple[str, str]:
    """The highest log probabilities and their positions, [..., count]; rows [..., L] may be shorter than `count`."""
    less = graph.constant("float_-2e+30", np.float32(-2e30))
    padded = graph.add("Pad", log_probs, graph.integers(*[0] * (2 * rank - 1), count), less)
    best, index = graph.add_several(2, "TopK", padded, graph.integers(count))
    last = graph.add("Sub", graph.add("Shape", log_probs, start=rank - 1), graph.integers(1))
    return best, graph.add("Min", index, last)


def _pooled(graph: _Graph, hidden: str) -> str:
    return graph.add("Tanh", graph.linear(_first(graph, hidden), "encoder/pooler"))


def _first(graph: _Graph, hidden: str) -> str:
    """The vectors of the first tokens: [B, D]."""
    return graph.add("Gather", hidden, graph.constant("zero", np.int64(0)), axis=1)


def _masked_lm(graph: _Graph, hidden: str) -> str:
    hidden = graph.activate(graph.linear(hidden, "masked_lm/transform"))
    hidden = graph.normalize(hidden, "masked_lm", graph.config.head_layer_norm_eps)
    logits = graph.product(hidden, "encoder/embeddings/word_embeddings", transposed=True)
    return graph.add("Add", logits, graph.weight("masked_lm/output_bias"))
