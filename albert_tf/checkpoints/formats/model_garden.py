"""TensorFlow Model Garden's ALBERT: its TF2 checkpoints, whose names follow the graph of Python objects.

A SavedModel holds the same variables by number alone, in the order in which they were made.
"""

import pathlib
import re
from collections.abc import Mapping

import numpy as np

from albert_tf.checkpoints.checkpoint import Checkpoint, refuse_unknown
from albert_tf.checkpoints.formats.attention_axes import with_one_axis_of_heads
from albert_tf.config import AlbertConfig

_END = "/.ATTRIBUTES/VARIABLE_VALUE"
_STATE = ("_CHECKPOINTABLE_OBJECT_GRAPH", f"save_counter{_END}")
_SLOT = "/.OPTIMIZER_SLOT/"
_ROOT = re.compile(r"(encoder|model)/layer_with_weights-")
_ENCODER_POOLER, _ORDER_POOLER = "6", "next_sentence..pooler_dense"
_LONE = {
    "0/embeddings": "encoder/embeddings/word_embeddings",
    "1/embeddings": "encoder/embeddings/position_embeddings",
    "2/embeddings": "encoder/embeddings/token_type_embeddings",
    # A pretrainer holds the word embeddings here instead.
    "masked_lm/embedding_table": "encoder/embeddings/word_embeddings",
    "masked_lm/output_bias.Sbias": "masked_lm/output_bias",
}
# Both sides call the variables of a norm gamma and beta, those of a dense layer kernel and bias.
_LAYERS = {
    "3": "encoder/embeddings/layer_norm",
    "4": "encoder/projection",
    "5/_attention_layer/_query_dense": "encoder/attention_0_0/query",
    "5/_attention_layer/_key_dense": "encoder/attention_0_0/key",
    "5/_attention_layer/_value_dense": "encoder/attention_0_0/value",
    "5/_attention_layer/_output_dense": "encoder/attention_0_0/output",
    "5/_attention_layer_norm": "encoder/attention_0_0/layer_norm",
    "5/_intermediate_dense": "encoder/ffn_0_0/intermediate",
    "5/_output_dense": "encoder/ffn_0_0/output",
    "5/_output_layer_norm": "encoder/ffn_0_0/layer_norm",
    _ENCODER_POOLER: "encoder/pooler",
    "masked_lm/dense": "masked_lm/transform",
    "masked_lm/layer_norm": "masked_lm/layer_norm",
    _ORDER_POOLER: "encoder/pooler",
    "model/classification_heads/0/out_proj": "sentence_order",
}
_PARTS = ("gamma", "beta", "kernel", "bias")


def is_weight(name: str) -> bool:
    """Whether a tensor of such a file belongs to the model."""
    return name not in _STATE and _SLOT not in name


def has_object_names(tensors: Mapping[str, np.ndarray]) -> bool:
    """Whether the names are those of a TF2 checkpoint."""
    return any(name.endswith(_END) for name in tensors)


def from_object_names(source: pathlib.Path, config: AlbertConfig, tensors: Mapping[str, np.ndarray]) -> Checkpoint:
    """Tensors by the names of a TF2 checkpoint become a checkpoint.

    An order head of Model Garden has a pooler of its own, and the encoder's is not trained beside it. So that one is
    read where there is one, and the encoder's set aside, as Model Garden's own export can do.
    """
    if config.num_hidden_groups * config.inner_group_num != 1 or config.share != "all":
        raise ValueError(
            "An ALBERT of Model Garden must share one block between all layers. Received: num_hidden_groups="
            f"{config.num_hidden_groups}, inner_group_num={config.inner_group_num}, share={config.share!r} for "
            f"{source}; correct the config."
        )
    places = _by_number() if any(name.startswith("variables/") for name in tensors) else _by_object()
    known = {name: _ROOT.sub("", name.removesuffix(_END)) for name in tensors}
    refuse_unknown(source, {name for name, short in known.items() if short not in places})
    if any(short.startswith(_ORDER_POOLER) for short in known.values()):
        known = {name: short for name, short in known.items() if not short.startswith(f"{_ENCODER_POOLER}/")}
    arrays = {places[short]: tensors[name] for name, short in known.items()}
    return Checkpoint(source, config, with_one_axis_of_heads(source, config, arrays))


def _by_object() -> dict[str, str]:
    pairs = {f"{theirs}/{part}": f"{ours}/{part}" for theirs, ours in _LAYERS.items() for part in _PARTS}
    return _LONE | pairs


def _by_number() -> dict[str, str]:
    paths = list(_LONE.values())[:3]
    for theirs, ours in _LAYERS.items():
        if theirs[0].isdigit():
            paths += _both(ours)
    head = ["masked_lm/output_bias", *_both("masked_lm/transform"), *_both("masked_lm/layer_norm")]
    places = {f"variables/{number}": path for number, path in enumerate(paths)}
    return places | {f"mlm/variables/{number}": path for number, path in enumerate(head, len(paths))}


def _both(layer: str) -> list[str]:
    return [f"{layer}/{part}" for part in (_PARTS[:2] if layer.endswith("layer_norm") else _PARTS[2:])]
