"""TensorFlow Model Garden's ALBERT: TF2 checkpoints, whose names follow the graph of Python objects.

A SavedModel numbers the same variables in the order of their creation.
"""

import pathlib
import re
from collections.abc import Mapping

import numpy as np

from albert_tf.checkpoints.checkpoint import Checkpoint, reject_unknown
from albert_tf.checkpoints.formats.attention_axes import merge_heads
from albert_tf.config import AlbertConfig

_END = "/.ATTRIBUTES/VARIABLE_VALUE"
_STATE = ("_CHECKPOINTABLE_OBJECT_GRAPH", f"save_counter{_END}")
_SLOT = "/.OPTIMIZER_SLOT/"
_ROOT = re.compile(r"(encoder|model)/layer_with_weights-")
_ENCODER_POOLER, _ORDER_POOLER = "6", "next_sentence..pooler_dense"
_SINGLE = {
    "0/embeddings": "encoder/embeddings/word_embeddings",
    "1/embeddings": "encoder/embeddings/position_embeddings",
    "2/embeddings": "encoder/embeddings/token_type_embeddings",
    # The word embeddings of a pretraining model.
    "masked_lm/embedding_table": "encoder/embeddings/word_embeddings",
    "masked_lm/output_bias.Sbias": "masked_lm/output_bias",
}
# Layers whose variables have the same names as ours: gamma and beta, or kernel and bias.
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
    """Whether a tensor belongs to the model."""
    return name not in _STATE and _SLOT not in name


def has_object_names(tensors: Mapping[str, np.ndarray]) -> bool:
    """Whether these are the names of a TF2 checkpoint."""
    return any(name.endswith(_END) for name in tensors)


def from_object_names(source: pathlib.Path, config: AlbertConfig, tensors: Mapping[str, np.ndarray]) -> Checkpoint:
    """Makes a checkpoint from tensors by the names of a TF2 checkpoint.

    Model Garden's sentence-order head has a pooler of its own, beside which the encoder's is not trained: if it exists,
    it replaces the encoder's, as in Model Garden's export.

    Raises:
        ValueError: a tensor is unknown, two are of the same variable, or the config has several blocks of weights.
    """
    if config.num_hidden_groups * config.inner_group_num != 1 or config.share != "all":
        raise ValueError(
            f"Model Garden shares one block between all layers, but the config of {source} has num_hidden_groups="
            f"{config.num_hidden_groups}, inner_group_num={config.inner_group_num}, share={config.share!r}; correct "
            "the config."
        )
    paths = _paths_by_number() if any(name.startswith("variables/") for name in tensors) else _paths_by_object()
    short_names = {name: _ROOT.sub("", name.removesuffix(_END)) for name in tensors}
    reject_unknown(source, {name for name, short in short_names.items() if short not in paths})
    if any(short.startswith(_ORDER_POOLER) for short in short_names.values()):
        short_names = {
            name: short for name, short in short_names.items() if not short.startswith(f"{_ENCODER_POOLER}/")
        }
    arrays: dict[str, np.ndarray] = {}
    for name, short in short_names.items():
        if paths[short] in arrays:
            raise ValueError(f"{source} has two tensors for `{paths[short]}`, one of them {name}; save it again.")
        arrays[paths[short]] = tensors[name]
    return Checkpoint(source, config, merge_heads(source, config, arrays))


def _paths_by_object() -> dict[str, str]:
    return _SINGLE | {f"{theirs}/{part}": f"{ours}/{part}" for theirs, ours in _LAYERS.items() for part in _PARTS}


def _paths_by_number() -> dict[str, str]:
    encoder = list(_SINGLE.values())[:3]
    for theirs, ours in _LAYERS.items():
        if theirs[0].isdigit():
            encoder += _pair(ours)
    head = ["masked_lm/output_bias", *_pair("masked_lm/transform"), *_pair("masked_lm/layer_norm")]
    paths = {f"variables/{index}": path for index, path in enumerate(encoder)}
    return paths | {f"mlm/variables/{index}": path for index, path in enumerate(head, len(encoder))}


def _pair(layer: str) -> list[str]:
    return [f"{layer}/{part}" for part in (_PARTS[:2] if layer.endswith("layer_norm") else _PARTS[2:])]
